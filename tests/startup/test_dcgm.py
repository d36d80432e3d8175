"""DCGM: which packages, from which source, and that it gives values before the step is done."""

from typing import Any

import pytest

from tests.startup.sandbox import VM

DCGM = "datacenter-gpu-manager-4"
LIST = "etc/apt/sources.list.d/nvidia-of-the-image.list"
SOURCE = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2204/x86_64/ /\n"


def _installed(vm: VM) -> list[str]:
    calls = [call for call in vm.calls("apt-get") if " install " in call]
    return [
        word for call in calls for word in call.split() if word.startswith(("data", "/", "--i"))
    ]


def _is_done(vm: VM, **config: Any) -> None:
    vm.configure(ops_agent=True, **config)
    assert vm.boot().returncode == 0
    assert vm.states()["ops-agent"] == "done", vm.detail("ops-agent")


@pytest.mark.parametrize(
    ("accelerator", "driver", "cuda", "field"),
    [
        ("nvidia-tesla-a100", "CUDA Version: 13.0", 13, 1001),
        ("nvidia-tesla-v100", "CUDA Version: 13.0", 12, 1001),
        ("nvidia-tesla-p4", "CUDA Version: 13.0", 12, 203),
    ],
)
def test_what_is_installed_has_library_and_module_for_the_gpu(
    vm: VM, accelerator: str, driver: str, cuda: int, field: int
) -> None:
    vm.stubs["nvidia-smi"] = vm.stubs["nvidia-smi"].replace("CUDA Version: 12.8", driver)
    _is_done(vm, gpus={"count": 2, "accelerator": accelerator})
    assert _installed(vm) == [
        "/var/lib/aiinfra/cuda-keyring.deb",
        "--install-recommends",
        f"{DCGM}-cuda{cuda}",
        f"{DCGM}-dev",
    ]
    assert {call.split()[3] for call in vm.calls("dcgmi")} == {str(field)}
    calls = vm.calls()
    after = calls[calls.index(vm.calls("dcgmi")[-1]) :]
    assert "systemctl restart google-cloud-ops-agent.service" in after


def test_a_source_that_the_image_has_is_used_as_it_is(vm: VM) -> None:
    text = f"deb [signed-by=/usr/share/keyrings/other.gpg] {SOURCE}"
    (vm.disk / LIST).write_text(text)
    _is_done(vm)
    assert _installed(vm)[0] == "--install-recommends", "no keyring of ours"
    assert vm.read(LIST) == text


def test_a_host_engine_that_the_agent_cannot_use_is_made_whole(vm: VM) -> None:
    # As Google's guides of last year installed it: DCGM 4 that runs, without -dev and the module.
    for name in (f"{DCGM}-core", "nvidia-dcgm.service"):
        (vm.disk / "simulated" / name).touch()
    _is_done(vm)
    assert f"{DCGM}-dev" in _installed(vm)


def test_what_is_whole_is_left_alone(vm: VM) -> None:
    for name in (f"{DCGM}-dev", f"{DCGM}-proprietary", "nvidia-dcgm.service"):
        (vm.disk / "simulated" / name).touch()
    _is_done(vm)
    assert _installed(vm) == []


def test_packages_of_the_driver_are_held_and_no_others(vm: VM) -> None:
    (vm.disk / "simulated/packages").write_text(
        "ii  libnvidia-compute-580\nii  nvidia-driver-580-open\nii  linux-modules-nvidia-580-gcp\n"
        "ii  nvidia-container-toolkit\nrc  nvidia-kernel-common-570\nii  linux-image-gcp\n"
    )

    assert vm.boot().returncode == 0

    (held,) = vm.calls("apt-mark hold")
    assert set(held.split()[2:]) == {
        "libnvidia-compute-580",
        "nvidia-driver-580-open",
        "linux-modules-nvidia-580-gcp",
        "linux-image-gcp",
    }
