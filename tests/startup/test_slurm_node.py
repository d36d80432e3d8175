"""What Slurm on a VM rests on, without Slurm: its files, its key, and the copy of its state."""

from __future__ import annotations

import errno
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.startup.sandbox import PAYLOAD

if str(PAYLOAD / "lib") not in sys.path:
    sys.path.append(str(PAYLOAD / "lib"))

from aiinfra_vm import gpu_check, heads, lease, slurm_conf, slurm_node, slurm_prolog
from aiinfra_vm.slurm_conf import Machine
from aiinfra_vm.slurm_key import Keys
from aiinfra_vm.slurm_state import Lost, State, opened, seal
from aiinfra_vm.storage import Version

A3 = Machine(208, 1_900_544, tuple(range(8)))


def _conf(this: Machine = A3, life: int = 0) -> dict[str, str]:
    files = slurm_conf.files("train", "a3-highgpu", "train-vm-2(10.0.0.32)", this, life)
    lines = files["etc/slurm/slurm.conf"].text.splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith(("#", "Partition")))


def test_a_gpu_brings_its_part_of_processors_and_memory() -> None:
    conf = _conf()

    assert (conf["DefCpuPerGPU"], conf["DefMemPerCPU"]) == ("26", "9137")
    assert A3.memory // 9137 >= 8 * 26
    assert "DefCpuPerGPU" not in _conf(Machine(8, 4096, ()))


def test_each_life_of_a_head_numbers_its_jobs_above_those_before_and_below_slurms_most() -> None:
    firsts = [int(_conf(life=life)["FirstJobId"]) for life in (1, 2, 5_999, 6_000, 10**9)]

    assert firsts[:2] == [20_000, 30_000]
    assert 0 < min(firsts) <= max(firsts) + 10_000 < 67_043_328
    assert "FirstJobId" not in _conf()


def test_nodes_say_what_they_have_and_partitions_are_all_and_the_machines_family(
    tmp_path: Path,
) -> None:
    for name in ("nvidia0", "nvidia1", "nvidia-uvm", "nvidiactl", "null"):
        (tmp_path / name).touch()
    (tmp_path / "meminfo").write_text("MemTotal:       98304000 kB\nMemFree: 1 kB\n")
    this = slurm_conf.machine("nvidia-tesla-a100", tmp_path, tmp_path / "meminfo")
    files = slurm_conf.files("train", "g2", "a(10.0.0.2)", this)

    assert (this.gpus, this.memory % 1024) == ((0, 1), 0)
    assert 96_000 * 0.96 - 2048 < this.memory < 96_000
    gres = "Name=gpu Type=a100 File=/dev/nvidia0\nName=gpu Type=a100 File=/dev/nvidia1\n"
    assert files["etc/slurm/gres.conf"].text == gres
    conf = f"RealMemory={this.memory} Gres=gpu:a100:2 Feature=a100"
    told = f"SLURMD_OPTIONS='-Z --conf \"{conf}\"'\n"
    assert files["etc/default/slurmd"].text == told
    lines = files["etc/slurm/slurm.conf"].text.splitlines()
    assert [it for it in lines if it.startswith("PartitionName")] == [
        "PartitionName=g2 Nodes=ALL MaxTime=INFINITE State=UP",
        "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP",
    ]


def test_no_line_comes_with_the_name_of_a_head() -> None:
    for head in (
        "a(10.0.0.2)\nHealthCheckProgram=/tmp/x\n#",
        "a(10.0.0.2)\n",
        "a",
        "a b(10.0.0.2)",
    ):
        with pytest.raises(ValueError, match="no head of Slurm"):
            slurm_conf.files("train", "g2", head, A3)


_CLAIM = {"vm": "vm-2", "address": "10.0.0.2", "instance_id": "7000", "life": "0a"}


