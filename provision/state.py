"""The state folder of a deployment in Cloud Storage, and whose it is.

gs://BUCKET/[FOLDER/]NAME_PREFIX-deployment/
    terraform/state/    Terraform's state and lock
    deployment.json     what is deployed, by whom it may be touched
    connection.json     how to connect
    logs/               kept by Destroy
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit

from provision.errors import CredentialsError, StateError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.auth.credentials import Credentials
    from google.cloud import storage

_MADE_BY: Final = "aiinfra-cluster"
_RECORD: Final = "deployment.json"
_LOGS: Final = "logs/"


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


def locate(project_id: str, name_prefix: str, gcs_path: str) -> Location:
    """Find the place of a deployment's state.

    Args:
        project_id: The project.
        name_prefix: The deployment's prefix.
        gcs_path: "gs://bucket[/folder]", a checked TERRAFORM_GCS_PATH.
    """
    bucket, _, folder = gcs_path.removeprefix("gs://").partition("/")
    path = "/".join(part for part in (folder, f"{name_prefix}-deployment") if part)
    return Location(bucket, path, is_default=bucket == f"aiinfra-terraform-{project_id}")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What `deployment.json` says; secrets are masked before they come here."""

    kind: str
    cluster_id: str
    project_id: str
    name_prefix: str
    region: str
    zone: str
    tool_version: str
    terraform_version: str
    image: dict[str, str | None] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)

    def document(self) -> str:
        """As it is kept."""
        return json.dumps({"made_by": _MADE_BY, "format": 1, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `document`'s text; None when something else made it."""
        try:
            document = json.loads(text)
            if document.pop("made_by") != _MADE_BY or document.pop("format") != 1:
                return None
            return cls(**document)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


class StateFolder:
    """One deployment's folder, read and written with google-cloud-storage.

    Args:
        location: Where it is.
        project_id: Whose it should be.
        credentials: Who is asking.
        environ: For a moved endpoint.
    """

    def __init__(
        self,
        location: Location,
        project_id: str,
        credentials: Credentials,
        environ: Mapping[str, str],
    ) -> None:
        from google.cloud import storage  # noqa: PLC0415 - 0.4 s that an offline run need not wait

        self.location = location
        self._project_id = project_id
        moved = environ.get("GOOGLE_STORAGE_CUSTOM_ENDPOINT")
        options = {"api_endpoint": _origin(moved)} if moved else None
        self._client: storage.Client = storage.Client(
            project=project_id, credentials=credentials, client_options=options
        )

    def check_bucket(self, project_number: str) -> bool:
        """Whether the bucket exists.

        Raises:
            StateError: It belongs to another project, or may not be read.
        """
        with self._told("read the bucket", "storage.buckets.get"):
            bucket = self._client.lookup_bucket(self.location.bucket)
        if bucket is None:
            return False
        if str(bucket.project_number) != project_number:
            raise StateError(
                f"The bucket gs://{self.location.bucket} belongs to another project",
                why=f"its project has the number {bucket.project_number},"
                f" {self._project_id} has {project_number}; a state there could be read or changed"
                " by others",
                fix="set TERRAFORM_GCS_PATH to a bucket of this project",
                setting="TERRAFORM_GCS_PATH",
            )
        return True

    def require_bucket(self, project_number: str, region: str) -> bool:
        """Make sure of the bucket; True when it was made now.

        Raises:
            StateError: It can't be used, or a given one does not exist.
        """
        if self.check_bucket(project_number):
            return False
        if not self.location.is_default:
            raise self.missing()
        bucket = self._client.bucket(self.location.bucket)
        bucket.iam_configuration.uniform_bucket_level_access_enabled = True
        bucket.iam_configuration.public_access_prevention = "enforced"
        bucket.versioning_enabled = True
        with self._told("make the bucket", "storage.buckets.create"):
            self._client.create_bucket(bucket, location=region)
        return True

    def missing(self) -> StateError:
        """The error for a given bucket that does not exist."""
        return StateError(
            f"The bucket gs://{self.location.bucket} does not exist",
            why="a TERRAFORM_GCS_PATH that is given must exist",
            fix="check its spelling, make it with: gcloud storage buckets create"
            f" gs://{self.location.bucket} --uniform-bucket-level-access"
            " --public-access-prevention, or leave TERRAFORM_GCS_PATH out",
            setting="TERRAFORM_GCS_PATH",
        )

    def has_state(self) -> bool:
        """Whether Terraform keeps a state here that holds any resource."""
        with self._told("read the state", "storage.objects.get"):
            blob = self._blob("terraform/state/default.tfstate")
            text = blob.download_as_bytes() if blob.exists() else b""
        if not text:
            return False
        try:
            return bool(json.loads(text).get("resources"))
        except ValueError:
            return True  # not for us to judge; Terraform will

    def record(self) -> Record | None:
        """What is deployed here; None when nothing is.

        Raises:
            StateError: There is something, but this tool did not make it.
        """
        with self._told("read the state folder", "storage.objects.get"):
            blob = self._blob(_RECORD)
            text = blob.download_as_bytes().decode() if blob.exists() else None
        if text is not None:
            record = Record.parse(text)
            if record is not None:
                return record
        elif not self.has_state():
            return None
        raise StateError(
            f"There is a Terraform state in {self.location.url} that this tool did not make",
            why="it has no deployment.json of ours; the older ai-infra-cluster-provisioning kept"
            " its state at this very place",
            fix="choose another NAME_PREFIX or TERRAFORM_GCS_PATH; or destroy that cluster with the"
            f" tool that made it and then: gcloud storage rm -r {self.location.url}",
            setting="NAME_PREFIX",
        )

    def write_record(self, record: Record) -> None:
        """Keep what is deployed."""
        self.write(_RECORD, record.document(), "application/json")

    def write(self, name: str, text: str, content_type: str) -> None:
        """Keep a file in the folder."""
        with self._told(f"write {name}", "storage.objects.create"):
            self._blob(name).upload_from_string(text, content_type=content_type)

    def lock(self) -> str | None:
        """The URL of Terraform's lock, while somebody holds it."""
        blob = self._blob("terraform/state/default.tflock")
        with self._told("look for a lock", "storage.objects.get"):
            return f"gs://{self.location.bucket}/{blob.name}" if blob.exists() else None

    def clear(self) -> None:
        """Remove all of the folder but its logs."""
        prefix = self.location.folder + "/"
        with self._told("clear the state folder", "storage.objects.delete"):
            for blob in list(self._client.list_blobs(self.location.bucket, prefix=prefix)):
                if not blob.name.removeprefix(prefix).startswith(_LOGS):
                    blob.delete()

    def _blob(self, name: str) -> storage.Blob:
        return self._client.bucket(self.location.bucket).blob(f"{self.location.folder}/{name}")

    @contextlib.contextmanager
    def _told(self, doing: str, permission: str) -> Iterator[None]:
        """Turn what the client raises into what a person can mend."""
        from google.api_core import exceptions  # noqa: PLC0415 - comes with the client
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415

        where = f"gs://{self.location.bucket}"
        try:
            yield
        except exceptions.Forbidden as error:
            raise StateError(
                f"These credentials may not {doing} in {where}",
                why=error.message,
                fix=f"ask for {permission} on the bucket (role Storage Admin on it covers all that"
                " is needed), or set TERRAFORM_GCS_PATH to a bucket that you may use",
                setting="TERRAFORM_GCS_PATH",
            ) from error
        except exceptions.Conflict as error:
            raise StateError(
                f"The bucket {where} can't be made: its name is taken by another project",
                why=error.message,
                fix="set TERRAFORM_GCS_PATH to a bucket of your own",
                setting="TERRAFORM_GCS_PATH",
            ) from error
        except GoogleAuthError as error:
            raise CredentialsError(
                f"Google stopped accepting the credentials while trying to {doing}",
                why=str(error),
                fix="renew them with: gcloud auth application-default login",
            ) from error
        except (exceptions.GoogleAPICallError, exceptions.RetryError, OSError) as error:
            raise StateError(
                f"Cloud Storage failed to {doing} in {where}",
                why=str(error),
                fix="run the same action again; if it stays, see Google Cloud's status page",
            ) from error


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
