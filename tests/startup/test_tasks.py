"""The tasks that a VM can be asked to do, run as its agent runs them.

nvidia-smi and dcgmi are scripts that answer as the real ones do; NCCL and the driver are a library
in C with their interfaces, whose GPUs are this host's memory: what is called, how, and what becomes
of the processes when one fails, is the real thing.
"""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.startup.metadata_server import MetadataServer
from tests.startup.sandbox import PAYLOAD

if str(PAYLOAD / "lib") not in sys.path:
    sys.path.append(str(PAYLOAD / "lib"))

from aiinfra_vm import configuration, fabric
from aiinfra_vm.tasks import bandwidth, nccl
from aiinfra_vm.tasks import check as checking

SOURCE = Path(__file__).parent / "fake_gpu/nccl.c"
SECONDS = 60


@dataclass
class Ended:
    """How a task ended."""

    code: int
    result: Any
    said: str


def _begin(
    folder: Path, kind: str, arguments: dict[str, Any], **environment: str
) -> subprocess.Popen[str]:
    programs = folder / "programs"
    shutil.copytree(PAYLOAD / "lib", programs / "lib", ignore=shutil.ignore_patterns("__pycache__"))
    (programs / "config.json").write_text(json.dumps({"fabric": None}))
    file = folder / "arguments"
    file.write_text(json.dumps(arguments))
    with file.open() as given:
        return subprocess.Popen(
            [sys.executable, "-S", "-m", "aiinfra_vm.tasks", kind],
            env={"PATH": os.environ["PATH"], **environment, "PYTHONPATH": str(programs / "lib")},
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


def _end(process: subprocess.Popen[str]) -> Ended:
    out, err = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, json.loads(out) if out else None, err)


# ------------------------------------------------------------------------------------ check

GPU = "GPU-{0}, NVIDIA H100 80GB HBM3, 580.95.05, {1}, 0, [N/A]"
GOOD = [GPU.format(number, 0) for number in range(8)]
NO_ROWS = [f"GPU-{number}, No, No" for number in range(8)]


@pytest.fixture
def check(tmp_path: Path) -> Callable[..., Any]:
    """Run the check with programs that answer as given."""

    def run(gpus: list[str], rows: list[str], diag: str | None = None, *, smi_code: int = 0) -> Any:
        programs = tmp_path / "bin"
        programs.mkdir(exist_ok=True)
        (tmp_path / "gpus").write_text("".join(f"{line}\n" for line in gpus))
        (tmp_path / "apps").touch()
        (tmp_path / "rows").write_text("".join(f"{line}\n" for line in rows))
        _program(
            programs / "nvidia-smi",
            f"case $1 in --query-gpu=*) cat {tmp_path}/gpus; exit {smi_code};;\n"
            f"--query-remapped-rows=*) cat {tmp_path}/rows;;\n"
            f"--query-compute-apps=*) cat {tmp_path}/apps;; *) exit 2;; esac",
        )
        if diag is not None:
            (tmp_path / "diag").write_text(diag)
            _program(programs / "dcgmi", f'test "$*" = "diag -r 1 -j" && cat {tmp_path}/diag')
        path = f"{programs}:/usr/bin:/bin"
        ended = _end(_begin(tmp_path / "vm", "check", {}, PATH=path))
        assert ended.code == 0, ended.said
        return ended.result

    return run


def _program(file: Path, text: str) -> None:
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


def test_programs_of_others_on_the_gpus_are_named_and_left_alone(
    check: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "apps").write_text("41, python3\n52, /fts/daemon\n41, python3\n")
    (tmp_path / "bin").mkdir()
    _program(tmp_path / "bin/docker", 'test "$*" = "top aiinfra-rxdm -eo pid" && echo PID; echo 52')

    found = check(GOOD, NO_ROWS, json.dumps(_dcgm_4("Pass")))

    assert found["users"] == ["python3 (41)"]
    assert found["diagnostic"] == {"ran": False, "error": "its GPUs are in use", "failures": []}
    (tmp_path / "apps").write_text("52, /fts/daemon\n")
    (tmp_path / "vm").rename(tmp_path / "before")
    found = check(GOOD, NO_ROWS, json.dumps(_dcgm_4("Pass")))
    assert (found["users"], found["diagnostic"]["ran"]) == ([], True)


def test_a_good_vm_tells_of_all_its_gpus(check: Callable[..., Any]) -> None:
    found = check(GOOD, NO_ROWS, json.dumps(_dcgm_4("Pass")))
    assert found["error"] == ""
    assert [gpu["uuid"] for gpu in found["gpus"]] == [f"GPU-{number}" for number in range(8)]
    assert found["gpus"][0] == {
        "uuid": "GPU-0",
        "name": "NVIDIA H100 80GB HBM3",
        "driver": "580.95.05",
        "ecc_volatile": 0,
        "ecc_aggregate": 0,
        "repair_pending": False,
        "repair_failed": False,
    }
    assert found["diagnostic"] == {"ran": True, "error": "", "failures": []}
    assert (found["local_ssd"]["disks"], found["local_ssd"]["mounted"]) == (0, False)
    assert found["fabric"] == {"kind": "", "faults": []}


