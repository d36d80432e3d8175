"""What a check is, what it gets, among that the answers of Google, and what it can find."""

from __future__ import annotations

import concurrent.futures
import enum
import functools
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Required, TypedDict, TypeVar, Unpack

from provision.errors import Problem
from provision.google.api import GoogleApiError, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
    from ipaddress import IPv4Network

    from provision.catalogue.names import DerivedName
    from provision.codes import Code
    from provision.documents.plan import Quota
    from provision.errors import Alternatives
    from provision.google.api import GoogleApi
    from provision.google.owner import Owner
    from provision.google.resources import Look, Resource
    from provision.settings.choices import OnlineCheck
    from provision.spec.cluster import ClusterSpec
    from provision.state.record import Record

T = TypeVar("T")
Document = dict[str, Any]

_NOT_FOUND: Final = 404
_MOST_SERVICES: Final = "200"  # the page size; most projects have fewer APIs enabled


class Answers:
    """Google's answers to the checks; it is safe for several threads.

    Each request is sent only once, however many checks need it.
    Every method raises `GoogleApiError` if Google refuses the request.
    """

    def __init__(self, api: GoogleApi) -> None:
        self._api = api
        self._asked: dict[Hashable, concurrent.futures.Future[Any]] = {}
        self._lock = threading.Lock()

    # -------------------------------------------------------------- resources

    def find(self, service: Service, path: str) -> Document | None:
        """A resource by its path; None if it does not exist."""
        return self._once((service, path), lambda: self._api.find(service, path))

    def get(self, service: Service, path: str) -> Document:
        """A resource by its path; it is an error if it does not exist."""
        return self._once(("get", service, path), lambda: self._api.get(service, path))

    def images(self, project: str, query: str) -> list[Document]:
        """The images of a project, deprecated ones too, for which a filter holds."""
        return self.listed(f"projects/{project}/global/images", filter=query)

    def everywhere(self, project: str, collection: str, name: str) -> list[Document]:
        """The resources of that name in all zones of a project."""
        scopes = self.listed(f"projects/{project}/aggregated/{collection}", filter=f"name={name}")
        return [it for scope in scopes for it in scope.get(collection, [])]

    def machines_with(
        self, project: str, label: str, value: str, *, after: str = ""
    ) -> list[Document]:
        """The VMs of a project, in all zones, that have a label with that value.

        `after`: what was looked at before, if the answer must be younger than that: a group may
        make VMs meanwhile, which a list from before would not have.
        """
        path, query = f"projects/{project}/aggregated/instances", f"labels.{label}={value}"
        scopes = self.listed(path, after=after, filter=query)
        return [vm for scope in scopes for vm in scope.get("instances", [])]

    def shares(self, project: str) -> list[Document]:
        """The Filestore instances of a project, in all places."""
        path = f"projects/{project}/locations/-/instances"
        return self.listed(path, key="instances", service=Service.FILESTORE)

    def zones_with(self, project: str, collection: str, name: str) -> set[str]:
        """The zones that offer a resource of that name in a collection such as "machineTypes"."""
        return self._once(
            (project, collection, name), lambda: self._api.zones_with(project, collection, name)
        )

    def subnetwork(self, path: str) -> Document | None:
        """A subnetwork, with how many of its addresses are free; None if it does not exist."""
        try:
            return self._call("GET", Service.COMPUTE, path, {"views": "WITH_UTILIZATION"})
        except GoogleApiError as error:
            if error.code == _NOT_FOUND:
                return None
            raise

    def folders(self, bucket: str, prefix: str, page: str) -> tuple[list[str], str]:
        """The folders in a folder of a bucket, with a slash each; of one page of its entries.

        `page`: what the page before said; "" for the first one. Returns the folders, and what leads
        to the next page; "" for the last one.
        """
        query = {"delimiter": "/", "fields": "prefixes,nextPageToken", "prefix": prefix}
        query |= {"pageToken": page} if page else {}
        found = self._call("GET", Service.STORAGE, f"b/{bucket}/o", query)
        return list(found.get("prefixes", ())), str(found.get("nextPageToken") or "")

    def begins_any(self, bucket: str, prefix: str) -> bool:
        """Whether the name of an object in a bucket begins so."""
        query = {"prefix": prefix, "maxResults": "1", "fields": "items/name"}
        return bool(self._call("GET", Service.STORAGE, f"b/{bucket}/o", query).get("items"))

    # -------------------------------------------------------------- projects and rights

    def enabled_apis(self, project: str) -> set[str]:
        """The APIs that a project has enabled, such as "compute.googleapis.com"."""
        query = {"filter": "state:ENABLED", "pageSize": _MOST_SERVICES}
        path = f"projects/{project}/services"
        pages = self.listed(path, key="services", service=Service.SERVICE_USAGE, **query)
        return {service["config"]["name"] for service in pages}

    def project_number(self, project: str) -> str:
        """The number of a project, by which Google's own accounts of it are called."""
        return str(self.project(project)["projectNumber"])

    def project(self, project: str) -> Document:
        """A project."""
        return self._once(("project", project), lambda: self._api.project(project))

    def held_permissions(self, project: str, permissions: Sequence[str]) -> Collection[str]:
        """The permissions, out of at most 100, that the caller has on a project."""
        return self.held(Service.RESOURCE_MANAGER, f"projects/{project}:", permissions)

    def held(self, service: Service, start: str, permissions: Sequence[str]) -> Collection[str]:
        """Those that the caller has on anything; `start`: its path, and the sign behind that."""
        body = {"permissions": list(permissions)}
        answer = self._call("POST", service, f"{start}testIamPermissions", {}, body)
        return frozenset(answer.get("permissions", ()))

    def policy_of_project(self, project: str) -> Document:
        """Who may do what in a project."""
        path = f"projects/{project}:getIamPolicy"
        return self._call("POST", Service.RESOURCE_MANAGER, path, {}, {})

    # -------------------------------------------------------------- requests

    def _call(
        self,
        method: str,
        service: Service,
        path: str,
        query: Mapping[str, str],
        body: Document | None = None,
    ) -> Document:
        return self._once(
            (method, service, path, *query.items(), str(body)),
            lambda: self._api.call(method, service, path, query, body),
        )

    def listed(
        self,
        path: str,
        *,
        key: str = "items",
        service: Service = Service.COMPUTE,
        after: str = "",
        **query: str,
    ) -> list[Document]:
        """The entries of all pages of a list; for `after`, see `machines_with`."""
        return self._once(
            ("pages", path, after, *query.items()),
            lambda: list(self._api.pages("GET", path, key, query, service=service)),
        )

    def _once(self, question: Hashable, ask: Callable[[], T]) -> T:
        with self._lock:
            answer = self._asked.get(question)
            is_first = answer is None
            if answer is None:
                answer = self._asked[question] = concurrent.futures.Future()
        if is_first:
            try:
                answer.set_result(ask())
            except BaseException as error:  # noqa: BLE001 - it is raised below, for all who ask
                answer.set_exception(error)
        found: T = answer.result()
        return found


