"""VMs that don't reach the internet as others do: a proxy that reads TLS, mirrors, Google alone.

On the real system of each Debian release: its systemd, apt, curl, pip and certificates.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.intercepting import Company, Proxy
from tests.startup import namespaces
from tests.startup.debian_vm import DebianVM
from tests.startup.group import Group, Site
from tests.startup.roots import Root
from tests.startup.sandbox import VM
from tests.startup.test_boots import MOUNTS

pytestmark = pytest.mark.timeout(900)

BUCKETS = [it for it in MOUNTS if it["type"] == "gcsfuse"]
GOOGLES = ("packages.cloud.google.com", "dl.google.com", "storage.googleapis.com")
NAMES = "".join(f"{namespaces.INTERNET} {name}\n" for name in GOOGLES)
PLACE = (namespaces.INTERNET, 3128)
AROUND = "metadata.google.internal,169.254.169.254,localhost,127.0.0.1"
BEHIND = {"proxy": "http://{}:{}".format(*PLACE), "no_proxy": AROUND}
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
ALL: dict[str, Any] = {"mounts": BUCKETS, "ops_agent": True, "gpus": None, "name_prefix": "np-bake"}


class Lonely(Group):
    """A group of one VM for which only what a test opens is the internet."""

    def __init__(self, site: Site, folder: Path, root: Root) -> None:
        super().__init__(site, folder, root)
        self.set_size(1)
        self.machine = self.vm("train-vm-1")
        # The names of the internet lead nowhere, as without a resolver of one's own.
        known = f"127.0.0.1 localhost\n{namespaces.METADATA} metadata.google.internal\n"
        self.machine.write("etc/hosts", known)


@pytest.fixture
def lonely(tmp_path: Path, site: Site, root: Root) -> Iterator[Lonely]:
    """Such a group, whose VMs end with the test."""
    with Lonely(site, tmp_path, root) as made:
        yield made


@pytest.fixture
def company(tmp_path: Path) -> Company:
    """Who runs the proxy."""
    (tmp_path / "company").mkdir()
    return Company(tmp_path / "company")


@pytest.fixture
def proxy(lonely: Lonely, company: Company, site: Site) -> Iterator[Proxy]:
    """A proxy in the VM's network, which reads all that the VM asks the internet for."""
    with lonely.machine.network.entered():
        made = Proxy(company, site.internet.sites, PLACE)
    with made:
        yield made


def _seen(vm: DebianVM) -> list[dict[str, str]]:
    """Of the way out, what a unit and a person who logs in have in their environment."""
    seen = [vm.run("systemd-run --quiet --wait --pipe env"), vm.run("su --login --command env")]
    names = ("https_proxy", "SSL_CERT_FILE")
    told = [dict(line.partition("=")[::2] for line in it.splitlines()) for it in seen]
    return [{name: it[name] for name in names if it.get(name)} for it in told]


def test_all_goes_by_a_proxy_that_reads_tls(lonely: Lonely, proxy: Proxy, company: Company) -> None:
    vm = lonely.machine
    way_out = BEHIND | {"certificates": company.certificate}
    vm.configure("echo begun >>/out", outbound=way_out, **ALL)

    ended = vm.boot()

    assert ended.returncode == 0, ended.stderr
    assert {it: state for it, state in vm.states().items() if state == "failed"} == {}
    assert set(GOOGLES) <= proxy.asked
    # What starts later finds it too: units, and whoever logs in.
    assert _seen(vm) == [{"https_proxy": proxy.url, "SSL_CERT_FILE": BUNDLE}] * 2
    vm.run("su --login --command 'curl --fail --silent https://dl.google.com/'")


@pytest.mark.usefixtures("proxy")
def test_a_vm_that_has_no_proxy_any_more_goes_without(
    lonely: Lonely, company: Company, site: Site
) -> None:
    vm = lonely.machine
    trusted = company.certificate + site.internet.certificate
    vm.configure(gpus=None, outbound=BEHIND | {"certificates": trusted})
    assert vm.boot().returncode == 0
    vm.turn_off()
    vm.write("etc/hosts", vm.read("etc/hosts") + NAMES)
    vm.configure(gpus=None, outbound={"certificates": site.internet.certificate})

    assert vm.boot().returncode == 0

    assert _seen(vm) == [{"SSL_CERT_FILE": BUNDLE}] * 2
    # What began before the start-up script had the old one, and was begun again.
    agent = vm.run("systemctl show --value --property MainPID aiinfra-agent").strip()
    assert "https_proxy=http" not in vm.run(f"cat /proc/{agent}/environ")
    assert company.certificate not in vm.run(f"cat {BUNDLE}")


def test_packages_come_from_a_mirror_but_those_of_google(lonely: Lonely) -> None:
    vm = lonely.machine
    vm.write("etc/apt/sources.list", "deb http://packages.example.org/debian stable main\n")
    vm.write("etc/apt/mirrors/ubuntu.list", "http://us-central1.gce.archive.ubuntu.com/ubuntu/\n")
    mirror = {"apt_mirror": "https://mirror.example.com/apt"}
    vm.write("etc/hosts", vm.read("etc/hosts") + NAMES)
    vm.configure(gpus=None, outbound=mirror, mounts=BUCKETS)

    ended = vm.boot()

    assert ended.returncode == 0, ended.stderr
    assert vm.read("etc/apt/sources.list") == (
        "deb https://mirror.example.com/apt/packages.example.org/debian stable main\n"
    )
    assert vm.read("etc/apt/mirrors/ubuntu.list") == (
        "https://mirror.example.com/apt/archive.ubuntu.com/ubuntu/\n"
    )
    # gcsfuse came from Google, although nothing but Google's hosts can be reached.
    assert vm.states()["mounts"] == "done"
    vm.turn_off()
    vm.configure(gpus=None, mounts=BUCKETS)
    assert vm.boot().returncode == 0
    assert vm.read("etc/apt/sources.list") == "deb http://packages.example.org/debian stable main\n"


def test_ray_comes_from_an_index_of_ones_own_and_the_token_is_on_no_command_line(vm: VM) -> None:
    index = "https://us-python.pkg.dev/my-project/pypi/simple"
    vm.stubs["python3"] = vm.stubs["python3"].replace(
        'echo "pip $*"', 'cp "$NETRC" /simulated/netrc; echo "pip $*"'
    )
    vm.configure(ray={"version": "2.60.0"}, outbound={"pip_index": index})

    assert vm.boot().returncode == 0

    (call,) = vm.calls("pip")
    assert f"--index-url {index}" in call
    assert "token-of-the-vm" not in call
    login = "machine us-python.pkg.dev login oauth2accesstoken password token-of-the-vm\n"
    assert vm.read("simulated/netrc") == login
    assert not (vm.disk / "opt/aiinfra/netrc").exists()
