"""What Ssh runs on a terminal, where it only prints, and what it says of all VMs to OpenSSH."""

import contextlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import ssh
from provision.deployment.kind import WayIn
from provision.documents.job import Job, JobState, JobTasks
from provision.errors import ClusterError, Problem, ProvisionError
from tests.unit.kinds.cases import having, problem_of, unheard
from tests.unit.memory_folder import MemoryFolder

GCLOUD = "/bin/gcloud compute ssh"
VMS: list[dict[str, Any]] = [
    {"name": "np-vm-a", "rank": 1, "external_ip": None, "ssh": "rm -rf ~"},
    {"name": "np-vm-b", "rank": 0, "external_ip": "192.0.2.1", "ssh": "rm -rf ~"},
]
Ssh = Callable[..., Any]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Ssh:
    """Ssh among these VMs, with what it ran and printed."""

    def ssh_there(  # noqa: PLR0913 - what each case says
        wanted: str = "",
        *,
        at_terminal: bool = False,
        ended: tuple[int, str] = (0, ""),
        vms: Any = VMS,
        jobs: Any = None,
        config: str | None = None,
        calls: list[tuple[list[str], dict[str, str]]] | None = None,
        printed: list[str] | None = None,
        **settings: Any,
    ) -> Any:
        calls = [] if calls is None else calls
        printed = [] if printed is None else printed
        folder = MemoryFolder({"connection.json": json.dumps({"vms": vms})})
        listed = [{"name": it["name"], "id": number} for number, it in enumerate(VMS, 17)]
        api = having(named_instances=lambda *_: listed)
        record = having(project_id="p", zone="z", name_prefix="np", kind="none")
        monkeypatch.setattr(ssh, "connect", lambda _: having(folder=folder, api=api))
        monkeypatch.setattr("provision.lifecycle.ownership.existing", lambda *_: record)
        kind = having(jobs=lambda *_: jobs)
        monkeypatch.setattr("provision.kinds.registry.named", lambda _: kind)
        monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")

        def process(argv: list[str], *, env: dict[str, str], **_: object) -> SimpleNamespace:
            calls.append((argv, env))
            return SimpleNamespace(returncode=ended[0], stdout=ended[1])

        monkeypatch.setattr(subprocess, "run", process)
        usual = {"ssh_forward": None, "ssh_rank": 0}
        context: Any = having(
            job=wanted,
            config=config,
            environ={"PATH": "/bin"},
            console=having(
                opens_shells=at_terminal, result=printed.append, progress=lambda _: None
            ),
            report=having(jobs=None, connection=None),
            settings=having(**{**usual, **settings}, model_fields_set=set(settings)),
            progress=unheard(),
            calls=calls,
            printed=printed,
        )
        try:
            ssh.ssh(cast("Any", context))
        finally:
            assert "rm" not in " ".join(printed)
        return context

    return ssh_there


@pytest.mark.parametrize(
    ("wanted", "at_terminal", "ran", "code"),
    [
        ("", True, f"{GCLOUD} np-vm-b --project p --zone z", 1),
        ("np-vm-a", True, f"{GCLOUD} np-vm-a --project p --zone z --tunnel-through-iap", 0),
        (
            *("np-vm-b", True),
            f"{GCLOUD} np-vm-b --project p --zone z -- -L 6006:localhost:6006",
            255,
        ),
        ("1", False, "", 0),
    ],
)
def test_gcloud_is_run_where_a_person_sits_and_the_command_printed_elsewhere(
    run: Ssh, *, wanted: str, at_terminal: bool, ran: str, code: int
) -> None:
    forward = 6006 if code == 255 else None
    # Only ssh's own failure is one of this program's; a shell may end as it likes.
    calls: list[Any] = []
    printed: list[str] = []
    how: dict[str, Any] = {"at_terminal": at_terminal, "calls": calls, "printed": printed}
    with pytest.raises(ClusterError) if code == 255 else contextlib.nullcontext():
        run(wanted, ended=(code, ""), ssh_forward=forward, **how)
    assert [" ".join(argv) for argv, _ in calls] == ([ran] if ran else [])
    assert len(printed) == (not ran)


class _Jobs:
    """A job of this state, whose way in is by this program."""

    def __init__(
        self,
        state: JobState = JobState.RUNNING,
        *,
        pod: bool = False,
        tasks: JobTasks | None = None,
    ) -> None:
        self._state, self._pod, self._tasks = state, pod, tasks

    def names(self) -> list[str]:
        return ["train-1", "train-2"]

    def find(self, name: str) -> Job:
        return Job(name=name, state=self._state, tasks=self._tasks, attempt=1, submitted="")

    def way_in(self, job: Job, rank: int) -> WayIn:
        opens = ("kubectl", "exec", "-it", f"{job.name}-{rank}") if self._pod else ("gcloud", "a b")
        return WayIn(
            where="there",
            folder="/folder",
            tells=(),
            opens=opens,
            before="gcloud get-credentials" if self._pod else "",
            forwards=lambda port: f"kubectl port-forward {port}",
            access=lambda: contextlib.nullcontext({"KUBECONFIG": "own"} if self._pod else {}),
        )


