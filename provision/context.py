"""The context of one run, which every action gets."""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.state.location import locate
from provision.time.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from provision.console import Console
    from provision.errors import Problem
    from provision.google.api import GoogleApi
    from provision.report import Report
    from provision.settings.model import Settings
    from provision.state.folder import StateFolder
    from provision.state.location import StateLocation
    from provision.terraform import Binary, Terraform
    from provision.terraform.log import Log
    from provision.time.clock import Clock


@dataclass(frozen=True, kw_only=True)
class Context:
    """What every action needs to know about this run.

    Attributes:
        settings: The valid settings.
        environ: The process's environment.
        clock: The clock of Google Cloud.
        console: Where to print.
        report: The run's report, which the action fills.
        offline: Whether requests to Google are forbidden (`--offline`).
        agreed: Whether the user approved losses in advance (`--yes`).
        break_lock: The ID of a lock to release, whoever holds it (`--break-lock`); "" for none.
        role: Whether Validate is to print a custom role instead of checking (`--role`).
        replace_vms: Whether to replace running VMs of an older template (`--replace-vms`).
        copy: The folder to copy to the VMs (`--copy`); None for the default one, if it exists.
    """

    settings: Settings
    environ: Mapping[str, str]
    clock: Clock
    console: Console
    report: Report
    offline: bool = False
    agreed: bool = False
    role: bool = False
    replace_vms: bool = False
    break_lock: str = ""
    copy: Path | None = None

    @property
    def location(self) -> StateLocation:
        """Where the deployment keeps its state."""
        return locate(self.settings)

    @property
    def progress(self) -> Progress:
        """The run's clock and progress output, for waits."""
        return Progress(self.clock, self.console.progress)

    def note(self, notes: Sequence[Problem]) -> None:
        """Print notes, and add them to the report."""
        self.report.notes.extend(notes)
        self.console.notes(notes)

    def look_for_terraform(self) -> Future[Binary]:
        """Begin to look for Terraform, which takes a start of it; `terraform` waits for that."""
        return self._binary

    @functools.cached_property
    def _binary(self) -> Future[Binary]:
        from provision import background, terraform  # noqa: PLC0415 - not every action needs it

        return background.begin(lambda: terraform.find(self.environ))

    def terraform(self, root: Path, log: Log) -> Terraform:
        """Terraform for a run folder, with its output going to a log."""
        from provision import terraform  # noqa: PLC0415 - not every action needs it
        from provision.google import auth  # noqa: PLC0415 - not every action needs it

        voice = terraform.Voice(
            write=log.write,
            tell=self.console.progress,
            colours=log.colours and self.console.colours,
        )
        own = {name.upper() for name in type(self.settings).model_fields}
        environ = terraform.environment(auth.for_terraform(self.environ), private=own)
        return terraform.Terraform(self._binary.result(), root, environ, voice)

    @contextlib.contextmanager
    def log(self, cloud: Cloud | None, action: str) -> Iterator[Log]:
        """Where Terraform's output goes; a log that is kept is uploaded, even after a failure."""
        from provision.terraform.log import Log  # noqa: PLC0415 - as above

        keep = self.settings.minimize_terraform_logging is not None
        log = Log(self.console.raw, self.console.veil, keep=keep)
        try:
            yield log
        finally:
            log.end()
            if log.text and cloud is not None:
                name = log.name(action)
                cloud.folder.write(name, log.text, "text/plain")
                self.console.progress(
                    f"Terraform's output is in {cloud.folder.location.url}/{name}"
                )


@dataclass(frozen=True)
class Cloud:
    """Google's APIs, with the run's credentials, and the deployment's state folder."""

    api: GoogleApi
    folder: StateFolder
    project_number: str

    def has_bucket(self) -> bool:
        """Whether the state's bucket exists; only the default bucket may be missing.

        Raises:
            StateError: The bucket of TERRAFORM_GCS_PATH is missing, or the bucket can't be used.
        """
        exists = self.folder.check_bucket(self.project_number)
        if not exists and not self.folder.location.is_default:
            raise self.folder.missing()
        return exists


def connect(context: Context) -> Cloud:
    """Find the credentials, and connect to the project and the state folder.

    Raises:
        CredentialsError: There are no credentials that Google accepts.
        CheckError: The project does not exist, or these credentials may not read it.
    """
    from provision import background, endpoints  # noqa: PLC0415 - as above
    from provision.google import auth  # noqa: PLC0415 - as above
    from provision.google.api import GoogleApi  # noqa: PLC0415 - as above
    from provision.state.folder import StateFolder  # noqa: PLC0415 - half of a start

    moved = endpoints.announcement(context.environ)
    if moved:
        context.console.progress(moved)
    credentials = auth.credentials(context.environ, context.console.progress)
    api = GoogleApi(credentials, context.environ, context.progress)
    # The client of Cloud Storage is the half of what there is to load: meanwhile Google answers.
    number = background.begin(lambda: api.project_number(context.settings.project_id))
    folder = StateFolder(context.location, context.settings, credentials, context.environ)
    return Cloud(api, folder, number.result())
