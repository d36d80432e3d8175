"""What a check is, what it gets, and what it can find."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from ipaddress import IPv4Network

    from provision.catalogue.names import DerivedName
    from provision.documents.plan import Quota
    from provision.errors import Problem
    from provision.google.owner import Owner
    from provision.google.resources import Look, Resource
    from provision.preflight.answers import Answers
    from provision.settings.choices import OnlineCheck
    from provision.spec.cluster import ClusterSpec
    from provision.state.record import Record

SpecT = TypeVar("SpecT", bound="ClusterSpec")
SpecT_co = TypeVar("SpecT_co", bound="ClusterSpec", covariant=True)


@dataclass(frozen=True, kw_only=True)
class CheckContext(Generic[SpecT_co]):
    """What every check gets.

    Attributes:
        spec: What the settings ask for.
        of_kind: What the kind of cluster adds.
        answers: Google's answers.
        owners: Whose marker makes a resource this deployment's.
        in_state: Paths of what the state has: it is ours, whatever marker it carries.
        record: What is deployed already; None if nothing is.
        makes_bucket: Whether the bucket for the state has yet to be created.
    """

    spec: SpecT_co
    of_kind: OfKind
    answers: Answers
    owners: Collection[Owner]
    in_state: Collection[str]
    record: Record | None
    makes_bucket: bool

    @property
    def project(self) -> str:
        """The project's ID."""
        return self.spec.project_id

    def is_ours(self, look: Look, path: str, found: Mapping[str, Any]) -> bool:
        """Whether something that exists is this deployment's.

        Args:
            look: How its type is found.
            path: Where Google has it.
            found: What Google says of it.
        """
        return path in self.in_state or any(look.is_of(found, one) for one in self.owners)


@dataclass(frozen=True)
class CheckNote:
    """Something worth knowing that does not stop the run.

    Attributes:
        problem: What is worth knowing.
        if_made: Whether it is about what will be made, and so of no interest if nothing is.
    """

    problem: Problem
    if_made: bool = False


@dataclass(frozen=True)
class Foreign:
    """A problem: a resource with one of our names belongs to somebody else."""

    problem: Problem


@dataclass(frozen=True)
class Settled:
    """Values that the settings left open and Google's answer resolved.

    Attributes:
        values: Field of the specification -> its value.
    """

    values: Mapping[str, Any]


@dataclass(frozen=True)
class Passed:
    """Something that was looked at and is in order.

    Attributes:
        permissions: So many permissions are held.
        apis: So many APIs are enabled.
        quota: A quota that was compared.
    """

    permissions: int = 0
    apis: int = 0
    quota: Quota | None = None


Finding: TypeAlias = "Problem | Foreign | CheckNote | Settled | Passed"
"""What a check can find; a problem or a foreign resource stops the run."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        name: Its name in SKIP_CHECKS.
        calls: The methods of Google's APIs that it calls.
        says: What a failure means, for the reference page.
        find: Runs the check, and yields what it finds.
        applies: Whether there is anything to check.
        of_zone: Whether its answer depends on the zone of the machines.
    """

    name: OnlineCheck
    calls: tuple[str, ...]
    says: str
    find: Callable[[CheckContext[Any]], Iterator[Finding]]
    applies: Callable[[CheckContext[Any]], bool] = lambda _: True
    of_zone: bool = False


@dataclass(frozen=True, kw_only=True)
class OfKind:
    """What a kind of cluster adds to the checks that every kind has.

    Attributes:
        checks: Its own checks.
        apis: The APIs that it needs, such as "container".
        made: The types of the resources that Terraform creates for it.
        main: Its main resource, the cluster or group, with its name.
        ranges: IP ranges that it needs in its network, besides that of the first subnetwork.
        policies: The names of the resource policies that it makes.
        rules: The firewall rules that it makes in its first network, whosever that is.
        used: Collection -> the verbs of the permissions on the project that Create needs for more
            than creating and deleting resources.
        bakes: Collection -> the verbs of the permissions that Bake needs beside those of Create.
        swept: Collection -> the verbs of the permissions with which Destroy finds and removes what
            the cluster made itself.
        beside_the_role: What these credentials need besides permissions on the project, a line
            each.
        secure_boot: Whether VMs load signed drivers alone.
        image_project: The project of the image that VMs boot from; None where Google chooses it.
        pods_account: Whether a service account is made for pods, whatever that of the machines is.
        grants_in_state_folder: Whether machines get roles on parts of the deployment's folder.
    """

    checks: tuple[Check, ...]
    apis: tuple[str, ...]
    made: tuple[Resource, ...]
    main: tuple[Resource, DerivedName]
    ranges: tuple[IPv4Network, ...] = ()
    policies: tuple[str, ...] = ()
    rules: tuple[DerivedName, ...] = ()
    used: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    bakes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    swept: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    beside_the_role: tuple[str, ...] = ()
    secure_boot: bool = False
    image_project: str | None = None
    pods_account: bool = False
    grants_in_state_folder: bool = False
