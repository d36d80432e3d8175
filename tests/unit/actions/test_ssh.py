"""What Ssh runs on a terminal, and where it only prints."""

import contextlib
import json
import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.actions import ssh
from provision.errors import ClusterError
from tests.unit.memory_folder import MemoryFolder

GCLOUD = "/bin/gcloud compute ssh"
VMS = [
    {"name": "np-vm-a", "rank": 1, "external_ip": None, "ssh": "rm -rf ~"},
    {"name": "np-vm-b", "rank": 0, "external_ip": "192.0.2.1", "ssh": "rm -rf ~"},
]


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
    monkeypatch: pytest.MonkeyPatch, *, wanted: str, at_terminal: bool, ran: str, code: int
) -> None:
    calls: list[list[str]] = []
    printed: list[str] = []
    text = json.dumps({"vms": VMS})
    folder = MemoryFolder({"connection.json": text})
    record = SimpleNamespace(project_id="p", zone="z", name_prefix="np")
    monkeypatch.setattr(ssh, "connect", lambda _: SimpleNamespace(folder=folder))
    monkeypatch.setattr("provision.lifecycle.ownership.existing", lambda *_: record)
    monkeypatch.setattr("shutil.which", lambda _: "/bin/gcloud")

    def run(argv: list[str], **_: object) -> SimpleNamespace:
        calls.append(argv)
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(subprocess, "run", run)
    console = SimpleNamespace(
        opens_shells=at_terminal, result=printed.append, progress=lambda _: None
    )
    settings = SimpleNamespace(ssh_forward=6006 if code == 255 else None)
    context: Any = SimpleNamespace(
        job=wanted, console=console, report=SimpleNamespace(), settings=settings
    )

    # Only ssh's own failure is one of this program's; a shell may end as it likes.
    with pytest.raises(ClusterError) if code == 255 else contextlib.nullcontext():
        ssh.ssh(cast("Any", context))

    assert calls == ([ran.split()] if ran else [])
    assert len(printed) == (not ran)
    assert "rm" not in " ".join(printed)
