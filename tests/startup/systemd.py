"""A stand-in for systemd that runs one kind of service, from its unit file.

It knows what systemd.service(5) says of the settings that our units use, and fails on any other:
what it does not know it must not leave out. The root of the VM is its own.

    start UNIT      start it, and return
    settle          wait until nothing is about to change, or power_off is there; then, if it is,
                    stop all as a shutdown does

Units run with the environment that systemd gives, and the two variables that name stand-ins of
servers.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

UNITS = Path("/etc/systemd/system")
STATES = Path("/run/systemd-stand-in")
POWER_OFF = Path("/simulated/power-off")
_SERVERS = ("GCE_METADATA_HOST", "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER")
_IGNORED = {
    "Description", "Documentation", "Wants", "After", "LimitNOFILE", "LimitMEMLOCK", "TasksMax",
    "OOMPolicy", "StandardInput", "StandardOutput", "StandardError", "StartLimitIntervalSec",
}  # fmt: skip
_KNOWN = {
    "Type", "EnvironmentFile", "Environment", "WorkingDirectory", "ExecStartPre", "ExecStart",
    "Restart", "RestartForceExitStatus", "RestartSec", "TimeoutStartSec", "RemainAfterExit",
    "KillMode", "TimeoutStopSec",
}  # fmt: skip
_ABNORMAL = {"on-abnormal", "on-failure", "always", "on-abort"}


class Unit:
    """A service, as its file describes it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.settings: dict[str, list[str]] = {}
        for line in (UNITS / name).read_text().splitlines():
            if line.startswith("#") or "=" not in line:
                continue
            key, _, value = line.partition("=")
            if key not in _KNOWN | _IGNORED:
                raise SystemExit(f"{name}: the stand-in does not know {key}")
            self.settings.setdefault(key, []).append(value)

    def one(self, key: str, default: str = "") -> str:
        """The last value of a setting."""
        return self.settings.get(key, [default])[-1]

    def environment(self) -> dict[str, str]:
        """What a process of it has at this moment; files win over the unit's own."""
        found = {"PATH": "/usr/bin:/bin", "INVOCATION_ID": "0"}
        found |= {name: os.environ[name] for name in _SERVERS if name in os.environ}
        for line in self.settings.get("Environment", []):
            found |= dict(word.split("=", 1) for word in shlex.split(line))
        for path in self.settings.get("EnvironmentFile", []):
            file = Path(path.removeprefix("-"))
            if not file.exists() and path.startswith("-"):
                continue
            for line in file.read_text().splitlines():
                if line.strip() and line[0] not in "#;":
                    key, _, value = line.partition("=")
                    found[key] = "".join(shlex.split(value))
        return found

    def spawn(self, key: str) -> subprocess.Popen[bytes]:
        """Start the process of ExecStartPre or ExecStart, in a session that is its cgroup."""
        with Path("/simulated/journal").open("ab") as journal:
            return subprocess.Popen(
                shlex.split(self.one(key)),
                env=self.environment(),
                cwd=self.one("WorkingDirectory", "/"),
                stdin=subprocess.DEVNULL,
                stdout=journal,
                stderr=journal,
                start_new_session=True,
            )


def _note(unit: Unit, state: str, main: int = 0) -> None:
    part = STATES / f"{unit.name}.part"
    part.write_text(json.dumps({"state": state, "main": main, "manager": os.getpid()}))
    part.replace(STATES / f"{unit.name}.json")


def _end_rest(keep: int) -> None:
    """SIGKILL what is left of the cgroup: the descendants of this manager, which adopts orphans."""
    while True:
        parents = {}
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents[int(status.parent.name)] = int(fields[1])
        ours = {keep}
        while more := {child for child, parent in parents.items() if parent in ours} - ours:
            ours |= more
        if ours == {keep}:
            return
        for process in ours - {keep}:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.05)


def manage(unit: Unit) -> None:
    """Run it to its end, with its restarts; SIGTERM stops it."""
    # PR_SET_CHILD_SUBREAPER: orphans of the service are this process's children, as in a cgroup.
    import ctypes  # noqa: PLC0415 - for this one call

    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    stopping = False
    main: subprocess.Popen[bytes] | None = None

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True
        if main is not None:
            main.send_signal(signal.SIGTERM)
            signal.alarm(int(unit.one("TimeoutStopSec", "90")))

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(main.pid, signal.SIGKILL) if main else None)
    while not stopping:
        _note(unit, "start-pre")
        main = unit.spawn("ExecStartPre")
        if main.wait() != 0 or stopping:
            break
        main = unit.spawn("ExecStart")
        _note(unit, "running", main.pid)
        code = main.wait()
        abnormal = code < 0 and -code not in (1, 2, 13, 15) and unit.one("Restart") in _ABNORMAL
        forced = str(code) in unit.one("RestartForceExitStatus").split()
        if code == 0 and unit.one("RemainAfterExit") == "yes" and not stopping:
            _note(unit, "exited")
            signal.pause()
            break
        _end_rest(os.getpid())
        if not (forced or abnormal):
            break
        time.sleep(0.05)  # RestartSec, of which nothing depends on the length
    _end_rest(os.getpid())
    _note(unit, "dead")


def start(name: str) -> None:
    """Start a unit in the background, unless it is active."""
    STATES.mkdir(exist_ok=True)
    file = STATES / f"{name}.json"
    if file.exists() and json.loads(file.read_text())["state"] != "dead":
        return
    unit = Unit(name)
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        manage(unit)
        os._exit(0)
    while not file.exists():
        time.sleep(0.01)


def settle() -> None:
    """Wait until all units are over, or the power goes off."""
    while True:
        found = [json.loads(file.read_text()) for file in STATES.glob("*.json")]
        if POWER_OFF.exists():
            for it in found:
                if it["state"] != "dead":
                    os.kill(it["manager"], signal.SIGTERM)
            POWER_OFF.unlink()
            while any(
                json.loads(file.read_text())["state"] != "dead" for file in STATES.glob("*.json")
            ):
                time.sleep(0.05)
            return
        if all(it["state"] in {"dead", "exited"} for it in found):
            return
        time.sleep(0.05)


if __name__ == "__main__":
    if sys.argv[1] == "settle":
        settle()
    else:
        start(sys.argv[-1])
