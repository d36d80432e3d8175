"""The step `fabric`: what NCCL needs for each GPU network, and what is said where it is missing."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from provision.catalogue.fabrics import STACKS, Fabric
from tests.startup import fabrics
from tests.startup.sandbox import VM
from tests.startup.stubs import STUBS


def _environment(vm: VM) -> dict[str, str]:
    lines = vm.read("etc/aiinfra/nccl.env").splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def _reported(vm: VM) -> dict[str, Any]:
    document = vm.told["fabric"]
    assert isinstance(document, dict)
    return document


def _login(vm: VM, **variables: str) -> dict[str, str]:
    """The environment of a login shell."""
    return _variables(vm.said("bash", "-lc", "env", **variables))


_PAGE: Final = Path(__file__).parents[2] / "docs/how-to/gpu-network.md"
_LINKER: Final = "etc/ld.so.conf.d/gib.conf"
_UNIT: Final = """
import sys
sys.path.append("/stubs")
from systemd import Unit
for item in Unit("mine.service").environment().items(): print(*item, sep="=")
"""
"""Says what a process of a unit would have, as the stand-in of systemd reads it."""


def _started(vm: VM) -> dict[str, dict[str, str] | None]:
    """The environment of a program by how it is started: as the page's rows begin."""
    file = vm.disk / "etc/aiinfra/nccl.env"
    # docker takes all behind the first "=" as it is, quotes included; systemd takes quotes away.
    lines = file.read_text().splitlines() if file.exists() else []
    bare = [it for it in lines if it and not it.startswith("#")]
    assert not [it for it in bare if set(it) & set("\"'\\$ ")], bare
    unit = vm.disk / "etc/systemd/system/mine.service"
    units = []
    for setting in ("EnvironmentFile=-/etc/aiinfra/nccl.env\n", ""):
        unit.write_text(f"[Service]\n{setting}ExecStart=/bin/true\n")
        units.append(vm.said("python3", "-S", "-c", _UNIT))
    said = {
        "a login shell": vm.said("bash", "-c", "echo env | bash -l"),
        "`bash -lc`": vm.said("bash", "-lc", "env"),
        "`STARTUP_COMMAND`": units[0],
        "`docker run": "\n".join(bare) if file.exists() else None,
        "`bash -c`": vm.said("bash", "-c", "env"),
        # crontab(5): no file of a shell is read.
        "cron": vm.said("env", "--ignore-environment", "SHELL=/bin/sh", "sh", "-c", "env"),
        "a unit without": units[1],
    }
    return {how: None if text is None else _variables(text) for how, text in said.items()}


