"""What the checks look at, and what each of them can find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from provision.catalogue.names import DerivedName
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
    """What is to be made, and whom to ask about it.

    Attributes:
        spec: What is asked for.
        of_kind: What else the checks have to know of such a cluster.
        answers: Google's.
        owners: Whose marker makes something this deployment's.
        in_state: Paths of what the state has: it is ours, whatever marker it carries.
        record: What exists already; None when nothing does.
        makes_bucket: Whether the bucket for the state is still to be made.
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
        """The project's id."""
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
    """Something that is worth knowing and stops nothing."""

    problem: Problem


@dataclass(frozen=True)
class Foreign:
    """A problem: what is there is not this deployment's to touch."""

    problem: Problem


@dataclass(frozen=True)
class Settled:
    """What is asked for leaves this open, and Google's answer decides it.

    Attributes:
        values: Field of the specification -> its value.
    """

    values: Mapping[str, Any]


Finding: TypeAlias = "Problem | Foreign | CheckNote | Settled"
"""What a check finds: a problem stops the run, and so does something foreign."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check.

    Attributes:
        name: What SKIP_CHECKS calls it.
        calls: The methods of Google's APIs that it calls.
        says: What a failure says, after "The run ends, because".
        find: Looks, and gives what it finds.
        applies: Whether there is anything to look at.
    """

    name: OnlineCheck
    calls: tuple[str, ...]
    says: str
    find: Callable[[CheckContext[Any]], Iterator[Finding]]
    applies: Callable[[CheckContext[Any]], bool] = lambda _: True


@dataclass(frozen=True, kw_only=True)
class OfKind:
    """What a kind of cluster adds to the checks that every kind has.

    Attributes:
        checks: Its own.
        apis: The APIs that it needs, such as "container".
        made: The types of what Terraform makes of it.
        main: The one thing that carries its name.
        ranges: IP ranges in its network beside that of the first subnetwork.
    """

    checks: tuple[Check, ...]
    apis: tuple[str, ...]
    made: tuple[Resource, ...]
    main: tuple[Resource, DerivedName]
    ranges: tuple[str, ...] = ()
