"""ssh between the VMs of a group, by the real sshd, agent and systemd of each Debian release."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.startup.debian_vm import DebianVM
from tests.startup.group import ACCOUNT, Group, Site
from tests.startup.roots import Root
from tests.waiting import until

# The first of them makes the roots, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

USER = "aiinfra"
# Of whoever has no right to a VM's key, and to whom its host is the same as any.
STRANGER = "-o IdentitiesOnly=yes -o StrictHostKeyChecking=no -o BatchMode=yes"
ASKED = "-o PreferredAuthentications=password,keyboard-interactive"


@pytest.fixture(scope="module")
def group(site: Site, root: Root, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    """A group that is to have two VMs."""
    with Group(site, tmp_path_factory.mktemp("group"), root) as made:
        made.set_size(2)
        yield made


@pytest.fixture(scope="module")
def vms(group: Group) -> list[DebianVM]:
    """The VMs of that group."""
    return _boot(group, "train-vm-a", "train-vm-b")


def _boot(group: Group, *names: str) -> list[DebianVM]:
    vms = [group.vm(name) for name in names]
    for vm in vms:
        vm.configure(gpus=None, node_ssh=True)
        vm.turn_on()
    for vm in vms:
        vm.settle()
        assert vm.states()["agent"] == "done", vm.detail("agent")
    return vms


def _address(vm: DebianVM) -> str:
    return vm.server.values["network-interfaces/0/ip"]


def _refused(run: Callable[[], Any]) -> str:
    with pytest.raises(RuntimeError) as refused:
        run()
    return str(refused.value)


def test_the_vms_of_a_group_reach_each_other_by_name_and_address(vms: list[DebianVM]) -> None:
    for one, other in (vms, reversed(vms)):
        # As Google's DNS does.
        one.run(f"echo '{_address(other)} {other.name}' >>/etc/hosts")
        for name in (_address(other), other.name):
            assert one.run(f"ssh {name} hostname", user=USER).strip() == other.name
    assert vms[0].run(f"ssh {_address(vms[0])} id -un", user=USER).strip() == USER
    assert vms[0].run("id -Gn", user=USER).split() == [USER]


def test_the_roster_says_whose_tokens_the_vms_get(group: Group, vms: list[DebianVM]) -> None:
    found = json.loads(group.read("vms/roster.json") or b"")["members"]
    assert [it["account"] for it in found] == [ACCOUNT] * len(vms)


def test_a_key_is_good_from_its_own_vm_alone_and_for_this_user_alone(vms: list[DebianVM]) -> None:
    first, second = vms
    stolen = first.run("cat ~/.ssh/id_ed25519", user=USER)
    keep = "install -d -m 700 /root/.ssh && cat >/root/.ssh/key && chmod 600 /root/.ssh/key"
    second.run(f"printf %s '{stolen}' | ({keep})")
    ssh = f"ssh -i /root/.ssh/key {STRANGER}"

    assert "Permission denied" in _refused(
        lambda: second.run(f"{ssh} {USER}@{_address(first)} true")
    )
    assert "Permission denied" in _refused(
        lambda: first.run(f"ssh root@{_address(second)} true", user=USER)
    )
    # It is asked for no password, as all others are still.
    for user, ways in ((USER, "(publickey)"), ("root", "(publickey,password)")):
        said = _refused(
            lambda user=user: second.run(f"{ssh} {ASKED} {user}@{_address(first)} true")  # type: ignore[misc]  # bound early
        )
        assert ways in said


def test_a_vm_that_was_made_again_is_let_in_and_known_by_its_new_keys(
    group: Group, vms: list[DebianVM]
) -> None:
    first, second = vms
    second.kill()

    (again,) = _boot(group, second.name)

    until(lambda: _address(again) in first.run("cat /etc/aiinfra/ssh/known_hosts"), pace=0.2)
    assert first.run(f"ssh {_address(again)} hostname", user=USER).strip() == again.name
    assert again.run(f"ssh {_address(first)} hostname", user=USER).strip() == first.name
    assert _address(second) not in first.run("cat /etc/aiinfra/ssh/authorized_keys")


def test_without_node_ssh_there_is_no_user_and_no_key(debian: DebianVM) -> None:
    debian.configure(node_ssh=False)

    assert debian.boot().returncode == 0

    assert USER not in debian.run("cut -d: -f1 /etc/passwd").split()
    assert not debian.exists("etc/ssh/sshd_config.d/50-aiinfra.conf")
    assert debian.run("grep NNODES /run/aiinfra/peers.env").strip() == "NNODES=1"


# The last of those with these VMs, as it takes the first one's key away.
def test_links_in_the_users_home_lead_root_nowhere(group: Group, vms: list[DebianVM]) -> None:
    vm = vms[0]
    vm.run("mkdir -p /etc/cron.d; umask 077; echo ssh-ed25519 the-secret-of-root >/root/secret")
    vm.run(
        "cd ~/.ssh && rm -f * && ln -s /etc/shadow shadow && ln -s /etc/cron.d/key id_ed25519"
        " && ln -s /root/secret id_ed25519.pub && ln -s /etc/cron.d/config .config.new",
        user=USER,
    )
    before = vm.run("ls -l /etc/cron.d /etc/shadow /root/secret")

    vm.turn_off()
    vm.turn_on()
    vm.settle()

    assert vm.run("ls -l /etc/cron.d /etc/shadow /root/secret") == before
    assert b"the-secret-of-root" not in (group.read(f"vms/members/{vm.name}.json") or b"")
    # The VM has its rank all the same.
    assert "NODE_RANK" in vm.run("cat /run/aiinfra/peers.env")