def test_errors_and_repairs_of_memory_are_those_of_their_gpu(check: Callable[..., Any]) -> None:
    rows = ["GPU-0, No, No", "GPU-1, Yes, No", "GPU-2, No, Yes"]
    found = check([GPU.format(0, 3), GPU.format(1, 0), GPU.format(2, 0)], rows)
    assert [gpu["ecc_volatile"] for gpu in found["gpus"]] == [3, 0, 0]
    assert [gpu["repair_pending"] for gpu in found["gpus"]] == [False, True, False]
    assert [gpu["repair_failed"] for gpu in found["gpus"]] == [False, False, True]


def test_gpus_without_counters_and_rows_are_no_failure(check: Callable[..., Any]) -> None:
    (gpu,) = check(["GPU-0, Tesla T4, 580.95.05, [N/A], [N/A], Yes"], [])["gpus"]
    assert (gpu["ecc_volatile"], gpu["ecc_aggregate"]) == (None, None)
    assert gpu["repair_pending"]


def test_a_gpu_that_fell_off_the_bus_is_told_in_the_drivers_words(
    check: Callable[..., Any],
) -> None:
    words = "Unable to determine the device handle for GPU0000:04:00.0: Unknown Error"
    found = check([words], [], smi_code=15)
    assert found["gpus"] == []
    assert found["error"] == f"nvidia-smi: exit code 15: {words}"


def test_without_dcgm_the_check_says_so(check: Callable[..., Any]) -> None:
    assert check(GOOD, NO_ROWS)["diagnostic"] == {
        "ran": False,
        "error": "there is no dcgmi",
        "failures": [],
    }


def _dcgm_4(status: str) -> Any:
    result = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 5, "status": status}
    if status == "Fail":
        result |= {"warnings": [{"error_id": 95, "warning": "Row remap failure"}]}
    tests = [{"name": "software", "results": [result], "test_summary": {"status": status}}]
    return {"DCGM Diagnostic": {"test_categories": [{"category": "Deployment", "tests": tests}]}}


@pytest.mark.parametrize(
    ("answer", "failures"),
    [
        (_dcgm_4("Fail"), ["software of GPU 5: Row remap failure"]),
        (
            {
                "DCGM GPU Diagnostic": {
                    "test_categories": [
                        {
                            "category": "Deployment",
                            "tests": [
                                {"name": "Denylist", "results": [{"status": "PASS"}]},
                                {
                                    "name": "Page Retirement/Row Remap",
                                    "results": [
                                        {"gpu_ids": "3", "status": "FAIL", "warnings": "pending"}
                                    ],
                                },
                                {"name": "Inforom", "results": [{"status": "SKIP"}]},
                            ],
                        }
                    ]
                }
            },
            ["Page Retirement/Row Remap of GPU 3: pending"],
        ),
    ],
    ids=["4", "3"],
)
def test_what_dcgm_found_is_named_in_the_forms_of_both_its_versions(
    check: Callable[..., Any], answer: Any, failures: list[str]
) -> None:
    found = check(GOOD, NO_ROWS, json.dumps(answer))["diagnostic"]
    assert found == {"ran": True, "error": "", "failures": failures}


# -------------------------------------------------------------------------------- bandwidth


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the library that stands in for NCCL and the driver."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc)")
    folder = tmp_path_factory.mktemp("libraries")
    made = folder / "libnccl.so.2"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(made), str(SOURCE)],
        check=True,
    )
    (folder / "libcuda.so.1").symlink_to(made)
    return folder


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def measure(tmp_path: Path) -> Iterator[Callable[..., dict[str, Ended]]]:
    """Run the measurement on VMs of one host: name of a VM -> how it ended there."""
    with contextlib.ExitStack() as servers:

        def run(
            groups: list[list[str]],
            *,
            collective: str = "all_gather",
            only: dict[str, dict[str, str]] | None = None,
            **environment: str,
        ) -> dict[str, Ended]:
            arguments = {
                "groups": [
                    [{"name": name, "address": "127.0.0.1"} for name in group] for group in groups
                ],
                "port": _port(),
                "word": "5f1c",
                "gpus": 2,
                "collective": collective,
                "sizes": [1024, 65536],
            }
            begun = {}
            for name in [name for group in groups for name in group]:
                server = servers.enter_context(MetadataServer({"name": name}))
                begun[name] = _begin(
                    tmp_path / name,
                    "bandwidth",
                    arguments,
                    GCE_METADATA_HOST=server.host,
                    **{**environment, **(only or {}).get(name, {})},
                )
            return {name: _end(process) for name, process in begun.items()}

        yield run


