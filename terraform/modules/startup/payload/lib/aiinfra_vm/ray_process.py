"""Ray on this VM: one `ray start`, in the foreground, and all that it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# `ray` stands beside the Python that runs this.
_RAY = str(Path(sys.executable).with_name("ray"))
_STARTED = "Ray runtime started"
_STOP_SECONDS = 20
SESSIONS = Path("/tmp/ray")  # noqa: S108 - Ray's own
"""Where Ray has what its clients on this VM look for."""
_LOCAL_SSD = Path("/mnt/localssd/ray")
# Beside lib/, in which this package is; the firewall's rules are made from it, too.
_PORTS = Path(__file__).parents[2] / "ray-ports.json"


def ports() -> dict[str, int]:
    """The port of each part of Ray: all that listen for other VMs."""
    found: dict[str, int] = json.loads(_PORTS.read_text("utf-8"))
    return found


def of_head(address: str) -> list[str]:
    """The arguments of `ray start` for the head at this address."""
    number = ports()
    return [
        "--head",
        f"--port={number['gcs']}",
        f"--dashboard-host={address}",
        f"--dashboard-port={number['dashboard']}",
        f"--ray-client-server-port={number['client']}",
    ]


def of_worker(head: str) -> list[str]:
    """The arguments of `ray start` for a worker of the head at that address."""
    return [f"--address={head}:{ports()['gcs']}"]


def _of_every_node(address: str) -> list[str]:
    number = ports()
    arguments = [
        "--block",
        "--disable-usage-stats",
        f"--node-ip-address={address}",
        f"--node-manager-port={number['node_manager']}",
        f"--object-manager-port={number['object_manager']}",
        f"--runtime-env-agent-port={number['runtime_env_agent']}",
        f"--dashboard-agent-grpc-port={number['agent_grpc']}",
        f"--dashboard-agent-listen-port={number['agent_http']}",
        f"--metrics-export-port={number['metrics']}",
        f"--min-worker-port={number['first_worker']}",
        f"--max-worker-port={number['last_worker']}",
    ]
    # The service makes it on the Local SSDs, where the VM has some.
    if os.access(_LOCAL_SSD, os.W_OK):
        arguments.append(f"--object-spilling-directory={_LOCAL_SSD}")
    return arguments


def _environment() -> Mapping[str, str]:
    number = ports()
    return {
        **os.environ,
        "AUTOSCALER_METRIC_PORT": str(number["autoscaler_metrics"]),
        "DASHBOARD_METRIC_PORT": str(number["dashboard_metrics"]),
    }


class Ray:
    """A Ray node that has been started."""

    def __init__(self, arguments: list[str], address: str) -> None:
        self._ready = threading.Event()
        self._process = subprocess.Popen(  # noqa: S603 - Ray's own command
            [_RAY, "start", *_of_every_node(address), *arguments],
            env=_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # so that all of it can be ended
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_ready(self, seconds: float) -> bool:
        """Wait until this node is part of its cluster; False if it ended, or took too long."""
        if not (self._ready.wait(seconds) and self.alive()):
            return False
        open_to_users(SESSIONS)
        return True

    def alive(self) -> bool:
        """Whether Ray runs on this VM."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End Ray on this VM, also what has come loose from the process that started it."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        subprocess.run(  # noqa: S603 - Ray's own command
            [_RAY, "stop", "--force"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_STOP_SECONDS * 3,
            check=False,  # there is nothing left to stop: the usual case
        )
        self._reader.join(1)

    def _read(self) -> None:
        output = self._process.stdout
        if output is None:  # pragma: no cover - it was asked for
            raise AssertionError("Ray was started without its output")
        for line in output:
            sys.stdout.write(line)
            sys.stdout.flush()
            if _STARTED in line:
                self._ready.set()
        self._ready.set()  # it has ended: nobody need wait any longer


def open_to_users(sessions: Path) -> None:
    """Let programs of the VM's other users join, as `ray.init()` does: the token decides who may.

    They connect to these sockets, and write files of their own into these folders; Ray makes both
    for the user alone that runs it. The session that is called the latest may be another user's,
    and a node that began again in the same session has a number after its sockets' names.
    """
    sockets = sessions.glob("session_*/sockets/raylet*")
    own = [socket for socket in sockets if socket.stat().st_uid == os.getuid()]
    if not own:
        return  # it has ended already
    session = max(own, key=lambda socket: socket.stat().st_mtime).parents[1]
    for name in ("raylet*", "plasma_store*"):
        for socket in (session / "sockets").glob(name):
            socket.chmod(0o666)
    for name in ("events", "export_events"):
        folder = session / "logs" / name
        folder.mkdir(exist_ok=True)
        folder.chmod(0o1777)
