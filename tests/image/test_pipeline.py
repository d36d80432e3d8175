"""The example for pipelines: its start-up script and its gcloud commands, truly run."""

import http.server
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from provision import errors
from provision.codes import Code
from provision.documents import plain, problem
from provision.documents.job import Job as ProgramJob
from provision.documents.job import JobState
from tests.image.conftest import TREE, Image

EXAMPLE = TREE / "examples" / "llm-pipeline"
ACCOUNT = "builder@my-project.iam.gserviceaccount.com"

# Keeps what it is told; each VM that is made answers with the next of the prepared jobs.
_GCLOUD = """\
#!/bin/bash
printf '%s\\n' "$*" >>"$FOLDER/commands"
job=$FOLDER/jobs/$(cat "$FOLDER/made" 2>/dev/null || echo 0)
case "$*" in
  *"instances create"*) echo $((${job##*/} + 1)) >"$FOLDER/made" ;;
  *"instances delete"*) [[ -z ${NO_DELETE:-} ]] ;;
  *get-guest-attributes*aiinfra-job/exit-code*) cat "$job/exit-code" ;;
  *get-guest-attributes*aiinfra-job/result*) cat "$job/result" ;;
  *get-serial-port-output*--start=0*)
    echo "kernel: it boots"
    echo "GCEMetadataScripts: startup-script: 0 of 2 VMs run"
    echo "Specify --start=77 in the next invocation to get only the new output." >&2
    ;;
esac
"""


@dataclass
class Vm:
    """The metadata server of a job's VM."""

    url: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)


@pytest.fixture
def vm() -> Iterator[Vm]:
    found = Vm()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            value = found.attributes.get(self.path.removeprefix("/attributes/"))
            self.send_response(404 if value is None else 200)
            self.end_headers()
            self.wfile.write((value or "").encode())

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            found.told[self.path.removeprefix("/guest-attributes/aiinfra-job/")] = content.decode()
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        found.url = f"http://127.0.0.1:{server.server_port}"
        yield found
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("Create --rehearse --yes", 0), ("Create --rehearse=stockout --yes", 7), ("Crate", 2)],
)
def test_the_job_leaves_result_and_exit_code(
    image: Image, vm: Vm, arguments: str, code: int
) -> None:
    vm.attributes = {
        "aiinfra-image": image.name,
        "aiinfra-env-list": (TREE / "examples" / "env.list").read_text(),
        "aiinfra-arguments": arguments,
    }
    environ = image.engine.environ | {"METADATA_URL": vm.url}
    environ["PATH"] = f"{os.path.dirname(image.engine.client)}:{environ['PATH']}"  # noqa: PTH120 - text

    done = subprocess.run(
        [EXAMPLE / "run-on-vm.sh"], env=environ, capture_output=True, check=False, timeout=200
    )

    assert done.returncode == code, done.stderr
    assert vm.told["exit-code"] == str(code)
    assert json.loads(vm.told["result"])["exit_code"] == code


@dataclass
class Job:
    """How a job ends: with what exit code and what problems; None never ends."""

    code: int | None
    problems: tuple[dict[str, Any], ...] = ()
    runs: tuple[JobState, ...] = ()  # the states of the programs that it tells of


def _problem(code: Code, *, zones: tuple[str, ...] = (), **settings: str) -> dict[str, Any]:
    """A problem as the program prints it."""
    told = errors.Problem(
        what=f"it is {code}",
        setting="ZONE" if zones else "",
        code=code,
        alternatives=errors.Alternatives(zones=zones, settings=settings),
    )
    document: dict[str, Any] = plain(problem.of(told))
    return document


@dataclass
class Ended:
    """How a script ended, and what it told gcloud."""

    code: int
    out: str
    err: str
    commands: list[str]

    @property
    def actions(self) -> list[tuple[str, str]]:
        """The actions of all jobs, and the zones of their VMs."""
        made = [line for line in self.commands if "instances create" in line]
        return [
            (
                line.partition("aiinfra-arguments=")[2].split()[0],
                line.partition("--zone=")[2].split()[0],
            )
            for line in made
        ]


