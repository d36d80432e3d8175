"""The record of what is deployed: `deployment.json`, next to the state.

Whoever may write to the bucket may have changed it, and its fields go into Terraform's
configuration, into the paths of requests and into commands that people copy. So each is held to
the rule of the setting that it came from.
"""

# No deferred annotations: pydantic reads them.

import json
import re
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, TypeAdapter

from provision import __version__
from provision.documents import json_object
from provision.settings import reading
from provision.settings.values import (
    GkeVersion,
    ImageName,
    NamePrefix,
    ProjectId,
    Region,
    ReservationName,
    Zone,
)

_MADE_BY: Final = "aiinfra-cluster"
_FORMAT: Final = 1

_Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,63}$")]
_Version = Annotated[str, Field(pattern=r"^[A-Za-z0-9.+~-]{0,64}$")]
_Path = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:/-]{1,300}$")]
_Held = Annotated[str, Field(pattern=r"^[A-Za-z0-9._@:/-]{1,300}$")]
_Number = Annotated[int, Field(strict=True, ge=0, le=10**9)]


def _release(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,9}", version)]


class ForeignRecordError(Exception):
    """Another program, or a later form of this one, wrote the record."""


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """What Google told of the reservation that machines come from."""

    reservation: ReservationName
    bound: bool = False  # whether the machines are bound to it
    policies: tuple[_Path, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Record:
    """The content of `deployment.json`; secrets are masked before they get here."""

    kind: _Word
    cluster_id: _Word
    project_id: ProjectId
    name_prefix: NamePrefix
    region: Region
    zone: Zone
    tool_version: _Version
    terraform_version: _Version
    image: dict[_Word, ProjectId | ImageName | None] = field(default_factory=dict)
    # The highest number that a resize request has had. Google forgets requests that have ended, and
    # a new one with a used name would be taken for the old one.
    last_request: _Number = 0
    # the full version that the cluster was created with; None for the channel's default version,
    # and for other kinds of cluster
    gke_version: GkeVersion | None = None
    # how often Terraform had changed its state by then; 0 if not known
    serial: _Number = 0
    # name of the group or node pool -> what was told of its reservation
    reservations: dict[_Word, Reserved] = field(default_factory=dict)
    # what was taken out of Terraform's state because machines of older settings hold it: paths,
    # email addresses of accounts, and "b/BUCKET" where they have a role
    held: tuple[_Held, ...] = ()
    # the other projects in which firewall rules have been made, those of older settings too: a run
    # that died may have left some that no state knows
    hosts: tuple[ProjectId, ...] = ()
    # whether Create may still go on to another zone of ZONE: all machines have never come together
    # yet
    searching: Annotated[bool, Field(strict=True)] = False
    # whether a Destroy has begun since the last Create; its end removes the record
    removing: Annotated[bool, Field(strict=True)] = False
    # what the last Create said that it costs at most, in USD per hour; None if not known
    hourly: Annotated[str, Field(pattern=r"^[0-9]{1,12}(\.[0-9]{1,12})?$")] | None = None
    # the effective settings of the last Create; empty where the record was lost
    settings: Annotated[dict[str, Any], AfterValidator(reading.sound)] = field(default_factory=dict)
    # fields that a later version of this program wrote and this one does not know; they are written
    # back as they were read
    later: dict[str, Any] = field(default_factory=dict)

    @property
    def newer_tool(self) -> str | None:
        """The version of this program that wrote it, where that is newer than this one."""
        own, other = map(_release, (__version__, self.tool_version))
        return self.tool_version if other > own else None

    def document(self) -> str:
        """The text of `deployment.json`."""
        own = asdict(self)
        later = own.pop("later")
        whole = {"made_by": _MADE_BY, "format": _FORMAT, **later, **own}
        return json.dumps(whole, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str | bytes) -> Self | None:
        """Read the text that `document` makes.

        Returns None when it is damaged: cut short, or with a field that breaks its rule. A setting
        that breaks its own is left out.
        """
        try:
            document = json_object.read(text)
        except ValueError:
            return None
        if "made_by" not in document:
            raise ForeignRecordError
        if document.pop("made_by") != _MADE_BY or document.pop("format", None) != _FORMAT:
            raise ForeignRecordError
        known = {about.name for about in fields(cls)} - {"later"}
        later = {name: value for name, value in document.items() if name not in known}
        own = {name: value for name, value in document.items() if name in known}
        try:
            return TypeAdapter(cls).validate_python({**own, "later": later})
        except ValueError:
            return None
