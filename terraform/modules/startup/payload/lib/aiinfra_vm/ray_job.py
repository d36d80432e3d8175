"""Runs a job's program by Ray's own job API, from the VM that is Ray's head, and ends as it does.

Ray's own Python runs this as the jobs' user, in the job's folder. Ray begins the program as its
own user, and brings the folder to whatever VM a task of the program runs on. Without arguments
this ends what is left of jobs: the unit does so after each, as what Ray runs is no child of it.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable, Mapping, Sequence

from aiinfra_vm import ray_process

PYTHON = "/opt/aiinfra/ray/bin/python"
_LIBRARY = Path(__file__).parents[1]
_TOKEN = "/run/aiinfra-ray/token"  # noqa: S105 - a path, as aiinfra-ray.service has it
_VARIABLES = "AIINFRA_RAY_VARIABLES"
_HAS_SECRETS = "AIINFRA_RAY_SECRETS"
OURS = {"started_by": "aiinfra Run"}
"""What Ray keeps of a job of Run, beside its name."""
# Ray kills a job that was told to end after so many seconds; the runner kills this after 120.
_GRACE = "110"
_PATIENCE = 200.0  # seconds that Ray's head may be away: its programs may take 180 to start
_LOOK = 1.0  # seconds between looks at how far it is
_TOLD_TO_END = 143
_FAILED = 1
# Else Ray leaves out of the folder what its .gitignore names, and .git, venv and .venv.
_WHOLE_FOLDER = {
    "RAY_RUNTIME_ENV_IGNORE_GITIGNORE": "1",
    "RAY_OVERRIDE_RUNTIME_ENV_DEFAULT_EXCLUDES": "",
}


def command(name: str, words: Sequence[str]) -> list[str]:
    """The command that runs a program through Ray, under a name that Ray has not had yet."""
    return [PYTHON, "-m", "aiinfra_vm.ray_job", name, *words]


def environment(variables: Mapping[str, str], *, has_secrets: bool) -> dict[str, str]:
    """What that command needs in its environment, beside what programs usually have."""
    found = {"PYTHONPATH": str(_LIBRARY), _VARIABLES: json.dumps(dict(variables))}
    return {**found, **({_HAS_SECRETS: "1"} if has_secrets else {})}


def _client() -> Any:
    """What talks to Ray's head, wherever that is: each VM has its dashboard at localhost."""
    os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": _TOKEN}, **_WHOLE_FOLDER)
    os.environ.pop("RAY_AUTH_TOKEN", None)
    # Only here, as the runner of all jobs imports this, too.
    from ray.job_submission import JobSubmissionClient  # noqa: PLC0415

    logging.getLogger("ray").setLevel(logging.WARNING)
    return JobSubmissionClient(f"http://127.0.0.1:{ray_process.ports()['dashboard']}")


def _tried(what: Callable[[], Any]) -> Any:
    """What Ray's head answers, once it does.

    Raises:
        OSError: It has not for a long time.
        RuntimeError: It refuses.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            return what()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOOK)


def _runtime_env() -> dict[str, Any]:
    """What Ray makes around the program and its tasks.

    Ray shows all of it to whoever may use it. So secrets are not in it: each process reads them
    from Secret Manager, as its VM's account.
    """
    variables = {**json.loads(os.environ[_VARIABLES]), "RAY_JOB_STOP_WAIT_TIME_S": _GRACE}
    if not os.environ.get(_HAS_SECRETS):
        return {"working_dir": ".", "env_vars": variables}
    if "PYTHONPATH" in variables:
        variables["PYTHONPATH"] += f":{_LIBRARY}"
    hook = "aiinfra_vm.ray_secrets.take"
    return {"working_dir": ".", "env_vars": variables, "worker_process_setup_hook": hook}


def run(name: str, words: Sequence[str]) -> int:
    """Run a program through Ray, and pass on what it says; its exit code, as a shell has it.

    Raises:
        OSError: Ray's head does not answer.
        RuntimeError: It refuses the job, or does not know it any longer.
    """
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    client = _tried(_client)
    if os.environ.get(_HAS_SECRETS):
        words = [PYTHON, "-m", "aiinfra_vm.ray_secrets", *words]
    if told.is_set():
        return _TOLD_TO_END
    client.submit_job(
        # The shell that Ray begins is to be the program: it would die of SIGTERM before that has.
        entrypoint=f"exec {shlex.join(words)}",
        submission_id=name,
        runtime_env=_runtime_env(),
        metadata=OURS,
    )
    log = _Log(name)
    is_stopped = False
    while True:
        job = _tried(lambda: client.get_job_info(name))
        log.pass_on()
        if job.status.is_terminal():
            return _code(job, is_told=told.is_set())
        if told.is_set() and not is_stopped:
            # False as long as it has not begun: then it is asked again.
            is_stopped = _tried(lambda: client.stop_job(name))
        time.sleep(_LOOK)


class _Log:
    """What the program says, as Ray writes it into a file on its head.

    Ray's API has it, too, but as text, in which it changes bytes or gives up.
    """

    def __init__(self, name: str) -> None:
        self._pattern = f"session_*/logs/job-driver-{name}.log"
        self._read = 0

    def pass_on(self) -> None:
        """Say what is new."""
        for path in ray_process.SESSIONS.glob(self._pattern):
            with path.open("rb") as file:
                file.seek(self._read)
                while True:
                    chunk = file.read(65536)
                    if not chunk:
                        break
                    sys.stdout.buffer.write(chunk)
                    self._read += len(chunk)
            sys.stdout.flush()


def _code(job: Any, *, is_told: bool) -> int:
    """The exit code of a job that is over."""
    code = job.driver_exit_code
    if code is not None:
        return int(code) if code >= 0 else 128 - int(code)
    if job.status == "STOPPED":
        if not is_told:
            _say("somebody has stopped it in Ray")
        return _TOLD_TO_END
    _say(f"Ray: {job.message}")
    return _FAILED


def end_all() -> None:
    """End what is left of jobs.

    Raises:
        OSError: Ray's head does not answer.
        RuntimeError: It refuses.
    """
    client = _client()
    for job in client.list_jobs():
        if job.metadata == OURS and not job.status.is_terminal():
            client.stop_job(job.submission_id)


def _say(what: str) -> None:
    sys.stdout.write(f"=== aiinfra: {what} ===\n")
    sys.stdout.flush()


def main() -> None:
    """Run a program, or end what is left of them."""
    name, *words = sys.argv[1:] or [""]
    try:
        if not name:
            end_all()
            return
        sys.exit(run(name, words))
    except (OSError, RuntimeError) as error:
        _say(f"Ray: {error}")
        sys.exit(_FAILED)


if __name__ == "__main__":
    main()
