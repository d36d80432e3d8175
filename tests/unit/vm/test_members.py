"""What VMs say of themselves: any program on any of them could have written it."""

import base64
import functools
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from aiinfra_vm import jobs, members, metadata, node_ssh, peers
from aiinfra_vm.members import Member, Watch
from aiinfra_vm.roster import seated
from aiinfra_vm.storage import Version
from hypothesis import given
from hypothesis import strategies as st

from provision.kinds.vms.jobs import MAY_ASK
from rehearsal.cloud import vm_agents

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBfkqWJ1DZD9Jt7FhQ0v3x7Zs0r7m1mB2p6o8f5n3k1c"
VM = Member("train-vm-a1b2", "1234", "10.0.0.2", "5a1c-77", KEY, (KEY,))
OTHER = Member("train-vm-c3d4", "99", "10.0.0.3", "5a1d", KEY, (KEY, KEY.replace("1c", "1d")))


def test_what_a_vm_says_is_read_as_it_was_written() -> None:
    text = json.dumps(VM.document()).encode()

    assert members.parse(text, VM.name) == VM
    with pytest.raises(ValueError, match="speaks of"):
        members.parse(text, "train-vm-zzzz")


def test_vms_say_what_they_read_of_a_job_and_each_such_thing_is_looked_for_before_one() -> None:
    assert {*jobs.Spec._field_defaults} == {*MAY_ASK}
    assert vm_agents.KNOWN.split() == list(jobs.Spec._fields)


def _token(sub: str) -> str:
    parts = (json.dumps({"sub": sub, "aud": "aiinfra"}), "signature")
    encoded = (base64.urlsafe_b64encode(it.encode()).decode().rstrip("=") for it in parts)
    return f"e30.{'.'.join(encoded)}"


def test_a_vm_says_whose_tokens_it_gets_where_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str | None, str] = {
        **{_token(it): it for it in ("103271949540120710052", "10327194954012071005")},
        **dict.fromkeys((_token("a name"), "no token", None), ""),
    }

    def get(path: str, answer: str | None) -> str:
        if "identity" not in path:
            return "1"
        if answer is None:
            raise OSError(404)
        return answer

    for answer, number in answers.items():
        monkeypatch.setattr(metadata, "get", functools.partial(get, answer=answer))
        member = members.myself()
        assert member.account == number
        there = Member.of(member._replace(name="a", address="10.0.0.2").document())
        assert there.account == number


_EVIL: list[dict[str, Any]] = [
    *({"name": it} for it in ("a;reboot", "-rf", "a\nb", 7)),
    *({"address": it} for it in ("10.0.0.2 slots=9", "$(reboot)", "example.com", None)),
    *({"address": "fe80::1%$(reboot)"}, {"instance_id": "1\nNODE_RANK=0"}, {"boot": "`reboot`"}),
    *(
        {"key": it}
        for it in (f'{KEY}\ncommand="sh" {KEY}', f'command="sh" {KEY}', f"{KEY} comment")
    ),
    *({"host_keys": it} for it in ([f"{KEY}\n* {KEY}"], [KEY] * 5, KEY)),
    *({"account": it} for it in ("1; rm -rf ~", None)),
]


@pytest.mark.parametrize("change", _EVIL, ids=lambda change: str(change)[:40])
def test_what_would_mean_more_in_a_file_of_root_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        Member.of(VM.document() | change)


@given(st.dictionaries(st.sampled_from(Member._fields), st.text() | st.integers() | st.none()))
def test_whatever_is_taken_is_plain_text_in_a_shell(change: dict[str, Any]) -> None:
    try:
        member = Member.of(VM.document() | change)
    except ValueError:
        return
    found = seated(None, [member], 1)
    for text in peers.environment(found, member.name, peers.Slots(8)).values():
        assert shlex.quote(text) == text
    for line in peers.hostfile(found, peers.Slots(8)).splitlines():
        assert line == f"{member.address} slots=8"


def test_ranks_and_peers_are_on_the_disk_for_systemd_shells_and_mpirun(tmp_path: Path) -> None:
    found = seated(None, [VM, OTHER], 3)

    peers.write(found, OTHER.name, peers.Slots.of({"gpus": {"count": 8}}), tmp_path)

    assert (tmp_path / "peers.env").read_text() == (
        "NODE_RANK=1\nNNODES=3\nMASTER_ADDR=10.0.0.2\nMASTER_PORT=29500\nNPROC_PER_NODE=8\n"
    )
    assert (tmp_path / "hostfile").read_text() == "10.0.0.2 slots=8\n10.0.0.3 slots=8\n"
    document = json.loads((tmp_path / "peers.json").read_text())
    assert (document["rank"], document["complete"]) == (1, False)
    assert peers.missing(document).startswith("2 of 3 VMs have joined; the others get their ranks")
    assert sorted(it.name for it in tmp_path.iterdir()) == ["hostfile", "peers.env", "peers.json"]
    assert (tmp_path / "peers.env").stat().st_mode & 0o777 == 0o644


def test_a_vm_that_has_no_rank_and_one_that_is_gone_are_told_of() -> None:
    found = seated(None, [VM], 1)
    assert peers.environment(found, "train-vm-zzzz", peers.Slots.of({"gpus": None})) == {
        "NNODES": "1",
        "MASTER_ADDR": "10.0.0.2",
        "MASTER_PORT": "29500",
        "NPROC_PER_NODE": "1",
    }
    assert "without this one" in peers.missing(peers.document(found, "train-vm-zzzz"))

    without = seated(seated(None, [VM, OTHER], 2), [VM], 2)
    assert peers.hostfile(without, peers.Slots(1)) == "10.0.0.2 slots=1\n"
    assert "gone are train-vm-c3d4" in peers.missing(peers.document(without, VM.name))
    assert not peers.missing(peers.document(seated(without, [VM, OTHER], 2), VM.name))
    assert "have not agreed" in peers.missing(None)


def test_each_key_is_good_from_the_address_of_its_own_vm_alone() -> None:
    keyless = Member("train-vm-0000", "5", "10.0.0.9", "b")
    found = seated(None, [VM, OTHER, keyless], 3)

    options = "no-agent-forwarding,no-X11-forwarding"
    assert node_ssh.authorized_keys(found) == (
        f'from="10.0.0.2",{options} {KEY} aiinfra@train-vm-a1b2\n'
        f'from="10.0.0.3",{options} {KEY} aiinfra@train-vm-c3d4\n'
    )
    assert node_ssh.known_hosts(found).splitlines() == [
        f"train-vm-a1b2,10.0.0.2 {KEY}",
        f"train-vm-c3d4,10.0.0.3 {KEY}",
        f"train-vm-c3d4,10.0.0.3 {KEY.replace('1c', '1d')}",
    ]


def test_who_changes_nothing_for_too_long_is_gone_by_the_watchers_own_clock() -> None:
    watch = Watch(100)
    quiet, busy = Version("members/a.json", 1, 1), Version("members/b.json", 1, 1)

    for moment in range(1000, 1101, 10):
        renewed = busy._replace(metageneration=moment)
        assert watch.look([quiet, renewed], moment) == ([quiet, renewed], [])
    assert watch.look([quiet, renewed], 1101) == ([renewed], [quiet])
    # Its object was deleted; where it comes back, it lives anew.
    assert watch.look([renewed], 1102) == ([renewed], [])
    back = Version("members/a.json", 2, 1)
    assert watch.look([back, renewed], 1103) == ([back, renewed], [])
