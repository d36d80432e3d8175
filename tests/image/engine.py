"""A container engine for the tests: the one that runs, else Debian's, installed and started."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests import debian
from tests.running import ran

_PACKAGES = ("docker.io", "debootstrap")
_CLIENT = "/usr/bin/docker"
_DAEMON = "/usr/sbin/dockerd"


class NoEngineError(Exception):
    """There is no container engine here, and none can be had."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Engine:
    """A container engine that answers."""

    client: str  # its command: the newest `docker` on PATH need not fit the daemon
    host: str  # what DOCKER_HOST is for it; "" is the default

    @property
    def environ(self) -> dict[str, str]:
        """What the client, and libraries that speak to the daemon, need."""
        own = {"DOCKER_BUILDKIT": "1", "TESTCONTAINERS_RYUK_DISABLED": "true"}
        own |= {"DOCKER_HOST": self.host} if self.host else {}
        return {**os.environ, **own}

    def run(
        self,
        *arguments: str,
        timeout: float = 100,
        stdin: str = "",
        environ: Mapping[str, str] | None = None,
    ) -> Ended:
        """Run `docker ARGUMENTS` to its end."""
        done = ran(
            [self.client, *arguments],
            env={**self.environ, **(environ or {})},
            input=stdin,
            timeout=timeout,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def must(self, *arguments: str, timeout: float = 600) -> str:
        """As `run`; what it prints, if it succeeds."""
        done = self.run(*arguments, timeout=timeout)
        assert done.code == 0, f"docker {' '.join(arguments)}\n{done.out}\n{done.err}"
        return done.out.strip()


@contextlib.contextmanager
def running(cache: Path) -> Iterator[Engine]:
    """An engine; one that is started here ends here.

    `cache`: a folder outside the tree; keeps what the engine builds for the next time.

    Raises:
        NoEngineError: None runs, and this is no Debian or not root.
    """
    for client in dict.fromkeys(filter(None, [_CLIENT, shutil.which("docker")])):
        found = Engine(client, os.environ.get("DOCKER_HOST", ""))
        if Path(client).exists() and _answers(found):
            yield found
            return
    _install()
    with _daemon(cache) as engine:
        yield engine


def _answers(engine: Engine) -> bool:
    return engine.run("version", "--format", "{{.Server.Version}}").code == 0


def _install() -> None:
    if shutil.which(_DAEMON) and shutil.which("debootstrap"):
        return
    try:
        debian.install(*_PACKAGES)
    except debian.NoDebianError as error:
        raise NoEngineError(f"no container engine answers, and {error}") from None


@contextlib.contextmanager
def _daemon(cache: Path) -> Iterator[Engine]:
    """Debian's dockerd, with all of its files in the cache folder.

    It gets no bridge: that would leave an interface and firewall rules behind, and nothing here
    needs a network of its own. Containers have loopback, or the machine's where they say so.
    """
    engine = Engine(_CLIENT, f"unix://{cache / 'docker.sock'}")
    with (cache / "dockerd.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(_DAEMON, "--host", engine.host, "--storage-driver", "overlay2"),
                *("--data-root", str(cache / "engine"), "--exec-root", str(cache / "run")),
                *("--pidfile", str(cache / "dockerd.pid")),
                *("--bridge", "none", "--iptables=false", "--ip-forward=false"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await(engine, process, cache / "dockerd.log")
        yield engine
        _tidy(engine)
    finally:
        process.terminate()
        process.wait(timeout=60)
        # dockerd leaves its namespace mounted; the folder could not be removed later.
        subprocess.run(
            ["umount", str(cache / "run" / "netns" / "default")],  # noqa: S607 - of PATH
            capture_output=True,
            check=False,
        )


def _await(engine: Engine, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if _answers(engine):
            return
        time.sleep(0.2)
    raise NoEngineError(f"dockerd did not start:\n{log.read_text()[-2000:]}")


def _tidy(engine: Engine) -> None:
    """Leave what the next run builds on, and nothing else."""
    left = engine.must("ps", "--all", "--quiet").split()
    if left:
        engine.must("rm", "--force", *left)
    # What was built before has lost its name to what is built now.
    engine.must("image", "prune", "--force")
