"""What Ray's node does for the other users of its VM."""

import os
from pathlib import Path

from aiinfra_vm import ray_process


def _session(sessions: Path, name: str, sockets: list[str], at: int) -> Path:
    """A session as Ray makes it: for the user alone that runs it."""
    session = sessions / f"session_{name}"
    (session / "sockets").mkdir(parents=True)
    (session / "logs/events").mkdir(mode=0o755, parents=True)
    for one in sockets:
        socket = session / "sockets" / one
        socket.touch()
        socket.chmod(0o755)
        os.utime(socket, (at, at))
    return session


def _modes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_mode & 0o7777 for file in folder.iterdir()}


def test_a_node_that_began_again_in_its_session_is_open_to_all_users(tmp_path: Path) -> None:
    before = _session(tmp_path, "2026-11-22", ["raylet", "plasma_store"], at=1)
    names = ["raylet", "plasma_store", "raylet.1", "plasma_store.1", "dash_JobHead"]
    session = _session(tmp_path, "2026-11-23", names, at=2)

    ray_process.open_to_users(tmp_path)

    assert _modes(session / "sockets") == dict.fromkeys(names[:4], 0o666) | {"dash_JobHead": 0o755}
    assert _modes(session / "logs") == {"events": 0o1777, "export_events": 0o1777}
    assert set(_modes(before / "sockets").values()) == {0o755}


def test_a_node_that_has_ended_opens_nothing(tmp_path: Path) -> None:
    session = _session(tmp_path, "2026-11-23", [], at=1)

    ray_process.open_to_users(tmp_path)

    assert _modes(session / "logs")["events"] == 0o755
