"""The state folder of a deployment in Cloud Storage, and whose it is.

gs://BUCKET/[FOLDER/]NAME_PREFIX-deployment/
    terraform/state/    Terraform's state and lock
    deployment.json     the record: what is deployed, and which tool made it
    connection.json     how to connect
    prices.json         Google's prices, where they were asked for (see `cost.skus`)
    runs/               the runs that may hold the lock (see `liveness`)
    jobs/               what VMs and pods are to run, which they can only read
    vms/, pods/, ray/   what they tell, tasks for them, courses and logs of jobs
    logs/               Terraform's logs; Destroy keeps them
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import copy
import dataclasses
import functools
import itertools
import json
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import urlsplit

import tenacity

from provision import words
from provision.codes import Code
from provision.documents import json_object
from provision.errors import CredentialsError, Problem, ProvisionError, StateError
from provision.google import auth, sessions
from provision.google import refusals as google_refusals
from provision.settings import reading
from provision.state import bucket_audit, lost_record, objects, terraform_state
from provision.state.location import DEEPEST, FOLDER, RECORD, STATE, StateLocation
from provision.state.objects import Change, Stored, Writer
from provision.state.record import ForeignRecordError, Record
from provision.terraform import configuration as declarations
from provision.terraform import lock as locks
from provision.terraform.lock import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from pathlib import Path

    from google.auth.credentials import Credentials
    from google.cloud import storage

    from provision.state.location import Place

T = TypeVar("T")

_RECORD: Final = Stored(RECORD, Writer.PROGRAM, Record.parse)
_STATE: Final = Stored(STATE, Writer.TERRAFORM, terraform_state.parse, largest=2**27)
_LOCK: Final = Stored("terraform/state/default.tflock", Writer.TERRAFORM, Lock.read)
LOG: Final = Stored("logs/{}.log", Writer.PROGRAM, objects.text, largest=2**30, most=objects.MANY)
_SETTINGS: Final = Stored("{}", Writer.PEOPLE, objects.text, part=".+")
"""An env.list, or a team's defaults, in any bucket."""
_LOGS: Final = LOG.start()
_AT_ONCE: Final = 8
"""Objects that are read side by side: a job may have a thousand tasks, each with its own."""
_BUCKET: Final = "the bucket"
_LISTED: Final = "what is listed"  # what is known beside single objects


@dataclasses.dataclass(frozen=True)
class _Place:
    """The place of another deployment of a project, or of an object that is no deployment's."""

    project_id: str = "-"
    region: str = ""
    zone: str = ""
    name_prefix: str = ""
    hosts: tuple[str, ...] = ()


def read_object(url: str, credentials: Credentials, environ: Mapping[str, str]) -> str:
    """The text of an object of any bucket."""
    bucket, _, path = url.removeprefix("gs://").partition("/")
    within, _, name = path.rpartition("/")
    location = StateLocation(bucket=bucket, folder=within, is_default=False)
    text = StateFolder(location, _Place(), credentials, environ).read(_SETTINGS, name)
    if text is None:
        raise StateError(f"{url} does not exist")
    return text


class _LockGoneError(Exception):
    """Who held the lock has ended between the request for it and the look at it."""


_TRIES: Final = tenacity.Retrying(
    retry=tenacity.retry_if_exception_type(_LockGoneError),
    stop=tenacity.stop_after_attempt(5),
    wait=tenacity.wait_exponential(multiplier=0.25),
)


