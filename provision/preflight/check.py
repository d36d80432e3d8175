"""What a check is, what it gets, and what it can find."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Required, TypedDict, TypeVar, Unpack

from provision.errors import Problem
from provision.google.api import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from ipaddress import IPv4Network

    from provision.catalogue.names import DerivedName
    from provision.codes import Code
    from provision.documents.plan import Quota
    from provision.errors import Alternatives
    from provision.google.owner import Owner
    from provision.google.resources import Look, Resource
    from provision.preflight.answers import Answers
    from provision.settings.choices import OnlineCheck
    from provision.spec.cluster import ClusterSpec
    from provision.state.record import Record

T = TypeVar("T")
SpecT = TypeVar("SpecT", bound="ClusterSpec")
SpecT_co = TypeVar("SpecT_co", bound="ClusterSpec", covariant=True)

_FORBIDDEN: Final = 403
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


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
    """The fields of a problem."""

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


def last(link: str) -> str:
    """The last part of a link: the name."""
    return link.rpartition("/")[2]


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

    def is_ours(self, look: Look, path: str, found: Mapping[str, Any]) -> bool:
        """Whether something that exists is this deployment's."""
        return path in self.in_state or look.is_of(found, self.owner)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check."""

    name: OnlineCheck
    calls: tuple[str, ...]  # the methods of Google's APIs that it calls
    says: str  # what a failure means, for the reference page
    find: Callable[[CheckContext[Any]], Iterator[Finding]]
    # whether a specification has anything to check
    applies: Callable[[Any], bool] = lambda _: True
    of_zone: bool = False  # whether its answer depends on the zone of the machines


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
