"""Where a deployment keeps its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self

from provision.catalogue import names
from provision.codes import Code
from provision.documents.plan import Backend
from provision.errors import SettingsError

if TYPE_CHECKING:
    from provision.settings.model import Settings

RECORD: Final = "deployment.json"
"""The record of a deployment, in its folder."""
STATE: Final = "terraform/state/default.tfstate"
"""Terraform's state, in the same folder."""
FOLDER: Final = "-deployment"
"""How the names of these folders end."""
DEEPEST: Final = 3
"""Folders in which deployments are looked for, one inside the other."""
SHARED: Final = ("files/", "jobs/", "pods/", "ray/", "vms/")
"""The parts of the folder in which machines and pods of the deployment get roles."""


class Place(Protocol):
    """Where a deployment is in the cloud; settings, specifications and records all say it."""

    @property
    def project_id(self) -> str:
        """The project."""

    @property
    def region(self) -> str:
        """The region of its networks."""

    @property
    def zone(self) -> str:
        """The zone of its machines."""

    @property
    def name_prefix(self) -> str:
        """How the names of all that is made begin."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The other projects in which it makes firewall rules."""


@dataclass(frozen=True)
class StateLocation:
    """The bucket and the folder in which a deployment keeps its state."""

    bucket: str  # the bucket's name
    folder: str  # the deployment's folder in the bucket, without leading or trailing slashes
    is_default: bool  # whether it is the project's default bucket, which is created if missing

    @property
    def state_prefix(self) -> str:
        """The prefix of Terraform's gcs backend."""
        return f"{self.folder}/terraform/state"

    @property
    def url(self) -> str:
        """The folder as a gs:// URL."""
        return f"gs://{self.bucket}/{self.folder}"

    @property
    def backend(self) -> Backend:
        """The settings of Terraform's gcs backend."""
        return Backend(bucket=self.bucket, prefix=self.state_prefix)

    @classmethod
    def of(cls, project_id: str, name_prefix: str, gcs_path: str) -> Self:
        """Compute where a deployment keeps its state."""
        bucket, _, folder = gcs_path.removeprefix("gs://").partition("/")
        path = "/".join(part for part in (folder, f"{name_prefix}{FOLDER}") if part)
        return cls(bucket, path, is_default=bucket == f"{names.STATE_BUCKETS}{project_id}")


def locate(settings: Settings) -> StateLocation:
    """Where the deployment that the settings describe keeps its state."""
    path = settings.terraform_gcs_path
    if path is None:  # a rule between settings requires it where there is no default bucket
        raise SettingsError(
            "TERRAFORM_GCS_PATH is not set", code=Code.MISSING_SETTING, setting="TERRAFORM_GCS_PATH"
        )
    return StateLocation.of(settings.project_id, settings.name_prefix, path)