class StateFolder:
    """One deployment's folder, read and written with google-cloud-storage.

    `place`: project, region, zone and prefix, as the settings have them; the bucket should belong
    to that project. Bucket, record and state are read once, and again after `look_again`, which
    whoever may have waited for something calls.
    """

    def __init__(
        self,
        location: StateLocation,
        place: Place,
        credentials: Credentials,
        environ: Mapping[str, str],
    ) -> None:
        from google.api_core import exceptions  # noqa: PLC0415 - as below
        from google.cloud import storage  # noqa: PLC0415 - 0.4 s that an offline run need not wait

        self.location = location
        self._errors: Any = exceptions
        self._place = place
        self._credentials = credentials
        moved = environ.get("GOOGLE_STORAGE_CUSTOM_ENDPOINT")
        options = {"api_endpoint": _origin(moved)} if moved else None
        self._client: storage.Client = storage.Client(
            project=place.project_id,
            credentials=credentials,
            client_options=options,
            _http=sessions.authorized(credentials, environ),
        )
        # Only for traces, it looks for the bucket behind each object that is not there (3.17).
        self._client._bucket_metadata_cache = None  # noqa: SLF001 - no setting leaves it out
        self._known: dict[str, Any] = {}

    def look_again(self) -> None:
        """Read bucket, record and state again when they are asked for: they may have changed."""
        self._known = {}

    def forget_state(self) -> None:
        """Read the state again when it is asked for: Terraform may have changed it."""
        self._known.pop(STATE, None)

    def read_once(self, kept: Stored[T | None], *parts: str, **about: Any) -> T | None:
        """What `read` returns, but of one read since the last `look_again`, or our last write."""
        return self._once(kept.at(*parts), lambda: self.read(kept, *parts, **about))

    def list_once(self, kept: Collection[Stored[Any]], *, of_all: bool = False) -> None:
        """List these objects of a folder that exists, the lock among them, with one request.

        What is asked of them until `look_again` is told by that. `of_all`: those of all deployments
        beside this one too.
        """
        forms = [*kept, _LOCK]
        start = self._above if of_all else self._path("")
        glob = f"{start}{'**/' if of_all else ''}{{{','.join(it.glob for it in forms)}}}"
        with self._told("list the deployment's objects", "storage.objects.list"):
            found = self._client.list_blobs(self.location.bucket, prefix=start, match_glob=glob)
            self._known[_LISTED] = ({it.name for it in forms}, list(found))

    @property
    def _above(self) -> str:
        """How the paths begin of what is beside this folder."""
        above = self.location.folder.rpartition("/")[0]
        return f"{above}/" if above else ""

    def _once(self, name: str, read: Callable[[], T]) -> T:
        """What was read the first time since the last `look_again`."""
        if name not in self._known:
            self._known[name] = read()
        found: T = self._known[name]
        return found

    def _bucket(self) -> storage.Bucket | None:
        with self._told("read the bucket", "storage.buckets.get"):
            return self._once(_BUCKET, lambda: self._client.lookup_bucket(self.location.bucket))

    def check_bucket(self, project_number: str) -> bool:
        """Whether the bucket exists."""
        bucket = self._bucket()
        if bucket is None:
            return False
        if str(bucket.project_number) != project_number:
            raise StateError(
                f"The bucket gs://{self.location.bucket} belongs to another project",
                code=Code.BUCKET_UNSAFE,
                why=f"its project number is {bucket.project_number}, that of"
                f" {self._place.project_id} is {project_number}; others could read or change a"
                " state there",
                fix="set TERRAFORM_GCS_PATH to a bucket of this project",
                setting="TERRAFORM_GCS_PATH",
            )
        return True

    def audit(
        self, *, needs_uniform: bool, meant: Collection[str] = ()
    ) -> tuple[list[Problem], tuple[str, ...]]:
        """What is worth knowing of the bucket, and who beside the caller may change the state.

        `meant`: principals that may do so on purpose. Nothing of a bucket that does not exist.
        """
        bucket = self._bucket()
        if bucket is None:
            return [], ()
        access = bucket.iam_configuration
        found = bucket_audit.Bucket(
            versioned=bool(bucket.versioning_enabled),
            uniform=bool(access.uniform_bucket_level_access_enabled),
            closed=access.public_access_prevention == "enforced",
            bindings=self._bindings(bucket),
            keeps=bool(bucket.retention_period),
            locked=bool(bucket.retention_policy_locked),
            holds=bool(bucket.default_event_based_hold),
            rules=list(bucket.lifecycle_rules),
        )
        caller = self.caller
        notes = bucket_audit.audit(
            found, self.location, caller=caller, needs_uniform=needs_uniform, meant=meant
        )
        return notes, bucket_audit.writers(found, self.location, caller)

    @property
    def caller(self) -> str:
        """The address of who asks, as far as the credentials say it without a request, else ""."""
        names = ("service_account_email", "account")
        return next(
            (it for name in names if "@" in (it := str(getattr(self._credentials, name, "")))), ""
        )

    def shares_with(self, email: str, part: str) -> bool | None:
        """Whether the bucket's own roles let an account write into a part of the folder.

        None where these credentials may not know.
        """
        bucket = self._bucket()
        bindings = None if bucket is None else self._bindings(bucket)
        if bindings is None:
            return None
        return bucket_audit.shares(bindings, self.location, f"serviceAccount:{email}", part)

    def _bindings(self, bucket: storage.Bucket) -> list[dict[str, Any]] | None:
        """Who has which role in the bucket; None where these credentials may not know."""
        with self._told("read the bucket's roles", "storage.buckets.getIamPolicy"):
            try:
                policy = bucket.get_iam_policy(requested_policy_version=3)
            except self._errors.Forbidden:
                return None
        return list(policy.bindings)

    def require_bucket(self, project_number: str, region: str, kms_key: str | None) -> bool:
        """Create the default bucket if it does not exist; returns whether it was created.

        `kms_key`: the key of Cloud KMS for what is written into it; None for Google's own.
        """
        if self.check_bucket(project_number):
            return False
        if not self.location.is_default:
            raise self.missing()
        bucket = self._client.bucket(self.location.bucket)
        bucket.iam_configuration.uniform_bucket_level_access_enabled = True
        bucket.iam_configuration.public_access_prevention = "enforced"
        bucket.versioning_enabled = True
        bucket.add_lifecycle_delete_rule(days_since_noncurrent_time=bucket_audit.KEPT_DAYS)
        bucket.default_kms_key_name = kms_key
        with self._told("create the bucket", "storage.buckets.create"):
            try:
                self._client.create_bucket(bucket, location=region)
            except self._errors.Conflict:
                # Another run may have created it meanwhile; one of another project is refused.
                self.look_again()
                if not self.check_bucket(project_number):
                    raise
                return False
        self.look_again()
        return True

    def others(self) -> Iterator[StateFolder]:
        """The folders of all deployments beside this one in the bucket, and of its own."""
        left = [self._above]
        for prefix in left:
            with self._told("list the deployments", "storage.objects.list"):
                found = self._client.list_blobs(
                    self.location.bucket,
                    prefix=prefix,
                    delimiter="/",
                    fields="prefixes,nextPageToken",
                )
                list(found)
            for folder in sorted(found.prefixes):
                name = folder.rstrip("/").rpartition("/")[2]
                if name.endswith(FOLDER):
                    yield self._other(folder.rstrip("/"), name.removesuffix(FOLDER))
                elif folder.count("/") <= DEEPEST:
                    left.append(folder)

    def beside(self, prefix: str) -> StateFolder:
        """The folder of another deployment of the same project, beside this one."""
        above = self.location.folder.rpartition("/")[0]
        return self._other("/".join(filter(None, [above, f"{prefix}{FOLDER}"])), prefix)

    def _other(self, folder: str, prefix: str) -> StateFolder:
        other = copy.copy(self)
        shared = {_BUCKET, _LISTED} & self._known.keys()
        other._known = {it: self._known[it] for it in shared}  # noqa: SLF001 - of its own class
        other.location = dataclasses.replace(self.location, folder=folder)
        own = self._place
        other._place = _Place(own.project_id, own.region, own.zone, prefix, own.hosts)  # noqa: SLF001 - of its own class
        return other

    def missing(self) -> StateError:
        """The error for a TERRAFORM_GCS_PATH whose bucket does not exist."""
        return StateError(
            f"The bucket gs://{self.location.bucket} does not exist",
            code=Code.BUCKET_MISSING,
            why="the bucket that TERRAFORM_GCS_PATH names must exist",
            fix="check its spelling, create it with: gcloud storage buckets create"
            f" gs://{self.location.bucket} --uniform-bucket-level-access"
            " --public-access-prevention, or leave TERRAFORM_GCS_PATH out",
            setting="TERRAFORM_GCS_PATH",
        )

    def has_state(self) -> bool:
        """Whether the folder has a Terraform state with at least one resource.

        What Terraform has only read, such as an image, is none.
        """
        return not terraform_state.is_empty(self._state())

    def serial(self) -> int:
        """How often Terraform has changed the state; 0 if there is none, or it does not say."""
        return json_object.whole(self._state().get("serial")) or 0

    def record(self) -> Record | None:
        """The record of what is deployed here; None if nothing is.

        A record that is lost or damaged is made again from the state.
        """
        try:
            record = self._once(RECORD, lambda: self.read(_RECORD))
        except ForeignRecordError as error:
            raise StateError(
                f"{self._url(RECORD)} is not a record that this version can read",
                code=Code.STATE_UNREADABLE,
                why="another program wrote it, or a later version of this one",
                fix="use the version of the tool that made this deployment; or choose another"
                " NAME_PREFIX or TERRAFORM_GCS_PATH",
                setting="NAME_PREFIX",
            ) from error
        if record is not None and record.name_prefix != self._place.name_prefix:
            record = None  # another deployment's
        if record is not None or not self.has_state():
            return record
        try:
            record = lost_record.rebuild(self._state(), self._place)
        except ValueError as error:
            raise self._unreadable(_STATE, STATE, str(error)) from error
        if record is None:
            raise StateError(
                f"There is a Terraform state in {self.location.url} that this tool did not make",
                code=Code.STATE_FOREIGN,
                why="nothing in it carries the marker of this tool; the older"
                " ai-infra-cluster-provisioning kept its state at this very place",
                fix="choose another NAME_PREFIX or TERRAFORM_GCS_PATH; or destroy that cluster"
                " first, with the tool that made it",
                setting="NAME_PREFIX",
            )
        return record

    def write_record(self, record: Record) -> None:
        """Write the record of what is deployed."""
        text = record.document()
        self.write(RECORD, text, "application/json")
        self._known[RECORD] = Record.parse(text)

    def write(self, name: str, text: str, content_type: str) -> None:
        """Write a file to the folder."""
        self._known.pop(name, None)
        with self._told(f"write {name}", "storage.objects.create"):
            self._blob(name).upload_from_string(text, content_type=content_type)

    def read(self, kept: Stored[T | None], *parts: str, **about: Any) -> T | None:
        """An object as its type; None if it does not exist.

        `about`: what its reader needs beside the content.

        Raises:
            StateError: It is damaged, and a person has to do something about that.
        """
        if not kept.fits(*parts):
            return None
        name = kept.at(*parts)
        if self._is_missing(kept, name):
            return None
        with self._told(f"read {name}", "storage.objects.get"):
            try:
                content = self._content(name, kept.largest + 1)
            except self._errors.NotFound:
                return None
        return self._parsed(kept, name, content, **about)

    def all(self, kept: Stored[T | None], *parts: str) -> dict[str, T]:
        """All objects of one form, by the last part of their names."""
        names = list(self.names(kept, *parts))
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            read = pool.map(lambda name: self.read(kept, *parts, name), names)
            return {name: it for name, it in zip(names, read, strict=True) if it is not None}

    def names(self, kept: Stored[Any], *parts: str, first: str = "") -> list[str]:
        """The last parts of the names of all objects of one form, in order, from `first` on."""
        return list(self._listed(kept, *parts, first=first))

    def created(self, kept: Stored[Any], *parts: str) -> dict[str, float]:
        """The objects of one form -> when each was written (Unix epoch)."""
        found = self._listed(kept, *parts)
        return {name: blob.time_created.timestamp() for name, blob in found.items()}

    def changed(self, kept: Stored[Any], *parts: str) -> dict[str, Change]:
        """The objects of one form -> the last change of each, or of its metadata."""
        found = self._listed(kept, *parts)
        return {
            name: Change(blob.updated.timestamp(), dict(blob.metadata or {}))
            for name, blob in found.items()
        }

    def _listed(self, kept: Stored[Any], *parts: str, first: str = "") -> dict[str, storage.Blob]:
        start, own = kept.start(*parts), len(self._path(""))
        if not kept.fits(*parts):
            return {}
        listed, blobs = self._known.get(_LISTED, ((), ()))
        with self._told(f"list {start}", "storage.objects.list"):
            if kept.name in listed:
                blobs = (it for it in blobs if it.name.startswith(self._path(start)))
            else:
                blobs = self._client.list_blobs(
                    self.location.bucket,
                    prefix=self._path(start),
                    start_offset=self._path(f"{start}{first}") if first else None,
                )
            found = ((kept.last(it.name[own:], *parts), it) for it in blobs)
            return dict(itertools.islice(((at, it) for at, it in found if at), kept.most))

    def _is_missing(self, kept: Stored[Any], name: str) -> bool:
        """Whether `list_once` has listed such objects, and not this one."""
        listed, blobs = self._known.get(_LISTED, ((), ()))
        return kept.name in listed and all(it.name != self._path(name) for it in blobs)

    def _content(self, name: str, most: int, **how: Any) -> bytes:
        """The content of an object, or so many bytes of it."""
        try:
            return bytes(self._blob(name).download_as_bytes(end=most - 1, **how))
        except self._errors.RequestRangeNotSatisfiable:
            return b""  # there is no first byte

    def _parsed(self, kept: Stored[T], name: str, content: bytes, **about: Any) -> T:
        try:
            found = kept.parse(content[: kept.largest], **about)
        except ValueError as error:
            why = reading.misfit(error)
            if len(content) > kept.largest:
                why = f"it has more than {kept.largest:,} bytes"
            raise self._unreadable(kept, name, why) from error
        return found

    def _unreadable(self, kept: Stored[Any], name: str, why: str) -> StateError:
        url = self._url(name)
        fix = kept.fix.format(url=url)
        return StateError(f"{url} can't be read", code=Code.STATE_UNREADABLE, why=why, fix=fix)

    def has(self, name: str) -> bool:
        """Whether there is a file of this name."""
        with self._told(f"look at {name}", "storage.objects.get"):
            return bool(self._blob(name).exists())

    def write_once(self, name: str, content: str | Path, content_type: str) -> bool:
        """Write a file unless there is one; returns whether it was written."""
        blob = self._blob(name)
        how: dict[str, Any] = {"content_type": content_type, "if_generation_match": 0}
        with self._told(f"write {name}", "storage.objects.create"):
            try:
                if isinstance(content, str):
                    blob.upload_from_string(content, **how)
                elif not blob.exists():  # so that what is large does not travel for nothing
                    blob.upload_from_filename(str(content), **how)
            except self._errors.PreconditionFailed:
                return False
        return True

    def change(self, kept: Stored[T], change: Callable[[T | None], str], content_type: str) -> None:
        """Change an object that several runs may change at the same time.

        `change`: makes the new text of what is there; None for nothing. May be called again.
        """
        name = kept.at()
        with self._told(f"write {name}", "storage.objects.create"):
            while True:
                blob = self._client.bucket(self.location.bucket).get_blob(self._path(name))
                generation = blob.generation if blob else 0
                try:
                    old = None
                    if blob:
                        content = self._content(
                            name, kept.largest + 1, if_generation_match=generation
                        )
                        old = self._parsed(kept, name, content)
                    self._blob(name).upload_from_string(
                        change(old),
                        content_type=content_type,
                        if_generation_match=generation,
                    )
                except (self._errors.NotFound, self._errors.PreconditionFailed):
                    continue
                return

    def remove(self, name: str) -> None:
        """Delete a file if it exists."""
        with (
            self._told(f"remove {name}", "storage.objects.delete"),
            contextlib.suppress(self._errors.NotFound),
        ):
            self._blob(name).delete()

    def known(self) -> set[str]:
        """What the state has: paths ("projects/..."), IDs, and account email addresses."""
        return terraform_state.known(self._state())

    def require_ours(self, providers: Collection[str], declared: Collection[str]) -> None:
        """Make sure that Terraform would start no provider, and delete nothing, but ours.

        `declared`: the addresses of our roots' resources, without the keys of instances.
        """
        state, url = self._state(), self._url(STATE)
        problem = functools.partial(
            Problem,
            code=Code.STATE_FOREIGN,
            fix=f"find out who may write to the bucket, then {objects.RESTORE.format(url=url)}",
        )
        problems = []
        if strange := terraform_state.providers(state) - set(providers):
            what = f"The Terraform state in {url} wants a provider that is not ours: "
            why = (
                "Terraform would download and run it; this tool makes everything with"
                f" {', '.join(sorted(providers))}, so another program or person changed the state"
            )
            problems.append(problem(what=what + words.listed(strange), why=why))
        foreign = {
            f"{address} ({id_})"
            for address, id_ in terraform_state.ids(state).items()
            if not declarations.has(declared, address)
        }
        if foreign:
            what = f"The Terraform state in {url} names what this tool does not make: "
            why = (
                "Create and Destroy would delete it, whoever it belongs to; another program or"
                " person changed the state"
            )
            problems.append(problem(what=what + words.listed(foreign), why=why))
        if problems:
            raise StateError.of(problems)

    def addresses(self) -> set[str]:
        """The addresses of all resources in the state."""
        return terraform_state.addresses(self._state())

    def of_type(self, resource_type: str) -> dict[str, dict[str, Any]]:
        """The resources of one type in the state: address -> attributes."""
        return terraform_state.of_type(self._state(), resource_type)

    def resources(self) -> list[tuple[str, str]]:
        """The type and the name of each resource in the state."""
        return [
            (type_, str(next(filter(None, map(own.get, ("name", "member", "id"))), "")))
            for type_, own in terraform_state.attributes(self._state())
        ]

    def outputs(self) -> dict[str, Any]:
        """The state's outputs by name, without sensitive ones."""
        return terraform_state.outputs(self._state())

    def last_log(self) -> str | None:
        """The URL of the newest log; None if there is none."""
        names = self.names(LOG)
        return self._url(LOG.at(max(names))) if names else None

    def lock(self) -> Lock | None:
        """Terraform's lock; None if nobody holds it."""
        if self._is_missing(_LOCK, _LOCK.name):
            return None
        with self._told("look for a lock", "storage.objects.get"):
            try:
                blob = self._client.bucket(self.location.bucket).get_blob(self._path(_LOCK.name))
                if blob is None:
                    return None
                held = blob.generation
                content = self._content(_LOCK.name, _LOCK.largest, if_generation_match=held)
            except (self._errors.NotFound, self._errors.PreconditionFailed):
                return None  # released between the two requests
        lock = self._parsed(_LOCK, _LOCK.name, content, url=self._url(_LOCK.name))
        return dataclasses.replace(lock, generation=held)

    def free(self, lock: Lock) -> bool:
        """Release a lock that `lock` returned; returns whether it was still the same lock."""
        return self._free(lock.generation)

    def _free(self, generation: int | None) -> bool:
        with self._told("release the lock", "storage.objects.delete"):
            try:
                self._blob(_LOCK.name).delete(if_generation_match=generation)
            except (self._errors.NotFound, self._errors.PreconditionFailed):
                return False
        return True

    @contextlib.contextmanager
    def held(self, operation: str, lock_id: str) -> Iterator[None]:
        """Hold Terraform's lock; Terraform itself must not take it meanwhile."""
        info = locks.info(self._url(_LOCK.name), operation, lock_id)
        taken: int | None = None
        try:
            taken = self._take(info)
            self.look_again()
            yield
        except BaseException:
            # What went wrong counts, not that the lock could not be released either.
            with contextlib.suppress(ProvisionError):
                self._release(lock_id, taken)
            raise
        self._release(lock_id, taken)

    def _release(self, lock_id: str, taken: int | None) -> None:
        """Release the lock, unless somebody has broken it; `taken`: its generation, if known."""
        if taken is None:
            # An interrupt can come between the lock's creation and the response.
            lock = self.lock()
            taken = lock.generation if lock is not None and lock.id == lock_id else None
        if taken is not None:
            self._free(taken)

    def _take(self, info: Mapping[str, str]) -> int | None:
        """Make the lock; its generation, if that was answered."""
        with self._told("take the lock", "storage.objects.create"):
            try:
                return _TRIES.copy()(self._try_to_take, info)
            except tenacity.RetryError as error:
                raise StateError(
                    f"The lock {self._url(_LOCK.name)} could not be taken, though nobody holds it",
                    code=Code.STATE_LOCKED,
                    why="Cloud Storage refused to make it again and again, and there was none",
                    fix="run the same action again: other runs come and go here, or a rule of the"
                    " bucket keeps objects from being made",
                ) from error

    def _try_to_take(self, info: Mapping[str, str]) -> int | None:
        blob = self._blob(_LOCK.name)
        try:
            blob.upload_from_string(json.dumps(info), if_generation_match=0)
        except self._errors.PreconditionFailed as error:
            lock = self.lock()
            if lock is None:
                raise _LockGoneError from error
            # A retried request finds the lock that the first one made, if its response was lost.
            if lock.id != info["ID"]:
                raise lock.error() from error
            return None
        return None if blob.generation is None else int(blob.generation)

    def begin_state(self, terraform_version: str) -> None:
        """Write a state without resources if there is none; the caller holds the lock.

        `terraform init` would write one itself, and take the lock for that.
        """
        if self._state():
            return
        self._known.pop(STATE)
        text = terraform_state.empty(terraform_version)
        with (
            self._told("write the first state", "storage.objects.create"),
            # A retried request whose answer was lost has written it.
            contextlib.suppress(self._errors.PreconditionFailed),
        ):
            self._blob(STATE).upload_from_string(
                text, content_type="application/json", if_generation_match=0
            )
            self._known[STATE] = terraform_state.parse(text)

    def has_empty_state(self) -> bool:
        """Whether a state is here that no longer has, or never had, any resource."""
        return bool(self._state()) and not self.has_state()

    def clear(self) -> None:
        """Delete everything in the folder except the logs, the caller's lock and its run's note.

        Without the note, nobody could tell that a run that is killed in here is dead.
        """
        start = len(self._path(""))
        with self._told("clear the state folder", "storage.objects.list"):
            blobs = self._client.list_blobs(self.location.bucket, prefix=self._path(""))
            found = {blob.name[start:]: blob for blob in blobs}
        self.look_again()
        if self.has_state():
            raise self._changed("the state has resources again")
        holder = self.lock()
        # Delete the record last: without it, a later Destroy would not look for the rest.
        for name in sorted(found, key=lambda name: name == RECORD):
            # A deployment whose state was put into this folder keeps its files.
            of_another = any(part.endswith("-deployment") for part in name.split("/")[:-1])
            if name.startswith(_LOGS) or name == _LOCK.name or of_another:
                continue
            if holder is not None and holder.id in name:
                continue
            with self._told(f"remove {name}", "storage.objects.delete"):
                try:
                    found[name].delete(if_generation_match=found[name].generation)
                except self._errors.NotFound:
                    continue
                except self._errors.PreconditionFailed as error:
                    # VMs that have just ended may have written theirs a moment ago.
                    if name in {RECORD, STATE}:
                        raise self._changed(f"{name} was written meanwhile") from error
                    self.remove(name)

    def _changed(self, why: str) -> StateError:
        return StateError(
            f"Somebody else changed {self.location.url} while this run held its lock",
            code=Code.STATE_LOCKED,
            why=f"{why}; the lock may have been broken, or Terraform run with -lock=false",
            fix="see with Status what exists, then run Destroy again",
        )

    def _state(self) -> dict[str, Any]:
        """Terraform's state; {} if there is none."""
        return self._once(STATE, lambda: self.read(_STATE)) or {}

    def _url(self, name: str) -> str:
        return f"{self.location.url}/{name}"

    def _blob(self, name: str) -> storage.Blob:
        return self._client.bucket(self.location.bucket).blob(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self.location.folder}/{name}".lstrip("/")

    @contextlib.contextmanager
    def _told(self, doing: str, permission: str) -> Iterator[None]:
        """Turn the client's exceptions into errors that say how to fix them."""
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415

        where = f"gs://{self.location.bucket}"
        try:
            yield
        except self._errors.Forbidden as error:
            raise auth.explain(error.message) or StateError(
                f"These credentials may not {doing} in {where}",
                code=Code.PERMISSION_MISSING,
                why=google_refusals.said(error.message),
                fix=f"ask for {permission} on the bucket (the role Storage Admin on it has all that"
                " is needed), or set TERRAFORM_GCS_PATH to a bucket that you may use",
                setting="TERRAFORM_GCS_PATH",
            ) from error
        except self._errors.Conflict as error:
            raise StateError(
                f"The bucket {where} can't be created: another project has a bucket of that name",
                code=Code.BUCKET_UNSAFE,
                why=error.message,
                fix="set TERRAFORM_GCS_PATH to a bucket of your own",
                setting="TERRAFORM_GCS_PATH",
            ) from error
        except (
            GoogleAuthError,
            self._errors.GoogleAPICallError,
            self._errors.RetryError,
            OSError,
        ) as error:
            if isinstance(error, GoogleAuthError) and not auth.is_passing(error):
                raise auth.explain(str(error)) or CredentialsError(
                    f"Google stopped accepting the credentials while trying to {doing}",
                    why=str(error),
                    fix=auth.RENEW,
                ) from error
            raise StateError(
                f"Cloud Storage failed to {doing} in {where}",
                code=google_refusals.code_in(str(error), Code.STORAGE_FAILED),
                why=str(error),
                fix=google_refusals.remedy(str(error)) or google_refusals.AGAIN,
            ) from error


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
