"""Google, as one run meets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.deployment import deployment
from provision.deployment import folder as state
from provision.errors import SettingsError
from provision.google import auth
from provision.google.api import GoogleApi

if TYPE_CHECKING:
    from provision.context import Run


@dataclass(frozen=True)
class Cloud:
    """Google, as these credentials see it, and the deployment's folder in it."""

    api: GoogleApi
    folder: state.StateFolder
    project_number: str

    def has_bucket(self) -> bool:
        """Whether the state's bucket exists; only the default one may be missing.

        Raises:
            StateError: A given one is missing, or it can't be used.
        """
        exists = self.folder.check_bucket(self.project_number)
        if not exists and not self.folder.location.is_default:
            raise self.folder.missing()
        return exists


def connect(run: Run) -> Cloud:
    """Find out who asks, and meet the project and the state folder.

    Raises:
        SettingsError: The run is to be offline.
        CredentialsError: Google does not know who asks.
        CheckError: The project can't be seen.
    """
    if run.offline:
        raise SettingsError(
            "--offline can't be had with this action: it needs Google",
            fix="use --offline with Validate, or leave it out",
        )
    credentials = auth.credentials(run.environ, run.console.progress)
    api = GoogleApi(credentials, run.environ, run.console.progress)
    project_number = api.project_number(run.settings.project_id)
    folder = state.StateFolder(
        deployment.locate(run.settings), run.settings.project_id, credentials, run.environ
    )
    return Cloud(api, folder, project_number)