class Text:
    """A folder whose one object says this."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def read(self, name: str) -> tuple[bytes, Version]:
        """It."""
        return self._text, Version(name, 1, 1)


def _head(text: bytes) -> lease.Head:
    head = lease.Lease(Text(text)).read()  # type: ignore[arg-type]
    assert head
    return head


@pytest.mark.parametrize(
    "spoiled",
    [
        {"vm": "vm-2(10.0.0.2)\nHealthCheckProgram=/tmp/x\n#"},
        {"vm": "vm-2\n"},
        {"vm": ""},
        {"vm": ["vm-2"]},
        {"address": ""},
        {"address": "10.0.0.2)\nHealthCheckProgram=/tmp/x"},
        {"address": "localhost"},
        {"instance_id": "7\n"},
        {"life": None},
        b"no JSON",
        b"\xff",
        b"[]",
        b"7",
        b"{}",
        b"[" * 200_000,
    ],
    ids=lambda it: repr(it)[:30],
)
def test_a_lease_that_no_head_can_have_written_names_nobody_and_is_taken_over(
    spoiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = _head(spoiled if isinstance(spoiled, bytes) else json.dumps(_CLAIM | spoiled).encode())

    assert head.claim == lease.NOBODY
    monkeypatch.setattr("socket.create_connection", lambda *_: pytest.fail("localhost is asked"))
    node = Watcher()
    assert not node._is_silent(head)
    node._sign -= 40
    assert node._is_silent(head)


class Watcher(heads.Node):
    """A VM that looks who the head is."""

    def __init__(self, text: bytes = b"") -> None:
        of = lease.Lease(Text(text))  # type: ignore[arg-type]
        super().__init__(heads.Identity("vm-1", "10.0.0.1", "1"), of, 6817, heads.Pace(0, 35))
        self.followed: list[str] = []

    def _lead(self, head: lease.Head, held: heads.Held) -> None:
        raise AssertionError(head, held)

    def _follow(self, head: lease.Head) -> None:
        self.followed.append(head.claim.vm)

    def _pause(self) -> None:
        self.stop()


def test_nobody_is_not_followed_and_a_head_of_an_earlier_version_is() -> None:
    earlier = {name: it for name, it in _CLAIM.items() if name != "life"}

    for text, followed in ((json.dumps(earlier).encode(), ["vm-2"]), (b"no JSON", [])):
        node = Watcher(text)
        node.run()
        assert node.followed == followed


def test_a_head_whose_vm_ends_some_day_tells_whoever_sends_a_job_without_a_limit() -> None:
    for ends, first in ((True, "local ends = true\n"), (False, "local ends = false\n")):
        files = slurm_conf.files("train", "g2", "a(10.0.0.2)", A3, ends=ends)
        assert files["etc/slurm/job_submit.lua"].text.startswith(first)


def test_files_are_written_only_where_they_are_others(tmp_path: Path) -> None:
    for folder in ("etc/slurm", "etc/default"):
        (tmp_path / folder).mkdir(parents=True)
    files = slurm_conf.files("train", "g2", "a(10.0.0.2)", A3)

    assert slurm_conf.write(tmp_path, files)
    assert not slurm_conf.write(tmp_path, files)
    assert (tmp_path / "etc/slurm/aiinfra-prolog").stat().st_mode & 0o777 == 0o755
    assert slurm_conf.write(tmp_path, slurm_conf.files("train", "g2", "b(10.0.0.3)", A3))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        pytest.param({}, ["export NCCL_NET=Socket", "export LD_LIBRARY_PATH=/ours"], id="nothing"),
        pytest.param({"NCCL_NET": "mine"}, ["export LD_LIBRARY_PATH=/ours"], id="a_users_own"),
        pytest.param(
            {"NCCL_NET": "", "LD_LIBRARY_PATH": "/mine"},
            ["export LD_LIBRARY_PATH=/ours:/mine"],
            id="a_users_libraries",
        ),
        pytest.param({"NCCL_NET": "", "LD_LIBRARY_PATH": "/a:/ours"}, [], id="both_already"),
    ],
)
def test_tasks_get_nccls_variables_beside_what_a_user_has_set(
    own: dict[str, str], said: list[str], tmp_path: Path
) -> None:
    env = tmp_path / "nccl.env"
    env.write_text("# of this VM\nNCCL_NET=Socket\nLD_LIBRARY_PATH=/ours\n")
    files = slurm_conf.files("train", "g2", "a(10.0.0.2)", A3)
    program = files["etc/slurm/aiinfra-task-prolog"].text.replace("/etc/aiinfra/nccl.env", str(env))

    told = subprocess.run(
        ["/bin/sh", "-c", program],
        env={"PATH": "/usr/bin:/bin", **own},
        capture_output=True,
        check=True,
    )

    assert told.stdout.decode().splitlines() == said


def test_tasks_begin_where_no_fabric_was_set_up() -> None:
    program = slurm_conf.files("train", "g2", "a(10.0.0.2)", A3)[
        "etc/slurm/aiinfra-task-prolog"
    ].text
    away = program.replace("/etc/aiinfra/nccl.env", "/nowhere/nccl.env")

    done = subprocess.run(["/bin/sh", "-c", away], capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("comment", "user"),
    [
        ("aiinfra:../../etc:1", "root"),
        ("aiinfra:train-1:1", "ana"),
        ("my job", "aiinfra-job-01"),
        ("", "aiinfra-job-01"),
    ],
)
def test_only_jobs_of_run_get_a_folder(
    comment: str, user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_prolog, "HOME", tmp_path / "jobs")

    slurm_prolog.make_folder(comment, user)

    assert not (tmp_path / "jobs").exists()


def test_a_folder_that_another_prolog_removes_meanwhile_drains_no_vm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_prolog, "HOME", tmp_path)
    own = SimpleNamespace(pw_uid=os.getuid())
    monkeypatch.setattr("pwd.getpwnam", lambda _: own)
    (tmp_path / "left").mkdir()
    there = [tmp_path / "gone", tmp_path / "left"]
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(there))
    closed: list[Path] = []
    monkeypatch.setattr("os.chown", lambda path, *_, **__: closed.append(path))

    slurm_prolog.make_folder("aiinfra:train-1:1", "aiinfra-job-01")

    assert (closed, (tmp_path / "train-1").stat().st_mode & 0o777) == ([tmp_path / "left"], 0o700)


def test_what_a_job_has_mounted_on_its_folder_by_fuse_drains_no_vm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_prolog, "HOME", tmp_path)
    monkeypatch.setattr("pwd.getpwnam", lambda _: SimpleNamespace(pw_uid=os.getuid()))
    errors = {"left-1": errno.ENOTCONN, "runs-1": errno.EACCES, "train-1": errno.EACCES}
    for name in (*errors, "other-1"):
        (tmp_path / name).mkdir()

    def lstat(path: Path) -> os.stat_result:
        if number := errors.get(path.name):
            raise OSError(number, os.strerror(number))
        return os.lstat(path)

    monkeypatch.setattr(Path, "lstat", lstat)
    closed: list[str] = []
    monkeypatch.setattr("os.chown", lambda path, *_, **__: closed.append(path.name))

    slurm_prolog.make_folder("aiinfra:train-1:1", "aiinfra-job-01")

    assert closed == ["other-1"]


def test_a_vm_whose_nvidia_smi_dies_of_no_signal_has_a_complaint_in_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nexec sleep 1.5\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(gpu_check, "_SECONDS", 0.2)
    hung: dict[str, subprocess.Popen[bytes]] = {}
    monkeypatch.setattr("aiinfra_vm.programs._hung", hung)
    monkeypatch.setattr("subprocess.Popen.kill", lambda _: None)
    monkeypatch.setattr("aiinfra_vm.configuration.load", lambda: {"gpus": {"count": 8}})
    begun = time.monotonic()

    said = slurm_prolog.complaint()

    assert said.startswith("nvidia-smi: ")
    assert "timed out after 0.2 seconds" in said
    assert time.monotonic() - begun < 1.2
    hung["nvidia-smi"].wait()


class Group:
    """VMs on loopback, of which each has a key or none."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self._port = port
        self.members = ["127.0.0.11", "127.0.0.12", "127.0.0.13"]
        self.listeners: list[socket.socket] = []

    def vm(
        self, address: str, key: bytes = b"", *, serves: bool = True, leads: bool = False
    ) -> Keys:
        """A VM, which has a key or none, and answers others unless it is off."""
        file = self._folder / f"{address}.key"
        if key:
            file.write_bytes(key)
        keys = Keys(
            address, members=lambda: self.members, mask="255.255.255.0", port=self._port,
            file=file, owner=None,
        )  # fmt: skip
        keys.leads = lambda: leads
        if serves:
            self.listeners.append(keys.serve())
        return keys


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    """VMs of which none is there yet; it takes root, as VMs' agents are."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    made = Group(tmp_path, port)
    yield made
    for listener in made.listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _never(_: bytes) -> bool:
    return False


def test_the_first_head_makes_a_key_and_all_others_get_that(group: Group) -> None:
    first, second = group.vm("127.0.0.11", leads=True), group.vm("127.0.0.12")
    assert second.follow("127.0.0.11") == b""

    key = first.settle(_never)

    assert len(key) == 1024
    assert second.follow("127.0.0.11") == key == second.own()
    assert (group.vm("127.0.0.13").settle(_never)) == key
    for file in ("127.0.0.11.key", "127.0.0.12.key"):
        assert (group._folder / file).stat().st_mode & 0o777 == 0o400


def test_a_new_head_takes_the_key_that_opens_the_copy_else_that_of_a_living_vm_else_its_own(
    group: Group,
) -> None:
    mine = group.vm("127.0.0.11", b"mine", serves=False)
    assert mine.settle(_never) == b"mine"
    group.vm("127.0.0.12", b"theirs")
    group.vm("127.0.0.13", b"sealed")

    assert mine.settle(lambda key: key == b"mine") == b"mine"
    assert mine.settle(lambda key: key == b"sealed") == b"sealed"
    mine._keep(b"mine")
    assert mine.settle(_never) == b"theirs"


def test_who_follows_takes_the_heads_key_in_place_of_an_old_one(group: Group) -> None:
    group.vm("127.0.0.11", b"new", leads=True)
    old = group.vm("127.0.0.12", b"old")

    assert old.follow("127.0.0.11") == b"new" == old.own()
    assert old.follow("127.0.0.13") == b""  # off
    assert old.own() == b"new"


@pytest.mark.parametrize("name", ["key", "slurmctld", "slurmd"])
def test_the_ports_of_daemons_are_roots_and_none_that_others_take_as_their_own(name: str) -> None:
    # The kernel's NFS client begins at 665 (min_resvport), bindresvport(3) of glibc at 600.
    assert 512 <= slurm_conf.ports()[name] < 600


def test_nobody_follows_a_vm_that_is_no_head_whatever_a_lease_says(group: Group) -> None:
    named = group.vm("127.0.0.11", b"the key")
    other = group.vm("127.0.0.12", b"the key")

    assert other.follow("127.0.0.11") == b"" == named.follow("127.0.0.11")
    assert other.ask("127.0.0.11") == (False, b"the key")


def test_slurmctld_is_there_when_it_and_no_job_has_its_port(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = tmp_path / "tcp"
    table.write_text(
        " sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
        "  0: 00000000:1AA1 00000000:0000 0A 00000000:00000000 00:00000000 00000000  64030 0\n"
        "  1: 0100000A:1AA2 00000000:0000 0A 00000000:00000000 00:00000000 00000000  60601 0\n"
        "  2: 0100000A:B000 0200000A:1AA1 01 00000000:00000000 00:00000000 00000000  60601 0\n"
    )
    monkeypatch.setattr(slurm_node, "_TABLE", table)
    monkeypatch.setattr("pwd.getpwnam", lambda _: SimpleNamespace(pw_uid=64030))
    ctld, taken = slurm_node.Controller(6817), slurm_node.Controller(6818)
    assert not ctld.listens()  # it has not begun

    for it in (ctld, taken):
        it._process = subprocess.Popen(["/bin/sleep", "60"])

    assert (ctld.listens(), taken.listens()) == (True, False)
    for it in (ctld, taken):
        it.stop()
    assert not ctld.listens()


def _asked(port: int, own: tuple[str, int], to: str = "127.0.0.11") -> bytes:
    with socket.socket() as asking:
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        asking.settimeout(5)
        asking.bind(own)
        asking.connect((to, port))
        return asking.recv(4096)


def test_only_root_of_a_vm_of_the_group_in_its_subnet_is_answered(group: Group) -> None:
    group.vm("127.0.0.11", b"the key")

    assert _asked(group._port, ("127.0.0.12", 601)) == b"\0the key"
    assert _asked(group._port, ("127.0.0.12", 0)) == b""  # any user's port
    assert _asked(group._port, ("127.0.0.12", 80)) == b""  # a server's, and no question
    assert _asked(group._port, ("127.0.0.99", 602)) == b""  # none of the group
    group.members.append("127.0.1.5")
    assert _asked(group._port, ("127.0.1.5", 603)) == b""  # of another subnet


def test_nobody_outside_the_group_or_its_subnet_is_asked_whatever_a_lease_says(
    group: Group,
) -> None:
    keys = group.vm("127.0.0.12", serves=False)
    listeners = [socket.create_server((it, group._port)) for it in ("127.0.0.99", "127.0.1.5")]
    group.members.append("127.0.1.5")

    assert [keys.follow(it) for it in ("127.0.0.99", "127.0.1.5", "no address")] == [b""] * 3

    for listener in listeners:
        listener.setblocking(False)
        with listener, pytest.raises(BlockingIOError):
            listener.accept()


_BY_HAND = "ana: looks at it"


@pytest.mark.parametrize(
    "reason",
    [
        "aiinfra: 7 GPUs instead of 8",
        "Prolog error",
        "Duplicate jobid",
        "Node unexpectedly rebooted",
        "Kill task failed",
        "batch job complete failure",
        _BY_HAND,
    ],
)
def test_a_vm_that_joins_is_back_unless_a_person_has_drained_it(
    reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def said(*command: str) -> str:
        asked.append(command)
        return "active\n" if command[0] == "systemctl" else f"drained|{reason}\n"

    monkeypatch.setattr(slurm_node, "_said", said)
    monkeypatch.setattr(slurm_node.Node, "_answers", lambda *_: True)
    this: Any = None
    node = slurm_node.Node(
        heads.Identity("vm-1", "10.0.0.1", "1"), this, this, this,
        names=("train", "g2"), chores=tuple, pace=heads.Pace(1, 5),
    )  # fmt: skip

    node._look_after(this, "a node")

    resume = ("scontrol", "update", "nodename=vm-1", "state=resume")
    assert (resume in asked) is (reason != _BY_HAND)


class Bucket:
    """A folder of one object, as `storage.Folder` has it."""

    def __init__(self) -> None:
        self.content = b""
        self.generation = 0
        self.writes = 0
        self.refused = False

    def read(self, name: str) -> tuple[bytes, Version] | None:
        """It, if it is there."""
        return (self.content, Version(name, self.generation, 1)) if self.generation else None

    def write(self, name: str, document: Any, over: Version | None = None) -> Version | None:
        """Write over what was seen alone."""
        if self.refused:
            raise OSError("503")
        seen = self.generation if over is None else over.generation
        if seen != self.generation:
            return None
        self.content, self.generation = json.dumps(document).encode(), self.generation + 1
        self.writes += 1
        return Version(name, self.generation, 1)


@pytest.fixture
def begun(tmp_path: Path) -> Callable[[str, Bucket, bytes], tuple[State, Path, int]]:
    """Begins a life of a head on a VM: its state, its files, the number of this life."""

    def begin(vm: str, bucket: Bucket, key: bytes) -> tuple[State, Path, int]:
        place = tmp_path / vm
        state = State(bucket, place, owner=None)  # type: ignore[arg-type]
        return state, place, state.begin(key, state.look())

    return begin


if TYPE_CHECKING:
    Begin = Callable[[str, Bucket, bytes], tuple[State, Path, int]]


def test_a_new_head_goes_on_with_the_copy_and_an_old_one_with_it_too(begun: Begin) -> None:
    bucket = Bucket()
    first, one, life = begun("vm-1", bucket, b"key")
    assert life == 1
    (one / "job_state").write_bytes(b"\x00jobs")
    (one / "hash.1/job.11").mkdir(parents=True)
    (one / "hash.1/job.11/script").write_bytes(b"#!/bin/sh\n")
    (one / "job_state.old").write_bytes(b"old")
    first.copy(now=True)

    second, two, life = begun("vm-2", bucket, b"key")

    assert life == 2
    assert (two / "job_state").read_bytes() == b"\x00jobs"
    assert (two / "hash.1/job.11/script").read_bytes() == b"#!/bin/sh\n"
    assert not (two / "job_state.old").exists()
    (two / "job_state").write_bytes(b"later")
    second.copy(now=True)
    _, _, life = begun("vm-1", bucket, b"key")
    assert (life, (one / "job_state").read_bytes()) == (3, b"later")
    (two / "job_state").write_bytes(b"of nobody")
    with pytest.raises(Lost):
        second.copy(now=True)


def test_a_head_that_begins_again_on_its_vm_has_what_it_wrote_last(begun: Begin) -> None:
    bucket = Bucket()
    _, one, _ = begun("vm-1", bucket, b"key")
    (one / "job_state").write_bytes(b"newer than the copy")

    _, _, life = begun("vm-1", bucket, b"key")

    assert (life, (one / "job_state").read_bytes()) == (2, b"newer than the copy")


def test_a_head_whose_first_copy_fails_has_no_life_of_its_own_later(begun: Begin) -> None:
    bucket = Bucket()
    other, two, _ = begun("vm-2", bucket, b"key")
    (two / "job_state").write_bytes(b"days ago")
    other.copy(now=True)
    bucket.refused = True
    with pytest.raises(OSError, match="503"):
        begun("vm-1", bucket, b"key")
    bucket.refused = False
    other, two, life = begun("vm-2", bucket, b"key")
    assert life == 2
    (two / "job_state").write_bytes(b"today")
    other.copy(now=True)

    _, one, life = begun("vm-1", bucket, b"key")

    assert (life, (one / "job_state").read_bytes()) == (3, b"today")


def test_a_copy_that_was_unpacked_in_part_is_unpacked_again(
    begun: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Bucket()
    first, one, _ = begun("vm-1", bucket, b"key")
    (one / "job_state").write_bytes(b"the queue")
    (one / "assoc_usage").write_bytes(b"usage")
    first.copy(now=True)
    write = Path.write_bytes

    def full(path: Path, content: bytes) -> int:
        if path.name == "job_state":
            raise OSError("no space left")
        return write(path, content)

    with monkeypatch.context() as at_first:
        at_first.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="no space left"):
            begun("vm-2", bucket, b"key")

    _, two, life = begun("vm-2", bucket, b"key")

    assert (life, (two / "job_state").read_bytes()) == (2, b"the queue")


def test_of_two_that_begin_one_life_the_later_one_ends(begun: Begin, tmp_path: Path) -> None:
    bucket = Bucket()
    late = State(bucket, tmp_path / "vm-1", owner=None)  # type: ignore[arg-type]
    seen = late.look()
    _, _, life = begun("vm-2", bucket, b"key")

    with pytest.raises(Lost):
        late.begin(b"key", seen)

    assert (life, bucket.writes) == (1, 1)


def test_a_life_does_not_begin_whose_copy_others_keep_writing_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Bucket()
    state = State(bucket, tmp_path / "vm-1", owner=None)  # type: ignore[arg-type]
    monkeypatch.setattr(bucket, "write", lambda *_, **__: None)

    with pytest.raises(OSError, match="written by somebody else"):
        state.begin(b"key", state.look())

    assert not list((tmp_path / "vm-1").iterdir())


@pytest.mark.parametrize(
    "text", [b'{"life": Infinity, "sealed": ""}', b"[" * 200_000, b"7", b"\xff", b"{}"]
)
def test_a_copy_that_no_head_has_written_is_none(text: bytes, tmp_path: Path) -> None:
    found = State(Text(text), tmp_path).look()  # type: ignore[arg-type]

    assert found
    assert (found.life, found.opened(b"key")) == (0, None)


@pytest.mark.parametrize("sealed", ["of another key", "damaged", "nothing of ours"])
def test_what_a_seal_does_not_hold_for_is_dropped_and_its_number_is_not_used_again(
    sealed: str, begun: Begin
) -> None:
    bucket = Bucket()
    for vm in ("vm-1", "vm-2", "vm-3"):
        state, place, _ = begun(vm, bucket, b"key")
    (place / "job_state").write_bytes(b"jobs")
    state.copy(now=True)
    key = b"key"
    if sealed == "of another key":
        key = b"another"
    elif sealed == "damaged":
        document = json.loads(bucket.content)
        document["life"] = 7  # so that its own life's seal is another
        bucket.content = json.dumps(document).encode()
    else:
        bucket.content = b'{"life": {}}'

    _, new, life = begun("vm-4", bucket, key)

    assert not (new / "job_state").exists()
    assert life == {"of another key": 4, "damaged": 8, "nothing of ours": 1}[sealed]


def test_the_copy_is_made_when_something_has_changed_and_not_more_often_than_every_ten_seconds(
    begun: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: moment[0])
    bucket = Bucket()
    state, place, _ = begun("vm-1", bucket, b"key")
    assert bucket.writes == 1
    (place / "job_state").write_bytes(b"jobs")
    state.copy()
    assert bucket.writes == 1
    moment[0] += 10
    state.copy()
    state.copy(now=True)
    assert bucket.writes == 2
    bucket.generation += 1  # the answer to a write was lost, or a program has written
    (place / "job_state").write_bytes(b"more")
    state.copy(now=True)
    assert bucket.writes == 3


def test_a_copy_tells_nobody_what_is_in_it() -> None:
    sealed = seal(b"key", 3, {"environment": b"HF_TOKEN=hf_secret" * 100})

    assert b"hf_secret" not in sealed
    assert sealed != seal(b"key", 3, {"environment": b"HF_TOKEN=hf_secret" * 100})
    assert opened(b"key", 3, sealed) == {"environment": b"HF_TOKEN=hf_secret" * 100}
    assert opened(b"key", 4, sealed) is None
    assert opened(b"", 3, sealed) is None
