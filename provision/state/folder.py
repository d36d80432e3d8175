"""The state folder of a deployment in Cloud Storage, and whose it is.

gs://BUCKET/[FOLDER/]NAME_PREFIX-deployment/
    terraform/state/    Terraform's state and lock
    deployment.json     what is deployed, by whom it may be touched
    connection.json     how to connect
    runs/               which runs may hold the lock (`runs`)
    logs/               kept by Destroy
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from provision.errors import CredentialsError, StateError
from provision.google.auth import refusals
from provision.state import lost_record, terraform_state
from provision.state.record import ForeignRecordError, Record
from provision.terraform import lock as locks
from provision.terraform.lock import Lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from google.auth.credentials import Credentials
    from google.cloud import storage

    from provision.state.location import Place, StateLocation

_RECORD: Final = "deployment.json"
_STATE: Final = "terraform/state/default.tfstate"
_LOCK: Final = "terraform/state/default.tflock"
_LOGS: Final = "logs/"


class StateFolder:
    """One deployment's folder, read and written with google-cloud-storage.

    Args:
        location: Where it is.
        place: What the settings call it, and the project whose the bucket should be.
        credentials: Who is asking.
        environ: For a moved endpoint.
    """

    def __init__(
        self,
        location: StateLocation,
        place: Place,
        credentials: Credentials,
        environ: Mapping[str, str],
    ) -> None:
        from google.cloud import storage  # noqa: PLC0415 - 0.4 s that an offline run need not wait

        self.location = location
        self._place = place
        moved = environ.get("GOOGLE_STORAGE_CUSTOM_ENDPOINT")
        options = {"api_endpoint": _origin(moved)} if moved else None
        self._client: storage.Client = storage.Client(
            project=place.project_id, credentials=credentials, client_options=options
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
                f" {self._place.project_id} has {project_number}; a state there could be read or"
                " changed by others",
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
        from google.api_core.exceptions import Conflict  # noqa: PLC0415 - as above

        bucket = self._client.bucket(self.location.bucket)
        bucket.iam_configuration.uniform_bucket_level_access_enabled = True
        bucket.iam_configuration.public_access_prevention = "enforced"
        bucket.versioning_enabled = True
        with self._told("make the bucket", "storage.buckets.create"):
            try:
                self._client.create_bucket(bucket, location=region)
            except Conflict:
                # Another run may have made it since we looked; one of others is still refused.
                if not self.check_bucket(project_number):
                    raise
                return False
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
        return bool(self._state().get("resources"))

    def record(self) -> Record | None:
        """What is deployed here; None when nothing is.

        A record that is lost or damaged is made again from the state.

        Raises:
            StateError: There is something, but this tool, or this version of it, did not make it.
        """
        text = self._read(_RECORD)
        try:
            record = None if text is None else Record.parse(text)
        except ForeignRecordError as error:
            raise StateError(
                f"{self._url(_RECORD)} is not a record that this version can read",
                why="another program wrote it, or a later version of this one",
                fix="use the version of the tool that made this deployment; or choose another"
                " NAME_PREFIX or TERRAFORM_GCS_PATH",
                setting="NAME_PREFIX",
            ) from error
        if record is not None or not self.has_state():
            return record
        record = lost_record.rebuild(self._state(), self._place)
        if record is None:
            raise StateError(
                f"There is a Terraform state in {self.location.url} that this tool did not make",
                why="nothing in it carries the marker of this tool; the older"
                " ai-infra-cluster-provisioning kept its state at this very place",
                fix="choose another NAME_PREFIX or TERRAFORM_GCS_PATH; or destroy that cluster"
                " first, with the tool that made it",
                setting="NAME_PREFIX",
            )
        return record

    def write_record(self, record: Record) -> None:
        """Keep what is deployed."""
        self.write(_RECORD, record.document(), "application/json")

    def write(self, name: str, text: str, content_type: str) -> None:
        """Keep a file in the folder."""
        with self._told(f"write {name}", "storage.objects.create"):
            self._blob(name).upload_from_string(text, content_type=content_type)

    def texts(self, prefix: str) -> dict[str, str]:
        """The files whose names begin so, by their names."""
        start = len(self._path(""))
        with self._told(f"list {prefix}", "storage.objects.list"):
            blobs = self._client.list_blobs(self.location.bucket, prefix=self._path(prefix))
            names = [blob.name[start:] for blob in blobs]
        read = ((name, self._read(name)) for name in names)
        return {name: text for name, text in read if text is not None}

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        from google.api_core.exceptions import NotFound  # noqa: PLC0415 - as above

        with (
            self._told(f"remove {name}", "storage.objects.delete"),
            contextlib.suppress(NotFound),
        ):
            self._blob(name).delete()

    def known(self) -> set[str]:
        """What the state has: paths ("projects/..."), ids, and accounts' email addresses."""
        return terraform_state.known(self._state())

    def addresses(self) -> set[str]:
        """Where the state has something, as Terraform writes addresses."""
        return terraform_state.addresses(self._state())

    def of_type(self, resource_type: str) -> dict[str, dict[str, Any]]:
        """The attributes of the state's resources of a type, by address."""
        return terraform_state.of_type(self._state(), resource_type)

    def outputs(self) -> dict[str, Any]:
        """The values of the state's outputs by name; those that Terraform hides are left out."""
        return terraform_state.outputs(self._state())

    def last_log(self) -> str | None:
        """Where the newest log is; None when there is none."""
        with self._told("list the logs", "storage.objects.list"):
            blobs = self._client.list_blobs(self.location.bucket, prefix=self._path(_LOGS))
            names = [str(blob.name) for blob in blobs]
        return f"gs://{self.location.bucket}/{max(names)}" if names else None

    def lock(self) -> Lock | None:
        """Terraform's lock, while somebody holds it."""
        from google.api_core import exceptions  # noqa: PLC0415 - as above

        with self._told("look for a lock", "storage.objects.get"):
            try:
                blob = self._client.bucket(self.location.bucket).get_blob(self._path(_LOCK))
                if blob is None:
                    return None
                text = blob.download_as_bytes(if_generation_match=blob.generation)
            except (exceptions.NotFound, exceptions.PreconditionFailed):
                return None  # freed between the two requests
        try:
            info = json.loads(text) | {"Path": self._url(_LOCK)}
        except (ValueError, TypeError):
            info = {"Path": self._url(_LOCK)}
        return dataclasses.replace(Lock.of(info), generation=blob.generation)

    def free(self, lock: Lock) -> bool:
        """Remove a lock that `lock` has returned; whether it was still the same one."""
        from google.api_core import exceptions  # noqa: PLC0415 - as above

        with self._told("free the lock", "storage.objects.delete"):
            try:
                self._blob(_LOCK).delete(if_generation_match=lock.generation)
            except (exceptions.NotFound, exceptions.PreconditionFailed):
                return False
        return True

    @contextlib.contextmanager
    def held(self, operation: str) -> Iterator[None]:
        """Hold Terraform's lock for something that is done without Terraform.

        Raises:
            StateError: Somebody else holds it.
        """
        info = locks.info(self._url(_LOCK), operation)
        try:
            self._take(info)
            yield
        finally:
            # By its id: an interrupt can come between the lock's making and the answer.
            lock = self.lock()
            if lock is not None and lock.id == info["ID"]:
                self.free(lock)

    def _take(self, info: Mapping[str, str]) -> None:
        from google.api_core.exceptions import PreconditionFailed  # noqa: PLC0415 - as above

        with self._told("take the lock", "storage.objects.create"):
            try:
                self._blob(_LOCK).upload_from_string(json.dumps(info), if_generation_match=0)
            except PreconditionFailed as error:
                lock = self.lock() or Lock.of({"Path": self._url(_LOCK)})
                # A repeated request meets what the first has made, although its answer was lost.
                if lock.id != info["ID"]:
                    raise lock.error() from error

    def clear(self) -> None:
        """Remove all of the folder but its logs."""
        start = len(self._path(""))
        with self._told("clear the state folder", "storage.objects.list"):
            blobs = self._client.list_blobs(self.location.bucket, prefix=self._path(""))
            names = [blob.name[start:] for blob in blobs]
        # The record goes last: without it, a later Destroy would not look for the rest.
        for name in sorted(names, key=lambda name: name == _RECORD):
            if not name.startswith(_LOGS) and not _is_of_another(name):
                self.remove(name)

    def _state(self) -> dict[str, Any]:
        """Terraform's state; {} when there is none.

        Raises:
            StateError: It can't be read as one.
        """
        text = self._read(_STATE)
        if text is None:
            return {}
        try:
            document = terraform_state.parse(text)
        except ValueError as error:
            raise StateError(
                f"The Terraform state in {self._url(_STATE)} can't be read",
                why=str(error),
                fix="bring back an older version of that object: gcloud storage ls --all-versions"
                f" {self._url(_STATE)}",
            ) from error
        return document

    def _read(self, name: str) -> str | None:
        from google.api_core.exceptions import NotFound  # noqa: PLC0415 - as above

        with self._told(f"read {name}", "storage.objects.get"):
            try:
                text: bytes = self._blob(name).download_as_bytes()
            except NotFound:
                return None
        return text.decode("utf-8", "replace")

    def _url(self, name: str) -> str:
        return f"{self.location.url}/{name}"

    def _blob(self, name: str) -> storage.Blob:
        return self._client.bucket(self.location.bucket).blob(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self.location.folder}/{name}"

    @contextlib.contextmanager
    def _told(self, doing: str, permission: str) -> Iterator[None]:
        """Turn what the client raises into what a person can mend."""
        from google.api_core import exceptions  # noqa: PLC0415 - comes with the client
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415

        where = f"gs://{self.location.bucket}"
        try:
            yield
        except exceptions.Forbidden as error:
            raise refusals.explain(error.message) or StateError(
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
            raise refusals.explain(str(error)) or CredentialsError(
                f"Google stopped accepting the credentials while trying to {doing}",
                why=str(error),
                fix=refusals.RENEW,
            ) from error
        except (exceptions.GoogleAPICallError, exceptions.RetryError, OSError) as error:
            raise StateError(
                f"Cloud Storage failed to {doing} in {where}",
                why=str(error),
                fix="run the same action again; if it stays, see Google Cloud's status page",
            ) from error


def _is_of_another(name: str) -> bool:
    """Whether a file belongs to a deployment whose state was put into this folder."""
    return any(part.endswith("-deployment") for part in name.split("/")[:-1])


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
