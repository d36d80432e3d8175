"""Running Terraform; no other package starts it.

python-terraform builds the argument lists but does not run them: it would put the child into our
process group (so that Ctrl-C reaches Terraform twice), can't forward signals, and buffers all
output.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import python_terraform

from provision.codes import Code
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Interrupted, ProvisionError, StateError, TerraformError
from provision.terraform import applying, child, failures
from provision.terraform import plan as plans
from provision.terraform.child import Binary, environment, find
from provision.terraform.configuration import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from provision.time.stages import Progress

__all__ = ["Binary", "Terraform", "Voice", "environment", "find"]

PLAN_FILE: Final = "deployment.tfplan"
"""The saved plan, which is the one that is shown and applied."""
_FLAG: Final = python_terraform.IsFlagged
_TRY: Final = 60.0  # seconds that one try to save the state may take
_LAST_TRY: Final = 10.0
"""The same where somebody has asked to stop."""


@dataclass(frozen=True, kw_only=True)
class Voice:
    """Where Terraform's output goes."""

    write: Callable[[bytes], None]  # gets Terraform's output for people, as it is printed
    tell: Callable[[str], None]  # gets a sentence about an interrupt
    progress: Progress  # the run's progress, of which Terraform's commands are stages
    colours: bool = False  # whether Terraform's output may be in color


class Terraform:
    """Terraform in one run folder; `changed` is called when it may have changed the state."""

    def __init__(
        self,
        binary: Binary,
        folder: Path,
        environ: Mapping[str, str],
        voice: Voice,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.binary = binary
        self._folder = folder
        self._environ = environ
        self._voice = voice
        self._changed = changed
        self._inherited: tuple[int, ...] = ()
        self._work: Mapping[StageName, int] = {}
        self.has_lost_track = False
        """Whether Terraform died, or made something that is in no saved state."""

    def inherits(self, descriptor: int) -> None:
        """Let all further child processes inherit an open file, which outlives a kill of ours."""
        self._inherited = (*self._inherited, descriptor)

    def init(self, *, backend: bool = True) -> None:
        """Run `terraform init`; its output is shown only if it fails."""
        said: list[bytes] = []
        ours = locked(self._folder)
        with self._voice.progress.stage(StageName.INIT):
            argv = _arguments("init", input=False, backend=backend, no_color=self._plain)
            done = self._start(argv, write=said.append)
            if done.code != 0:
                self._voice.write(b"".join(said))
            self._judge("init", done)
        # Nothing of it has run yet. With -lockfile=readonly, Terraform would refuse ours as well:
        # it could not write down the checksum of a package that a mirror has unpacked.
        if strange := locked(self._folder) - ours:
            raise StateError(
                f"The Terraform state wants providers that are not ours: {', '.join(strange)}",
                code=Code.STATE_FOREIGN,
                why="another program or person has changed the state just now",
                fix="find out who may write to the bucket, and restore an older version of the"
                " state",
            )

    def validate(self) -> None:
        """Run `terraform validate`, which checks the modules without looking at the values."""
        done = self._start(_arguments("validate", json=_FLAG), write=None)
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
                "Terraform reports that the modules are invalid",
                code=Code.UNEXPECTED,
                why="\n".join(found) or failures.text(done.output).strip(),
                fix="this is a bug of this program: please report it with this message",
            )

    def plan(
        self,
        *,
        var_file: str | None = None,
        destroy: bool = False,
        replace: Sequence[str] = (),
    ) -> plans.Plan:
        """Run `terraform plan`, and save the plan for `apply`."""
        leaves = OnInterrupt.LEAVES_REST if destroy else OnInterrupt.KEEPS
        with self._voice.progress.stage(StageName.PLAN, leaves):
            argv = _arguments(
                "plan",
                input=False,
                out=PLAN_FILE,
                var_file=var_file,
                destroy=_FLAG if destroy else None,
                lock=False,
                replace=list(replace),
                no_color=self._plain,
            )
            self._judge("plan", self._start(argv, write=self._voice.write))
            document = json.loads(self._capture("show", PLAN_FILE, json=_FLAG))
        self._work = applying.work(document)
        return plans.read(document)

    def forget(self, addresses: Sequence[str]) -> None:
        """Remove objects from the state; the objects themselves stay in the cloud."""
        if not addresses:
            return
        try:
            self._capture("state rm", *addresses, lock=False)
        finally:
            self._changed()

    def untaint(self, address: str) -> None:
        """Untaint an object, so that Terraform keeps it instead of replacing it."""
        try:
            self._capture("untaint", address, lock=False)
        finally:
            self._changed()

    def state(self) -> dict[str, Any]:
        """The whole state in Terraform's own format, including secrets."""
        document: dict[str, Any] = json.loads(self._capture("state pull"))
        return document

    def apply(self) -> None:
        """Apply the plan that `plan` saved."""
        with applying.Applying(self._voice.progress, self._work) as stages:

            def write(data: bytes) -> None:
                self._voice.write(data)
                stages.feed(data)

            argv = _arguments("apply", PLAN_FILE, input=False, lock=False, no_color=self._plain)
            try:
                self._judge("apply", self._start(argv, write=write))
            except (ProvisionError, Interrupted) as error:
                self._save(error)
                raise
            finally:
                self._changed()

    def _save(self, error: ProvisionError | Interrupted) -> None:
        """Save a state that the apply could not save, or say where it is."""
        file = self._folder / failures.UNSAVED
        if not file.exists():
            return
        argv = _arguments("state push", failures.UNSAVED, lock=False)
        # Terraform's client of Cloud Storage tries for ever where nothing answers. Whoever asked
        # to stop waits for one try.
        is_told = isinstance(error, Interrupted)
        seconds = _LAST_TRY if is_told else _TRY

        def push() -> child.Ended:
            return self._start(argv, write=None, at_most=seconds)

        if push().code == 0 if is_told else failures.save_again(push, self._voice.progress):
            return
        self.has_lost_track = True
        first, *others = error.problems
        why = "\n".join(
            filter(None, [first.why, failures.words_of_unsaved(failures.keep_unsaved(file))])
        )
        error.problems = (dataclasses.replace(first, why=why), *others)

    @property
    def _plain(self) -> object:
        """What keeps colours out of what people read."""
        return None if self._voice.colours else _FLAG

    def _capture(self, command: str, *positional: str, **options: object) -> bytes:
        argv = _arguments(command, *positional, **options)
        return self._judge(command, self._start(argv, write=None))

    def _judge(self, command: str, done: child.Ended) -> bytes:
        """The output of a command that succeeded; raises if it failed or was interrupted."""
        self._interrupted(command, done)
        if done.code != 0:
            raise failures.failure(command, done)
        return done.output

    def _interrupted(self, command: str, done: child.Ended) -> None:
        if done.interrupted_by is not None:
            end = "finished" if done.code == 0 else "stopped cleanly and saved its state"
            raise Interrupted(done.interrupted_by, f"Interrupted; `terraform {command}` {end}")

    def _start(
        self,
        argv: Sequence[str],
        *,
        write: Callable[[bytes], None] | None,
        at_most: float | None = None,
    ) -> child.Ended:
        command = child.Command(
            argv=[*self.binary.argv, *argv],
            folder=self._folder,
            environ=self._environ,
            inherited=self._inherited,
        )
        done = child.run(command, self._voice.tell, write, at_most)
        self.has_lost_track |= done.code < 0 and at_most is None
        return done


def _arguments(command: str, *positional: str, **options: object) -> list[str]:
    built = python_terraform.Terraform().generate_cmd_string(command, *positional, **options)
    return [str(argument) for argument in built[1:]]
