"""Where a deployment keeps its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from provision.errors import SettingsError

if TYPE_CHECKING:
    from provision.settings.model import Settings


@dataclass(frozen=True)
class Location:
    """Where a deployment keeps its state.

    Attributes:
        bucket: The bucket's name.
        folder: The deployment's folder in it, without slashes at its ends.
        is_default: Whether the bucket is the project's default one, made when missing.
    """

    bucket: str
    folder: str
    is_default: bool

    @property
    def state_prefix(self) -> str:
        """The prefix of Terraform's gcs backend."""
        return f"{self.folder}/terraform/state"

    @property
    def url(self) -> str:
        """The folder as people write it."""
        return f"gs://{self.bucket}/{self.folder}"

    @property
    def backend(self) -> dict[str, str]:
        """The settings of Terraform's gcs backend."""
        return {"bucket": self.bucket, "prefix": self.state_prefix}

    @classmethod
    def of(cls, project_id: str, name_prefix: str, gcs_path: str) -> Self:
        """Find the place of a deployment's state.

        Args:
            project_id: The project.
            name_prefix: The deployment's prefix.
            gcs_path: "gs://bucket[/folder]", a checked TERRAFORM_GCS_PATH.
        """
        bucket, _, folder = gcs_path.removeprefix("gs://").partition("/")
        path = "/".join(part for part in (folder, f"{name_prefix}-deployment") if part)
        return cls(bucket, path, is_default=bucket == f"aiinfra-terraform-{project_id}")


def locate(settings: Settings) -> Location:
    """Where the settings' deployment has its state."""
    path = settings.terraform_gcs_path
    if path is None:  # a rule of the settings asks for it where there is no default bucket
        raise SettingsError("No place for the state", setting="TERRAFORM_GCS_PATH")
    return Location.of(settings.project_id, settings.name_prefix, path)