SpecT = TypeVar("SpecT", bound="ClusterSpec")
SpecT_co = TypeVar("SpecT_co", bound="ClusterSpec", covariant=True)

_FORBIDDEN: Final = 403
_NOTHING: Final[Mapping[str, Any]] = {}


class Effect(enum.Enum):
    """What comes of a problem that a check has found."""

    STOPS = enum.auto()
    FOREIGN = enum.auto()  # it stops the run, too: a resource with one of our names is another's
    NOTE = enum.auto()
    NOTE_IF_MADE = enum.auto()  # of what will be made, and of no interest if nothing is


@dataclass(frozen=True)
class Finding:
    """What a check has found: a problem, or something that is in order."""

    problem: Problem | None = None
    effect: Effect = Effect.STOPS
    # field of the specification that the settings left open -> the value that Google's answer gives
    settled: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    permissions: int = 0  # so many permissions are held
    apis: int = 0  # so many APIs are enabled
    quota: Quota | None = None  # one that is large enough

    @property
    def stops(self) -> bool:
        """Whether nothing may be made."""
        return self.problem is not None and self.effect in {Effect.STOPS, Effect.FOREIGN}


class _Words(TypedDict, total=False):
    setting: str
    what: Required[str]
    why: str
    fix: str
    alternatives: Alternatives


