"""The example for pipelines: its start-up script and its gcloud commands, truly run."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.image.conftest import TREE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.image.conftest import Image

EXAMPLE = TREE / "examples" / "llm-pipeline"
ACCOUNT = "builder@my-project.iam.gserviceaccount.com"

# Keeps what it is told as a VM's metadata, and answers for guest attributes from a folder.
_GCLOUD = """\
#!/bin/bash
printf '%s\\n' "$*" >>"$FOLDER/commands"
case "$*" in
  *get-guest-attributes*aiinfra-job/exit-code*) cat "$FOLDER/exit-code" ;;
  *get-guest-attributes*aiinfra-job/result*) cat "$FOLDER/result" ;;
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


def _run(
    script: str, tmp_path: Path, code: int, *arguments: str
) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    gcloud = tmp_path / "bin" / "gcloud"
    gcloud.parent.mkdir(exist_ok=True)
    gcloud.write_text(_GCLOUD)
    gcloud.chmod(0o755)
    (tmp_path / "exit-code").write_text(str(code))
    (tmp_path / "result").write_text(json.dumps({"exit_code": code}))
    (tmp_path / "env.list").write_text(
        'PROJECT_ID="my-project"\nNAME_PREFIX=np\nZONE=us-central1-a\r\n'
    )
    environ = os.environ | {
        "FOLDER": str(tmp_path),
        "PATH": f"{gcloud.parent}:{os.environ['PATH']}",
        "POLL_SECONDS": "0",
    }
    done = subprocess.run(
        [EXAMPLE / script, "registry/image:1", str(tmp_path / "env.list"), ACCOUNT, *arguments],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done, (tmp_path / "commands").read_text().splitlines()


@pytest.mark.parametrize("code", [0, 7])
def test_a_job_ends_as_its_action_did_and_leaves_no_vm(tmp_path: Path, code: int) -> None:
    done, commands = _run("submit.sh", tmp_path, code, "Create", "--yes")

    assert done.returncode == code
    assert json.loads(done.stdout) == {"exit_code": code}
    assert "--project=my-project --zone=us-central1-a" in commands[0]
    assert f"--service-account={ACCOUNT} --scopes=cloud-platform" in commands[0]
    assert "aiinfra-arguments=Create --yes" in commands[0]
    assert "instances delete" in commands[-1]


@pytest.mark.parametrize(("work", "code"), [("true", 0), ("false", 1)])
def test_a_pipeline_destroys_what_it_created_however_the_work_ends(
    tmp_path: Path, work: str, code: int
) -> None:
    done, commands = _run("pipeline.sh", tmp_path, 0, work)

    actions = [line.partition("aiinfra-arguments=")[2].split() for line in commands]
    assert [found[0] for found in actions if found] == ["Create", "Destroy"]
    assert done.returncode == code
