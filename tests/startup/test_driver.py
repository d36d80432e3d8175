"""NVIDIA's driver on images that have none: by Google's installer, over the reboot it asks for."""

import pytest

from tests.startup.sandbox import VM

INSTALLER = "install_driver --installation-mode binary --installation-branch lts"


@pytest.fixture
def plain(vm: VM) -> VM:
    """A VM of a plain image, on which the driver comes with its installer."""
    (vm.disk / "simulated/nvidia-smi").write_text(f"#!/bin/bash\n{vm.stubs.pop('nvidia-smi')}\n")
    (vm.disk / "simulated/nvidia-smi").chmod(0o755)
    vm.configure("echo ran >/out")
    return vm


def test_the_driver_is_installed_over_a_reboot_that_is_no_failure(plain: VM) -> None:
    first = plain.boot()

    assert "the VM goes down during gpu" in first.stderr
    assert plain.told["state"] == "running", "the boot that was cut off has not failed"
    assert not plain.exists("out")

    second = plain.boot()

    assert second.returncode == 0, plain.detail("gpu")
    assert (plain.told["number"], plain.told["state"]) == (2, "done")
    assert plain.told["gpu_check"]["gpus"] == 2
    assert [call.partition("pyz ")[2] for call in plain.calls("python3 /var")] == [INSTALLER]
    assert plain.read("out") == "ran\n"


def test_a_driver_that_cannot_be_installed_ends_in_no_loop_of_reboots(plain: VM) -> None:
    (plain.disk / "simulated/no-driver").touch()

    assert plain.boot().returncode == 1

    assert "has been run 4 times, and there is none" in plain.detail("gpu")
    assert len(plain.calls("python3 /var")) == 4
    assert plain.boot().returncode == 1
    assert plain.calls("python3 /var") == []


@pytest.mark.parametrize(
    "release", ['ID=rocky\nVERSION_ID="9.6"\n', 'ID=ubuntu\nVERSION_ID="25.10"\n']
)
def test_a_system_that_the_installer_does_not_know_is_named_at_once(
    plain: VM, release: str
) -> None:
    (plain.disk / "etc/os-release").write_text(release)

    assert plain.boot().returncode == 1

    assert "Debian 12 and 13 and Ubuntu 22.04, 24.04 and 26.04 on x86 alone" in plain.detail("gpu")


def test_an_image_with_a_driver_of_its_own_is_left_to_it(plain: VM) -> None:
    (plain.disk / "opt/deeplearning").mkdir()

    assert plain.boot().returncode == 1

    assert "the NVIDIA driver does not answer" in plain.detail("gpu")
    assert plain.calls("python3 /var") == []