@pytest.mark.parametrize("collective", ["all_gather", "all_reduce"])
def test_two_vms_with_two_gpus_each_measure_and_compare_every_value(
    measure: Callable[..., dict[str, Ended]], libraries: Path, collective: str
) -> None:
    ended = measure([["a", "b"]], collective=collective, LD_LIBRARY_PATH=str(libraries))
    assert {name: it.code for name, it in ended.items()} == {"a": 0, "b": 0}, ended
    first = ended["a"].result
    assert [row["size"] for row in first["rows"]] == [1024, 65536]
    assert all(row["out_of_place"] > 0 and row["in_place"] > 0 for row in first["rows"])
    assert [row["wrong"] for row in first["rows"]] == [0, 0]
    assert first["nccl"] == "2.28.7"
    assert first["library"] == first["plugin"] == str(libraries / "libnccl.so.2")
    assert first["plugin_nccl"] == "2.28.7"
    assert [it.result["networks"] for it in ended.values()] == [["Socket"], ["Socket"]]
    assert "rows" not in ended["b"].result


def test_what_is_measured_is_the_nccl_that_jobs_load_which_is_pytorchs_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytorch, plugin = (tmp_path / it / nccl.NAME for it in ("torch", "plugin"))
    for file in (pytorch, plugin):
        file.parent.mkdir()
        file.touch()
    monkeypatch.setattr(nccl, "_OF_PYTORCH", (str(pytorch.parent),))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(plugin.parent))

    assert nccl.library() == str(pytorch)
    assert list(nccl.named()) == [str(plugin)]
    monkeypatch.setenv("LD_PRELOAD", str(plugin))
    assert nccl.library() == str(plugin)


def test_gpus_that_somebody_has_taken_meanwhile_are_not_measured_with(
    measure: Callable[..., dict[str, Ended]], libraries: Path, tmp_path: Path
) -> None:
    _program(tmp_path / "nvidia-smi", "echo 41, python3")
    path = f"{tmp_path}:/usr/bin:/bin"
    ended = measure([["a"]], LD_LIBRARY_PATH=str(libraries), PATH=path)
    assert ended["a"].result == {
        "measured": False, "users": ["python3 (41)"], "why": "its GPUs are in use",
    }  # fmt: skip


def test_wrong_values_are_counted(
    measure: Callable[..., dict[str, Ended]], libraries: Path
) -> None:
    ended = measure([["a"]], LD_LIBRARY_PATH=str(libraries), FAKE_WRONG="1")
    assert [row["wrong"] for row in ended["a"].result["rows"]] == [1, 1]


def test_when_one_process_fails_all_end_and_its_vm_has_nccls_words(
    measure: Callable[..., dict[str, Ended]], libraries: Path
) -> None:
    ended = measure([["a", "b"]], LD_LIBRARY_PATH=str(libraries), FAKE_FAILS="3")
    assert {name: it.code for name, it in ended.items()} == {"a": 1, "b": 1}
    assert "process 3: exit code 1" in ended["b"].said
    assert "Cuda failure 'out of memory'" in ended["b"].said
    assert "unhandled system error" in ended["b"].said
    assert "process 3 is gone" in ended["a"].said


def test_a_vm_without_a_gpu_ends_the_measurement_for_all(
    measure: Callable[..., dict[str, Ended]], libraries: Path
) -> None:
    ended = measure([["a", "b"]], LD_LIBRARY_PATH=str(libraries), only={"a": {"FAKE_GPUS": "1"}})
    assert "cuDeviceGet: CUDA error 101" in ended["a"].said
    assert ended["b"].code == 1


def test_a_vm_without_nccl_says_that_nothing_was_measured(
    measure: Callable[..., dict[str, Ended]],
) -> None:
    ended = measure([["a"]])["a"]
    assert ended.code == 0
    assert ended.result == {"measured": False, "why": "there is no libnccl.so.2 on this VM"}


def test_the_processes_have_the_environment_of_the_fabric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "nccl.env"
    file.write_text("# a remark\nNCCL_NET=gIB\nLD_LIBRARY_PATH=/usr/local/gib/lib64\n")
    monkeypatch.setattr(fabric, "ENVIRONMENT", file)
    monkeypatch.setenv("LD_LIBRARY_PATH", "/elsewhere")
    found = bandwidth._environment()
    assert found["NCCL_NET"] == "gIB"
    assert found["LD_LIBRARY_PATH"] == "/usr/local/gib/lib64"
    assert found["NCCL_DEBUG"] == "INFO"
    assert found["PATH"] == os.environ["PATH"]


def test_a_fabric_that_was_never_set_up_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fabric, "ENVIRONMENT", tmp_path / "nccl.env")
    monkeypatch.setattr(configuration, "value", lambda _: {"kind": "gib", "interfaces": 8})
    found = checking._fabric()
    assert found == {"kind": "gib", "faults": [f"{tmp_path}/nccl.env is missing"]}
