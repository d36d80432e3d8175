"""The tables of a Test of VMs: what has faults comes first, and no line is over the width."""

import pytest

from provision.documents.checks import BandwidthRow, BandwidthTry, VmBandwidth, VmCheck
from provision.screens import checks
from provision.screens.layout import Look
from tests.unit.table import made

GOOD = made(
    VmCheck,
    "gpus=8 driver=580.95.05 ecc_errors=0 diagnostic=passed interfaces=9 local_ssds=16",
    names=("NVIDIA H100 80GB HBM3",) * 8,
)
BAD = VmCheck(faults=("it does not answer",))
MEASURED = made(
    VmBandwidth,
    "vms=2 gpus=16 collective=all_gather bandwidth=94.2 expected=188.9 least=170.01"
    " networks=FasTrak nccl=2.28.7",
    size=2**33,
    source="Cluster Toolkit, examples/gke-a3-megagpu/README.md (v1.95.0)",
    rows=(BandwidthRow(size=2**33, out_of_place=94.2, in_place=94.1, wrong=0),),
    tries=(
        made(BandwidthTry, "vms=mega-vm-1,mega-vm-2 passed=no bandwidth=94.2 why=slow"),
        made(BandwidthTry, "vms=mega-vm-1,mega-vm-3 passed=yes bandwidth=188.0"),
        made(BandwidthTry, "vms=mega-vm-2,mega-vm-3 passed=no why=failed"),
    ),
)


def _text(width: int = 100, **found: VmCheck | VmBandwidth) -> list[str]:
    return [line.text for line in checks.lines(found, width)]


def test_a_vm_with_faults_stands_first_with_its_faults_below() -> None:
    shown = checks.lines({"vm-1": GOOD, "vm-2": BAD}, 100)
    texts = [line.text for line in shown]
    assert texts[0].split()[:4] == ["VM", "GPUs", "driver", "ECC"]
    assert texts[1].split() == ["vm-2", "?", "-", "-", "not", "run", "-", "-"]
    assert texts[2] == "  it does not answer"
    assert texts[3].split()[:6] == ["vm-1", "8", "x", "H100", "80GB", "HBM3"]
    assert [line.look for line in shown[1:]] == [Look.BAD, Look.BAD, Look.PLAIN]


def test_of_many_good_vms_some_are_listed_and_the_rest_is_counted() -> None:
    shown = checks.lines({f"vm-{number:04}": GOOD for number in range(1000)}, 100)
    assert len(shown) == 1 + 16 + 1
    assert shown[-1].text == "and 984 more without faults"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_over_the_width(width: int) -> None:
    vms = {f"my-cluster-vm-{number:04}": GOOD for number in range(3)}
    texts = _text(width, **vms, **{"my-cluster-mig": MEASURED})
    assert max(map(len, texts)) <= width


def test_the_bandwidth_is_shown_with_its_bar_and_every_further_measurement() -> None:
    texts = _text(mig=MEASURED)
    assert "all_gather between 2 VMs with 16 GPUs over FasTrak, NCCL 2.28.7" in texts
    assert "  8 GiB          94.2      94.1      0" in texts
    assert any("188.9 GB/s at 8 GiB between 2 machines; enough: 170.0" in it for it in texts)
    assert texts[-2:] == [
        "measurement 2: mega-vm-1, mega-vm-3: 188.0 GB/s, good",
        "measurement 3: mega-vm-2, mega-vm-3: -, too slow or failed",
    ]
