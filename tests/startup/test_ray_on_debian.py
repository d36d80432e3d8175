"""The step ray from the first to the last on a real system: apt, venv, pip, its unit, and users."""

import os
import shutil
from collections.abc import Iterator

import pytest

from provision.settings.model import Settings
from tests.startup import roots
from tests.startup.debian_vm import DebianVM
from tests.startup.group import Group, Site
from tests.startup.sandbox import PAYLOAD

# Only on one release, as it takes a minute: the one whose Python and systemd the room of VMs, which
# is the machine's own, most likely has not.
pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.parametrize("root", [roots.Release.DEBIAN_13], indirect=True, scope="session"),
]

VERSION: str = Settings.model_fields["ray_version"].default
PIP = "[global]\nno-index = true\nfind-links = /srv/shared/wheels\n"
HELLO = "import ray; ray.init(); print(ray.get(ray.remote(lambda: 6 * 7).remote()))"


@pytest.fixture(scope="module")
def ray(
    site: Site, root: roots.Root, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DebianVM]:
    """A VM on which start-up has set up Ray, and a person who has come by ssh."""
    folder = tmp_path_factory.mktemp("ray")
    with Group(site, folder, root) as group:
        group.set_size(1)
        pins = PAYLOAD / f"ray-{VERSION}.txt"
        wheels = roots.wheels(root.release, f"ray[default]=={VERSION}", pins)
        shutil.copytree(wheels, group.shared / "wheels", copy_function=os.link)
        vm = group.vm("train-vm-1")
        vm.write("etc/pip.conf", PIP)
        vm.configure(ray={"version": VERSION})
        booted = vm.boot()
        assert booted.returncode == 0, booted.stderr + vm.detail("ray")
        vm.run("useradd --create-home --shell /bin/bash someone")
        yield vm


def test_a_person_runs_tasks_without_any_right(ray: DebianVM) -> None:
    assert "42" in ray.run(f"python -c '{HELLO}'", user="someone").splitlines()


def test_a_person_submits_jobs_that_run_as_rays_own_user(ray: DebianVM) -> None:
    said = ray.run("ray job submit -- id --user --name 2>&1", user="someone")

    assert "aiinfra-ray" in said.splitlines()


def test_nothing_of_ray_is_roots(ray: DebianVM) -> None:
    owners = ray.run("ps -o user:20= -C raylet,gcs_server").split()

    assert set(owners) == {"aiinfra-ray"}


def test_ray_is_back_after_a_reboot_and_nothing_is_installed_again(ray: DebianVM) -> None:
    before = ray.run("stat --format %Y /opt/aiinfra/ray/pyvenv.cfg")
    ray.turn_off()

    booted = ray.boot()

    assert booted.returncode == 0, booted.stderr
    assert ray.states()["ray"] == "done"
    assert ray.run("stat --format %Y /opt/aiinfra/ray/pyvenv.cfg") == before
    assert "42" in ray.run(f"python -c '{HELLO}'", user="someone").splitlines()