def test_behind_it_stands_a_job_whose_rank_is_entered(run: Ssh) -> None:
    pods, vms = _Jobs(pod=True), _Jobs()
    there = run("train", jobs=pods, at_terminal=True, ssh_rank=3)
    ((argv, environ),) = there.calls
    assert argv == ["/bin/kubectl", "exec", "-it", "train-2-3"]
    assert environ == {"PATH": "/bin", "KUBECONFIG": "own"}
    assert there.report.jobs[0].shell == "kubectl exec -it train-2-3"
    assert run("train-1", jobs=pods, vms=[]).printed == [
        "gcloud get-credentials\nkubectl exec -it train-1-0"
    ]
    forwarded = run("train-1", jobs=vms, ssh_forward=6006)
    assert forwarded.printed == ["gcloud 'a b' '--ssh-flag=-L 6006:localhost:6006'"]


def _refused(act: Callable[[], object]) -> Problem:
    problem = problem_of(ProvisionError, act)
    assert problem.fix
    return problem


@pytest.mark.parametrize(
    ("wanted", "how", "what", "fix"),
    [
        (
            "train-1",
            {"jobs": _Jobs(JobState.FAILED)},
            "does not run: it is over: failed",
            "Fetch train-1 for",
        ),
        (
            "train-1",
            {"jobs": _Jobs(JobState.FAILED, tasks=JobTasks(first=1, last=8)), "ssh_rank": 3},
            "does not run: it is over: failed",
            "Fetch train-1 --rank 3 for",
        ),
        ("nobody", {"jobs": _Jobs()}, "There is no VM and no job nobody", "aiinfra Jobs"),
        ("7", {}, "There is no VM 7", "name of a job"),
        ("", {"vms": []}, "Nobody knows of VMs", "Ssh JOB"),
        ("1", {"ssh_rank": 2}, "--rank is of a job", "Ssh 2"),
        (
            *("train-1", {"jobs": _Jobs(pod=True), "ssh_forward": 6006}),
            *("no port of a pod", "gcloud get-credentials; kubectl port-forward 6006"),
        ),
    ],
)
def test_why_there_is_no_shell(
    run: Ssh, wanted: str, how: dict[str, Any], what: str, fix: str
) -> None:
    problem = _refused(lambda: run(wanted, **how))
    assert (what in problem.what, fix in problem.fix) == (True, True), problem


LINE = "/usr/bin/ssh -t -i key me_example_com@compute.17\n"
HOST_A = """\
Host np-vm-a np-1
    HostName np-vm-a
    HostKeyAlias compute.17
    User me_example_com
    ProxyCommand gcloud compute start-iap-tunnel np-vm-a %p --listen-on-stdin --project p --zone z\
 --verbosity warning
"""
HOST_B = """\
Host np-vm-b np-0
    HostName 192.0.2.1
    HostKeyAlias compute.18
    User me_example_com
    IdentityFile ~/.ssh/google_compute_engine
"""


def test_openssh_is_told_the_way_to_each_vm_that_is_there(run: Ssh, tmp_path: Path) -> None:
    more = [*VMS, {"name": "np-vm-gone", "rank": 2}, {"name": "x\nProxyCommand rm", "rank": 3}]
    vms = [more[0], more[1] | {"external_ip": "192.0.2.1"}, *more[2:]]
    there = run(config="", ended=(0, LINE), vms=vms)
    (text,) = there.printed
    assert HOST_A in text
    assert HOST_B in text
    assert text.index(HOST_B) < text.index(HOST_A)
    assert text.count("Host ") == 2
    ((asked, _),) = there.calls
    line = f"{GCLOUD} np-vm-a --project p --zone z --tunnel-through-iap --quiet --dry-run"
    assert asked == line.split()
    told = {it.name: it.ssh for it in there.report.connection.vms}
    assert told["np-vm-b"] == "gcloud compute ssh np-vm-b --project p --zone z"
    (one,) = run("1", config="", ended=(0, LINE)).printed
    assert one.count("Host ") == 1

    file = tmp_path / "ssh" / "aiinfra"
    for _ in range(2):
        assert "Include" in run(config=str(file), ended=(0, LINE), vms=vms).printed[0]
    assert file.read_text() == text
    assert file.stat().st_mode & 0o077 == 0
    file.write_text("Host mine\n")
    problem = _refused(lambda: run(config=str(file), ended=(0, LINE)))
    assert "is not one that Ssh --config has written" in problem.what
    assert file.read_text() == "Host mine\n"


@pytest.mark.parametrize("ended", [(1, LINE), (0, ""), (0, "x y;z@compute.1\n")])
def test_a_user_that_gcloud_does_not_say_is_left_to_people(
    run: Ssh, ended: tuple[int, str]
) -> None:
    spoiled = [VMS[0] | {"external_ip": "1.2.3.4\n  ProxyCommand rm"}]
    (text,) = run(config="", ended=ended, vms=spoiled).printed
    assert "    User " not in text
    assert "# User: that of `gcloud compute os-login describe-profile`" in text
    assert "HostName np-vm-a\n" in text
