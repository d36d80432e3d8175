"""A change of a cluster, and the requests for those attributes that have one of their own."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.container_shapes import block
from rehearsal.provider.resources.shapes import camel, is_zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State
    from rehearsal.provider.resources.container_cluster_shape import ClusterShape
    from rehearsal.provider.resources.container_pool_updates import Request


@dataclass(frozen=True)
class Change:
    """An update of a cluster."""

    api: Api
    shape: ClusterShape
    path: str  # the cluster's path
    prior: State  # its attributes before
    plan: State  # the same, as they are wanted

    def of(self, attribute: str) -> bool:
        """Whether an attribute changes ("dns_config", "private_cluster_config.peering_name")."""
        wanted = _at(self.plan, attribute)
        return wanted is not UNKNOWN and wanted != _at(self.prior, attribute)

    def wanted(self, attribute: str) -> Any:
        """The value that an attribute is to have."""
        return _at(self.plan, attribute)

    def before(self, attribute: str) -> Any:
        """The value that it had."""
        return _at(self.prior, attribute)

    def value(self, attribute: str) -> Any:
        """The same in JSON; None for a block that is not there."""
        return self.shape.value(attribute, self.wanted(attribute))

    def put(self, field: str, value: Any) -> Request:
        """The request that changes one field; the Go client leaves a missing block out."""
        return "PUT", self.path, {"update": {} if value is None else {field: value}}


def _at(state: State, attribute: str) -> Any:
    *outer, name = attribute.split(".")
    for each in outer:
        state = block(state.get(each))
    return state.get(name)


class When(enum.Enum):
    """When a change is sent."""

    CHANGED = enum.auto()
    FILLED = enum.auto()
    """Only if the attribute has a value still."""


@dataclass(frozen=True)
class Field:
    """An attribute with a request of its own."""

    attribute: str  # the attribute, with dots into blocks
    field: str = ""  # the field of the update; "" for the attribute's name with "desired" before it
    wrap: tuple[str, ...] = ()  # the objects around the value, from the outside
    when: When = When.CHANGED
    without: Any = None  # what is sent for a block that is no more wanted

    def __call__(self, change: Change) -> Iterator[Request]:
        """The request, if the attribute changes."""
        if not change.of(self.attribute):
            return
        if self.when is When.FILLED and is_zero(change.wanted(self.attribute)):
            return
        value = change.value(self.attribute)
        value = self.without if value is None else value
        for name in reversed(self.wrap):
            value = {name: value}
        yield change.put(self.name, value)

    @property
    def name(self) -> str:
        """The field of the update."""
        bare = camel(self.attribute.rpartition(".")[2])
        return self.field or f"desired{bare[0].upper()}{bare[1:]}"


def numbers(version: str) -> tuple[int, ...]:
    """A version for comparison."""
    return tuple(map(int, re.findall(r"\d+", version)))
