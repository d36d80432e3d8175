"""What the plugin's server asks of each resource type and data source.

Values are plain Python in the shape of the provider's schema: a dict with every attribute and
block of the type, None for null, nested blocks as lists of dicts (sets too), numbers as int or
float, and `UNKNOWN` where a plan cannot know yet. What the functions return is completed by the
server to the full shape, so a missing key is null.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:  # a start that does not need it does not load it
    from rehearsal.provider.api import Api


State = dict[str, Any]


class Unknown(enum.Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN  # a value that only the apply will tell


def known(value: Any) -> Any:
    """What a plan knows already, at any depth: no state may hold more."""
    if isinstance(value, dict):
        return {name: known(each) for name, each in value.items() if each is not UNKNOWN}
    if isinstance(value, list):
        return [known(each) for each in value if each is not UNKNOWN]
    return value


class PartialError(Exception):
    """A create that failed after the object came to be: kept in the state, tainted."""

    def __init__(self, state: State, cause: Exception) -> None:
        super().__init__(str(cause))
        self.state = state
        self.cause = cause


class Resource(Protocol):
    """One resource type, as requests to Google and back."""

    @property
    def suppress(self) -> Mapping[str, Callable[[Any, Any, State], bool]]:
        """Where a difference is none, by attribute path ("disk.source_image", without indices).

        Each function gets the prior value, the configured value and the prior state.
        """

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Last word on a plan (what is computed from what, what becomes known early).

        `api`: for the provider's own settings (project, region, labels); it sends nothing but what
        the real provider looks up in a plan (what a short image name means). `prior`: the state
        before, None for a create. `plan`: the plan made from schema and configuration; may hold
        UNKNOWN. Returns the plan, changed where this type wants it. Raises ValueError to refuse it.
        """

    def create(self, api: Api, plan: State) -> State:
        """Make the object; every UNKNOWN of the plan is decided in what is returned."""

    def read(self, api: Api, state: State) -> State | None:
        """The object as it is now, or None when it is gone."""

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Change the object in place."""

    def delete(self, api: Api, state: State) -> None:
        """Remove the object; one that is gone already is success."""

    def import_state(self, api: Api, import_id: str) -> State:
        """The least state that `read` needs, from an import id; ValueError for a wrong form."""


class DataSource(Protocol):
    """One data source."""

    def read(self, api: Api, config: State) -> State:
        """What Google answers for this configuration."""
