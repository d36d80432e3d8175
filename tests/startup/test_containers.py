"""The step `containers`, which a job with an image begins: docker, NVIDIA's runtime, the image."""

import pytest

from tests.startup.sandbox import VM

# Programs that come with packages are stand-ins, too.
_APT = r"""
for argument; do
  case $argument in
    docker.io | nvidia-container-toolkit=*) name=${argument%%=*}; cp "/simulated/$name" "/stubs/${name/docker.io/docker}" ;;
  esac
done
[[ ! -e /stubs/nvidia-container-toolkit ]] || mv /stubs/nvidia-container-toolkit /stubs/nvidia-ctk
"""  # noqa: E501 - one case
_CURL = r"""
case $* in *nvidia.github.io/libnvidia-container/gpgkey*)
  while [[ $1 != --output ]]; do shift; done
  echo key >"$2"; exit ;;
esac
"""
_DOCKER = r"""#!/bin/bash
echo "docker $*" >>/calls
case "$*" in
  "info "*) cat /simulated/runtimes 2>/dev/null ;;
  *" login "*) [[ $(cat) == token-of-the-vm ]] ;;
  *" pull "*missing*) echo "manifest unknown" >&2; exit 1 ;;
esac
"""
_CTK = """#!/bin/bash
echo "nvidia-ctk $*" >>/calls
echo '{"nvidia": {}, "runc": {}}' >/simulated/runtimes
"""


@pytest.fixture
def plain(vm: VM) -> VM:
    """A VM with two GPUs whose image has neither docker nor the toolkit."""
    vm.stubs["apt-get"] = _APT
    vm.stubs["apt-mark"] = ""
    vm.stubs["dpkg"] = "echo amd64"
    vm.stubs["curl"] = _CURL + vm.stubs["curl"]
    (vm.disk / "simulated/docker.io").write_text(_DOCKER)
    (vm.disk / "simulated/nvidia-container-toolkit").write_text(_CTK)
    for name in ("docker.io", "nvidia-container-toolkit"):
        (vm.disk / "simulated" / name).chmod(0o755)
    vm.server.values["service-accounts/default/token"] = '{"access_token": "token-of-the-vm"}'
    return vm


def _prepare(vm: VM, *images: str) -> list[str]:
    """Have the step run for images, one after the other; how each ended."""
    steps = (
        f"JOB_IMAGE={image} bash /root/startup-script step containers 600 >>/said 2>&1;"
        " echo $? >>/ended"
        for image in images
    )
    # This machine may have docker, which the tests of the image install.
    own = "mkdir /own; ln -s /usr/sbin/* /usr/bin/* /own 2>/dev/null; rm -f /own/docker"
    vm.configure(f"{own}; export PATH=/stubs:/own; " + "; ".join(steps))
    assert vm.boot().returncode == 0
    return vm.read("ended").split()


GOOGLES = "us-docker.pkg.dev/my-project/a/b:1"


def test_what_a_vm_lacks_comes_once_and_only_google_hears_of_its_token(plain: VM) -> None:
    assert _prepare(plain, "ghcr.io/a/b:1", GOOGLES) == ["0", "0"], plain.read("said")

    installed = [call for call in plain.calls("apt-get") if " install " in call]
    assert sum("docker.io" in call for call in installed) == 1
    (toolkit,) = [call for call in installed if "nvidia-container-toolkit=" in call]
    assert toolkit.count("=1.17.7-1") == 4
    assert len(plain.calls("nvidia-ctk runtime configure --runtime=docker")) == 1
    assert "systemctl reload docker" in plain.calls("systemctl")
    assert list((plain.disk / "etc/apt/sources.list.d").iterdir()) == []
    pulled = [call.rpartition(" ")[2] for call in plain.calls("docker ") if " pull " in call]
    assert pulled == ["ghcr.io/a/b:1", GOOGLES]
    (login,) = [call for call in plain.calls("docker ") if " login " in call]
    assert login.endswith("https://us-docker.pkg.dev")


def test_an_image_that_there_is_not_is_said_at_once_and_by_its_name(plain: VM) -> None:
    assert _prepare(plain, "ghcr.io/a/missing:1") == ["1"]
    assert len([call for call in plain.calls("docker ") if " pull " in call]) == 1
    assert "the image ghcr.io/a/missing:1 can't be pulled" in plain.read("said")