def _variables(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _uses(variables: dict[str, str] | None) -> str:
    """Which network NCCL is told by an environment, in the page's words; or all that is odd."""
    if variables is None:
        return "no file"
    libraries = variables.get("LD_LIBRARY_PATH", "").split(":")[0]
    net, first = variables.get("NCCL_NET"), variables.get("NCCL_SOCKET_IFNAME")
    if not _of_nccl(variables):
        return "not set"
    if (libraries, net, first) == ("/usr/local/gib/lib64", "gIB", "ens4"):
        return "gIB"
    if (libraries, net) == ("/var/lib/tcpxo/lib64", None) and "NCCL_FASTRAK_IFNAME" in variables:
        return "TCPXO"
    return "TCP" if _of_nccl(variables) == {"NCCL_SOCKET_IFNAME": "ens4"} else str(variables)


def _of_nccl(variables: dict[str, str]) -> dict[str, str]:
    return {
        name: text for name, text in variables.items() if name.startswith("NCCL_") or "gib" in text
    }


def _page(fabric: str) -> dict[str, str]:
    """A column of the page's table: what NCCL uses on that fabric, by how a program is started."""
    text = _PAGE.read_text("utf-8")
    head, *rows = re.findall(r"^\| started by .*(?:\n\|.*)*", text, re.MULTILINE)[0].splitlines()
    cells = [[it.strip() for it in row.strip("|").split("|")] for row in rows[1:]]
    column = [it.strip() for it in head.strip("|").split("|")].index(fabric)
    return {row[0]: row[column] for row in cells}


def _assert_as_the_page_says(vm: VM, fabric: str) -> None:
    """Who wins, the image or the VM, in every way to start a program."""
    told, found = _page(fabric), _started(vm)
    assert len(told) == len(found)
    for (row, said), (how, variables) in zip(told.items(), found.items(), strict=True):
        assert row.startswith(how)
        assert _uses(variables) == said, row


def _faults_of_login(vm: VM) -> list[str]:
    """What Test hears of a login shell."""
    ask = "import json; from aiinfra_vm.tasks import check; print(json.dumps(check._login()))"
    said = vm.said("python3", "-S", "-c", ask, PYTHONPATH="/opt/aiinfra/lib")
    found = json.loads(said)
    assert isinstance(found, list)
    return found


FIRST = dict.fromkeys(
    (
        "GLOO_SOCKET_IFNAME",
        "NCCL_SOCKET_IFNAME",
        "OMPI_MCA_btl_tcp_if_include",
        "OMPI_MCA_oob_tcp_if_include",
        "UCX_NET_DEVICES",
    ),
    "ens4",
)
"""What would use every interface is told the one that reaches all VMs."""


def test_an_a3_mega_gets_tcpxo_and_a_second_boot_installs_nothing(vm: VM) -> None:
    fabrics.a3_mega(vm)
    vm.stubs["dpkg-query"] = STUBS["dpkg-query"]
    (vm.disk / "simulated/packages").write_text("ii docker.io\nii containerd\n")

    first = vm.boot()

    assert first.returncode == 0, vm.detail("fabric")
    assert vm.calls("apt-mark") == ["apt-mark hold docker.io containerd"]
    stack = STACKS[Fabric.TCPXO]
    assert stack.daemon is not None
    pulled = [call.rpartition(" ")[2] for call in vm.calls("docker ") if " pull " in call]
    assert pulled == [stack.plugin.pinned, stack.daemon.pinned]
    assert all("@sha256:" in image for image in pulled)
    assert _environment(vm) == FIRST | {
        "CUDA_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7",
        "LD_LIBRARY_PATH": "/var/lib/tcpxo/lib64",
        "NCCL_FASTRAK_IFNAME": "enp6s0,enp6s1",
        "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": "/dev/aperture_devices",
        "NCCL_PROTO": "Simple,LL128",
    }
    assert _reported(vm) == {
        "kind": "tcpxo",
        "plugin": stack.plugin.pinned,
        "faults": [],
        "notes": [],
    }
    assert vm.read("etc/aiinfra/rxdm.env") == f"RXDM_IMAGE={stack.daemon.pinned}\n"
    # For kernels since 6.13, and what the plugin writes to as a user.
    assert 'MODULE_IMPORT_NS("DMA_BUF")' in vm.read(
        "simulated/src/dmabuf-import-helper-1.1/import-helper.c"
    )
    aperture = vm.disk / "sys/bus/pci/devices/0000:06:00.1/resource0"
    assert aperture.stat().st_mode & 0o777 == 0o666
    assert vm.read("var/lib/aiinfra/nvidia/libcuda.so.1") == "the driver"
    assert vm.read("etc/security/limits.d/90-aiinfra.conf").splitlines()[:2] == [
        "* - memlock unlimited",
        "* - nofile 1048576",
    ]
    assert list((vm.disk / "etc/apt/sources.list.d").iterdir()) == []
    _assert_as_the_page_says(vm, "A3 Mega")

    second = vm.boot()

    assert second.returncode == 0, vm.detail("fabric")
    assert vm.calls("apt-get") == []
    assert [call for call in vm.calls("docker ") if "image inspect" not in call] == []


def test_an_a3_ultra_gets_gib_in_one_version_which_is_held(vm: VM) -> None:
    fabrics.a3_ultra(vm)
    vm.server.values["network-interfaces/"] = json.dumps(
        [{"mtu": mtu} for mtu in (1460, 8896, 8896)]
    )

    first = vm.boot()

    assert first.returncode == 0, vm.detail("fabric")
    assert _environment(vm) == FIRST | {
        "LD_LIBRARY_PATH": "/usr/local/gib/lib64",
        "NCCL_IB_GID_INDEX": "3",
        "NCCL_IB_TC": "52",
        "NCCL_NET": "gIB",
        "NCCL_TUNER_CONFIG_PATH": "/usr/local/gib/configs/tuner_config_a3u.txtpb",
    }
    shell = _login(vm, LD_LIBRARY_PATH="/usr/local/gib/lib64:/mine", NCCL_DEBUG="INFO")
    mine = {"LD_LIBRARY_PATH": "/usr/local/gib/lib64:/mine", "NCCL_DEBUG": "INFO"}
    assert _of_nccl(shell) == _of_nccl(_environment(vm)) | mine
    assert _faults_of_login(vm) == []
    _assert_as_the_page_says(vm, "A3 Ultra")
    assert vm.calls("apt-mark") == ["apt-mark hold nccl-gib"]
    assert _reported(vm)["notes"] == []
    assert vm.calls("docker") == []

    vm.add_interface("gpu1rdma0", "10.2.0.2", mtu=1460)
    second = vm.boot()

    assert second.returncode == 0, vm.detail("fabric")
    assert vm.calls("apt-get") == []
    assert _reported(vm)["notes"] == [
        "the interfaces have the MTUs [1460, 1460, 8896], the networks [1460, 8896, 8896]"
    ]


def test_on_a4_the_settings_of_gib_count_that_it_makes_there_not_the_images(vm: VM) -> None:
    fabrics.a3_ultra(vm, tuner="a4")

    assert vm.boot().returncode == 0, vm.detail("fabric")

    assert vm.exists(_LINKER)
    assert _login(vm)["NCCL_TUNER_CONFIG_PATH"].endswith("tuner_config_a4.txtpb")
    _assert_as_the_page_says(vm, "A4")


def test_over_tcp_nccl_is_told_the_interface_that_reaches_all_vms(vm: VM) -> None:
    vm.add_interface("enp6s0", "10.1.0.2")
    fabric = {"kind": "tcp", "interfaces": 0, "plugin": None, "daemon": None}
    vm.configure(interfaces=2, fabric=fabric)

    assert vm.boot().returncode == 0, vm.detail("fabric")

    assert _environment(vm) == FIRST
    assert vm.calls("apt-get") == []
    shell = _login(vm, LD_LIBRARY_PATH="/mine")
    assert {name: text for name, text in shell.items() if name in FIRST} == FIRST
    assert shell["LD_LIBRARY_PATH"] == "/mine"
    _assert_as_the_page_says(vm, "several: TCP, as on A3 High")


def test_a_vm_with_one_interface_has_nothing_to_choose(vm: VM) -> None:
    (vm.disk / "etc/aiinfra").mkdir()
    (vm.disk / "etc/aiinfra/nccl.env").write_text("NCCL_NET=of_an_earlier_network\n")

    assert vm.boot().returncode == 0

    assert vm.detail("fabric") == "NCCL uses the one network interface that there is"
    assert not vm.exists("etc/aiinfra/nccl.env")
    assert (vm.exists(_LINKER), vm.calls("ldconfig")) == (False, ["ldconfig "])
    assert _login(vm)["IMAGE_NAME"] == "a-stage"
    assert _faults_of_login(vm) == []
    _assert_as_the_page_says(vm, "one interface")


def test_gib_stays_where_there_is_rdma_that_start_up_sets_nothing_up_for(vm: VM) -> None:
    (vm.disk / "sys/class/infiniband/rocep145s0").mkdir(parents=True)

    assert vm.boot().returncode == 0

    assert vm.exists(_LINKER)
    shell = _login(vm, LD_LIBRARY_PATH="/mine")
    assert (shell["NCCL_NET"], shell["NCCL_IB_TC"]) == ("gIB", "52")
    assert shell["LD_LIBRARY_PATH"] == "/usr/local/gib/lib64:/mine"
    assert _faults_of_login(vm) == []


def test_a_login_shell_that_has_another_network_than_jobs_is_told(vm: VM) -> None:
    assert vm.boot().returncode == 0
    (vm.disk / "root/.profile").write_text("NCCL_NET=gIB; export NCCL_NET\n")

    assert _faults_of_login(vm) == ["NCCL_NET=gIB instead of nothing"]

    (vm.disk / "etc/profile.d/zz-aiinfra-nccl.sh").unlink()
    assert "LD_LIBRARY_PATH=/usr/local/gib/lib64: instead of nothing" in _faults_of_login(vm)


def _late_interfaces(vm: VM) -> None:
    fabrics.a3_ultra(vm)
    there = vm.links["gpu1rdma0"]
    vm.add_interface("gpu1rdma0", state="DOWN")
    late = json.dumps([*(it for it in vm.links.values()), there])
    (vm.disk / "simulated/later.json").write_text(late)
    vm.stubs["ip"] = (
        "echo >>/simulated/tries; (($(wc -l </simulated/tries) < 4)) ||"
        " cp /simulated/later.json /simulated/links.json\n" + vm.stubs["ip"]
    )


def test_an_interface_that_comes_late_is_waited_for(vm: VM) -> None:
    _late_interfaces(vm)

    assert vm.boot().returncode == 0, vm.detail("gpu")

    assert vm.told["gpu_check"]["interfaces"] == 3


def _no_address(vm: VM) -> None:
    fabrics.a3_ultra(vm)
    vm.add_interface("gpu1rdma0")


def _sick(vm: VM) -> None:
    fabrics.a3_mega(vm)
    (vm.disk / "simulated/sick").touch()


def _no_module(vm: VM) -> None:
    fabrics.a3_mega(vm)
    vm.stubs["dkms"] = (
        "[[ $1 != install ]] || { echo Bad return status for module build; exit 10; }"
    )


def _few_apertures(vm: VM) -> None:
    fabrics.a3_mega(vm)
    (vm.disk / "sys/bus/pci/devices/0000:07:00.1/device").write_text("0x0042\n")


def _strange_interface(vm: VM) -> None:
    fabrics.a3_mega(vm)
    vm.stubs["docker"] = vm.stubs["docker"].replace("grep ^enp6", "grep -x lo")


def _no_rdma(vm: VM) -> None:
    fabrics.a3_ultra(vm, active=1)


def _no_network(vm: VM) -> None:
    fabrics.a3_ultra(vm)
    (vm.disk / "simulated/no-network").touch()


def _quoted(vm: VM) -> None:
    fabrics.a3_ultra(vm)
    vm.stubs["apt-get"] = vm.stubs["apt-get"].replace("NCCL_IB_TC=52", 'NCCL_IB_TC="5 2"')


FAULTS: dict[Callable[[VM], None], tuple[str, str]] = {
    _no_address: ("gpu", "gpu1rdma0 has no address\nthis VM has 2 network interfaces, not 3"),
    _sick: ("fabric", "the receive-datapath manager of TCPXO is not healthy"),
    _no_module: ("fabric", "the kernel module import-helper could not be built"),
    _few_apertures: ("fabric", "1 aperture device in /dev/aperture_devices, not 2"),
    _strange_interface: ("fabric", "NCCL_FASTRAK_IFNAME names 1 interface, not 2, of which lo"),
    _no_rdma: ("fabric", "1 RDMA device active, not 2: an image without their driver"),
    _no_network: ("fabric", "NCCL's plugin nccl-gib=1.1.0 could not be installed"),
    _quoted: ("fabric", "NCCL_IB_TC has characters that no environment file can hold"),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_a_fault_is_named_and_ends_the_start_up(vm: VM, fault: Callable[[VM], None]) -> None:
    step, said = FAULTS[fault]
    fault(vm)

    assert vm.boot().returncode == 1

    assert said in vm.detail(step)
    assert (vm.told["state"], vm.told["step"]) == ("failed", step)