def refuse(code: Code, **words: Unpack[_Words]) -> Finding:
    """A problem that stops the run."""
    return Finding(Problem(code=code, **words))


def note(code: Code, effect: Effect = Effect.NOTE, **words: Unpack[_Words]) -> Finding:
    """Something worth knowing that does not stop it."""
    return Finding(Problem(code=code, **words), effect)


def seen(ask: Callable[[], T]) -> tuple[T | None, GoogleApiError | None]:
    """An answer; None with the refusal where these credentials may not have it."""
    try:
        return ask(), None
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None, error


@dataclass(frozen=True, kw_only=True)
class CheckContext(Generic[SpecT_co]):
    """What every check gets."""

    spec: SpecT_co  # what the settings ask for
    of_kind: OfKind  # what the kind of cluster adds
    answers: Answers  # Google's answers
    owner: Owner  # whose marker makes a resource this deployment's
    in_state: Collection[str]  # paths of what the state has: it is ours, whatever marker it carries
    record: Record | None  # what is deployed already; None if nothing is
    makes_bucket: bool  # whether the bucket for the state has yet to be created

    @property
    def project(self) -> str:
        """The project's ID."""
        return self.spec.project_id

    @property
    def region(self) -> str:
        """The region of what is checked."""
        return self.spec.region

    def is_ours(self, look: Look, path: str, found: Mapping[str, Any]) -> bool:
        """Whether something that exists is this deployment's."""
        return path in self.in_state or look.is_of(found, self.owner)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check; `checks.tsv` says what it calls, and what its failure means."""

    name: OnlineCheck
    find: Callable[[CheckContext[Any]], Iterator[Finding]]
    # whether a specification has anything to check
    applies: Callable[[Any], bool] = lambda _: True
    of_zone: bool = False  # whether its answer depends on the zone of the machines

    @property
    def calls(self) -> tuple[str, ...]:
        """The methods of Google's APIs that it calls."""
        return tuple(rows()[self.name][0].split())


@functools.cache
def rows() -> Mapping[str, tuple[str, str]]:
    """Check -> what it calls, and what its failure means."""
    lines = Path(__file__).with_name("checks.tsv").read_text("utf-8").splitlines()[1:]
    return {name: (calls, says) for name, calls, says in (line.split("\t") for line in lines)}


@dataclass(frozen=True, kw_only=True)
class OfKind:
    """What a kind of cluster adds to the checks that every kind has."""

    checks: tuple[Check, ...]
    apis: tuple[str, ...]  # the APIs that it needs, such as "container"
    made: tuple[Resource, ...]  # the types of the resources that Terraform creates for it
    main: tuple[Resource, DerivedName]  # its main resource, the cluster or group, with its name
    # IP ranges that it needs in its network, besides that of the first subnetwork
    ranges: tuple[IPv4Network, ...] = ()
    policies: tuple[str, ...] = ()  # the names of the resource policies that it makes
    # the firewall rules that it makes in its first network, whosever that is
    rules: tuple[DerivedName, ...] = ()
    # collection -> the verbs of the permissions on the project that Create needs for more than
    # creating and deleting resources
    used: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # collection -> the verbs of the permissions that Bake needs beside those of Create
    bakes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # collection -> the verbs of the permissions with which Destroy finds and removes what the
    # cluster made itself
    swept: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    # what these credentials need besides permissions on the project, a line each
    beside_the_role: tuple[str, ...] = ()
    secure_boot: bool = False  # whether VMs load signed drivers alone
    # the project of the image that VMs boot from; None where Google chooses it
    image_project: str | None = None
    # whether a service account is made for pods, whatever that of the machines is
    pods_account: bool = False
    # whether machines get roles on parts of the deployment's folder
    grants_in_state_folder: bool = False
