"""One run: what every action knows of it."""

from __future__ import annotations

import contextlib
import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.terraform.log import Log

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from provision.cloud import Cloud
    from provision.console import Console
    from provision.deployment.deployment import Deployment
    from provision.errors import Problem
    from provision.report import Report
    from provision.settings import Settings
    from provision.terraform import Terraform


class Action(enum.StrEnum):
    """What a user can ask for."""

    CREATE = "Create"
    DESTROY = "Destroy"
    VALIDATE = "Validate"
    PLAN = "Plan"
    DEBUG = "Debug"
    STATUS = "Status"
    TEST = "Test"


@dataclass(frozen=True, kw_only=True)
class Run:
    """What every action needs to know about this run.

    Attributes:
        settings: The checked settings.
        environ: The process's environment.
        console: Where to speak.
        report: What is found out and done; filled as it goes.
        offline: Nothing may be asked of Google.
        agreed: Whoever runs this has agreed to losses beforehand (`--yes`).
        copy: The folder to copy to the VMs (`--copy`); None for the usual one, if it is there.
    """

    settings: Settings
    environ: Mapping[str, str]
    console: Console
    report: Report
    offline: bool = False
    agreed: bool = False
    copy: Path | None = None

    def note(self, notes: Sequence[Problem]) -> None:
        """Tell what is worth knowing, and keep it for the report."""
        self.report.notes.extend(notes)
        self.console.notes(notes)

    def show(self, target: Deployment) -> Deployment:
        """Put a deployment into the report; gives it back."""
        self.report.tfvars = target.masked_variables
        self.report.backend = target.location.backend
        return target

    def terraform(self, root: Path, log: Log) -> Terraform:
        """A Terraform in a run folder that speaks into a log."""
        from provision import terraform  # noqa: PLC0415 - not every action needs it
        from provision.google import auth  # noqa: PLC0415 - not every action needs it

        voice = terraform.Voice(
            write=log.write,
            tell=self.console.progress,
            colours=log.colours and self.console.colours,
        )
        own = {name.upper() for name in type(self.settings).model_fields}
        environ = terraform.environment(auth.for_terraform(self.environ), private=own)
        return terraform.Terraform(terraform.find(self.environ), root, environ, voice)

    @contextlib.contextmanager
    def log(self, cloud: Cloud | None, action: str) -> Iterator[Log]:
        """Where Terraform's output goes; a kept log is uploaded at the end, also of a failure."""
        log = Log(self.console.raw, keep=self.settings.minimize_terraform_logging is not None)
        try:
            yield log
        finally:
            if log.text and cloud is not None:
                name = log.name(action)
                cloud.folder.write(name, log.text, "text/plain")
                self.console.progress(
                    f"Terraform's output is in {cloud.folder.location.url}/{name}"
                )