def _run(
    script: str,
    folder: Path,
    jobs: Sequence[Job],
    *arguments: str,
    stop: int | None = None,
    **environ: str,
) -> Ended:
    gcloud = folder / "bin" / "gcloud"
    gcloud.parent.mkdir()
    gcloud.write_text(_GCLOUD)
    gcloud.chmod(0o755)
    for number, job in enumerate(jobs, 1):
        answers = folder / "jobs" / str(number)
        answers.mkdir(parents=True)
        (answers / "exit-code").write_text("" if job.code is None else str(job.code))
        jobs_of_run = [plain(ProgramJob(name="x", state=it, submitted="")) for it in job.runs]
        document = {"exit_code": job.code, "problems": job.problems, "jobs": jobs_of_run}
        (answers / "result").write_text(json.dumps(document))
    (folder / "env.list").write_text(
        'PROJECT_ID="my-project"\nNAME_PREFIX=np\nZONE=us-central1-a\r\n'
    )
    with subprocess.Popen(
        [EXAMPLE / script, "registry/image:1", str(folder / "env.list"), ACCOUNT, *arguments],
        env=os.environ
        | {
            "FOLDER": str(folder),
            "LOGS": str(folder),
            "PATH": f"{gcloud.parent}:{os.environ['PATH']}",
            "POLL_SECONDS": "0",
            "RETRY_SECONDS": "0",
        }
        | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        if stop is not None:
            # Once the first job's VM is asked how far it is.
            while "exit-code" not in _told(folder):
                time.sleep(0.05)
            process.send_signal(stop)
        out, err = process.communicate(timeout=240)
    return Ended(process.returncode, out, err, _told(folder).splitlines())


def _told(folder: Path) -> str:
    """What gcloud was told."""
    file = folder / "commands"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize("code", [0, 7])
def test_a_job_ends_as_its_action_did_and_leaves_no_vm(tmp_path: Path, code: int) -> None:
    ended = _run("submit.sh", tmp_path, [Job(code)], "Create", "--yes")

    assert ended.code == code
    assert json.loads(ended.out)["exit_code"] == code
    assert "--project=my-project --zone=us-central1-a" in ended.commands[0]
    assert f"--service-account={ACCOUNT} --scopes=cloud-platform" in ended.commands[0]
    assert "aiinfra-arguments=Create --yes" in ended.commands[0]
    assert "instances delete" in ended.commands[-1]


def test_a_vm_that_can_not_be_deleted_is_named_with_the_command_that_does_it(
    tmp_path: Path,
) -> None:
    ended = _run("submit.sh", tmp_path, [Job(0)], "Create", NO_DELETE="yes")

    assert ended.code == 0
    assert "may be left, and billed: gcloud compute instances delete aiinfra-job-np" in ended.err


@pytest.mark.parametrize("code", [0, 8])
def test_a_job_says_how_far_it_is_and_a_failed_one_leaves_its_log(
    tmp_path: Path, code: int
) -> None:
    ended = _run("submit.sh", tmp_path, [Job(code)], "Create")

    assert ended.err.count("0 of 2 VMs run") == 1
    assert "it boots" not in ended.err
    logs = [path.read_text() for path in tmp_path.glob("aiinfra-job-np-*.log")]
    assert len(logs) == (1 if code else 0)
    assert all("it boots" in log for log in logs)
    assert ("is kept" in ended.err) == bool(code)


def test_a_job_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    ended = _run("submit.sh", tmp_path, [Job(None)], "Create", JOB_TIMEOUT="1")

    assert ended.code == 124
    told = [line for line in ended.commands if "instances stop" in line or "delete" in line]
    assert ["stop" in line for line in told] == [True, False]
    assert list(tmp_path.glob("aiinfra-job-np-*.log")) != []


@pytest.mark.parametrize(("work", "code"), [("true", 0), ("false", 1)])
def test_a_pipeline_destroys_what_it_created_however_the_work_ends(
    tmp_path: Path, work: str, code: int
) -> None:
    ended = _run("pipeline.sh", tmp_path, [Job(0), Job(0)], work)

    assert [action for action, _ in ended.actions] == ["Create", "Destroy"]
    assert ended.code == code


@pytest.mark.parametrize(
    ("code", "then"), [(0, ["Destroy"]), (8, ["Cancel", "Destroy"]), (None, ["Cancel", "Destroy"])]
)
def test_without_a_command_of_its_own_it_runs_the_job_of_the_env_list_once(
    tmp_path: Path, code: int | None, then: list[str]
) -> None:
    problems = (_problem(Code.JOB_FAILED),) if code else ()
    run = Job(code, problems, (JobState.FAILED if code else JobState.SUCCEEDED,))
    ended = _run("pipeline.sh", tmp_path, [run, Job(0), Job(0)], CREATE_TIMEOUT="2")

    assert "aiinfra-arguments=Run --create --yes --name pipeline-" in ended.commands[0]
    assert "--destroy-after" not in ended.commands[0]
    assert [action for action, _ in ended.actions] == ["Run", *then]
    assert ended.code == (124 if code is None else code)


def test_a_job_that_waits_is_followed_and_keeps_its_place_until_the_end(tmp_path: Path) -> None:
    made = Job(75, (_problem(Code.WAITING),))
    waits = Job(75, (_problem(Code.WAITING),), (JobState.WAITING,))
    ended = _run("pipeline.sh", tmp_path, [made, waits, waits, Job(0), Job(0)])

    assert ended.code == 0
    assert [it for it, _ in ended.actions] == ["Run", "Run", "Logs", "Logs", "Destroy"]
    words = [line.partition("aiinfra-arguments=")[2] for line in ended.commands]
    name = words[0].partition("--name ")[2].split()[0]
    assert f"Logs {name} --follow" in next(it for it in words if it.startswith("Logs"))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_pipeline_that_is_stopped_ends_the_job_and_destroys_the_cluster(
    tmp_path: Path, number: int, code: int
) -> None:
    ended = _run("pipeline.sh", tmp_path, [Job(None), Job(0), Job(0)], stop=number)

    assert [action for action, _ in ended.actions] == ["Run", "Cancel", "Destroy"]
    assert sum("instances delete" in line for line in ended.commands) == len(ended.actions)
    assert ended.code == code


STOCK_OUT = Job(7, (_problem(Code.STOCK_OUT, zones=("us-central1-a", "us-central1-f")),))
WAITING = Job(75, (_problem(Code.WAITING),))
QUOTA = Job(7, (_problem(Code.QUOTA_EXCEEDED),))
LOCKED = Job(5, (_problem(Code.STATE_LOCKED),))
HERE, THERE = "us-central1-a", "us-central1-f"


@pytest.mark.parametrize(
    ("jobs", "other_zones", "tried", "code"),
    [
        pytest.param([WAITING] * 5 + [Job(0)], "no", [HERE] * 6, 0, id="a wait goes on"),
        pytest.param([STOCK_OUT] * 3, "no", [HERE] * 3, 7, id="a stock-out is tried thrice"),
        pytest.param(
            [*[STOCK_OUT] * 3, Job(0)], "yes", [HERE] * 3 + [THERE], 0, id="then elsewhere"
        ),
        pytest.param([*[STOCK_OUT] * 6], "yes", [HERE] * 3 + [THERE] * 3, 7, id="not in circles"),
        pytest.param([QUOTA], "yes", [HERE], 7, id="a quota is for a person"),
        pytest.param([LOCKED, Job(0)], "no", [HERE] * 2, 0, id="a lock is waited for"),
        pytest.param([Job(1)], "yes", [HERE], 1, id="a run without a result is for a person"),
    ],
)
def test_a_pipeline_decides_by_what_the_document_says(
    tmp_path: Path, jobs: list[Job], other_zones: str, tried: list[str], code: int
) -> None:
    ended = _run("pipeline.sh", tmp_path, [*jobs, Job(0)], "true", OTHER_ZONES=other_zones)

    assert ended.actions == [*(("Create", zone) for zone in tried), ("Destroy", tried[-1])]
    assert ended.code == code
    if code:
        assert "a person is needed" in ended.err


def test_a_pipeline_has_a_time_limit(tmp_path: Path) -> None:
    ended = _run("pipeline.sh", tmp_path, [WAITING, Job(0)], "true", CREATE_TIMEOUT="0")

    assert [action for action, _ in ended.actions] == ["Create", "Destroy"]
    assert ended.code != 0
    assert "the time for Create is over" in ended.err


def test_a_destroy_that_is_locked_out_is_tried_again(tmp_path: Path) -> None:
    ended = _run("pipeline.sh", tmp_path, [Job(0), LOCKED, LOCKED, Job(0)], "true")

    assert [action for action, _ in ended.actions] == ["Create", *["Destroy"] * 3]
    assert ended.code == 0


def test_a_setting_that_would_mend_it_is_named_and_left_to_a_person(tmp_path: Path) -> None:
    wrong = Job(2, (_problem(Code.CONFLICTING_SETTINGS, GPU_COUNT="8"),))
    ended = _run("pipeline.sh", tmp_path, [wrong, Job(0)], "true")

    assert ended.code == 2
    assert "setting GPU_COUNT=8, person" in ended.err
