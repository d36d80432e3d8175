"""The record of what is deployed: `deployment.json`, next to the state."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Self

_MADE_BY: Final = "aiinfra-cluster"
_FORMAT: Final = 1


class ForeignRecordError(Exception):
    """Another program, or a later form of this one, wrote the record."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """The content of `deployment.json`; secrets are masked before they get here.

    Attributes:
        last_request: The highest number that a resize request has had. Google forgets requests
            that have ended, and a new one with a used name would be taken for the old one.
        gke_version: The full version that the cluster was created with; None for the channel's
            default version, and for other kinds of cluster.
        reservations: What Google told of the reservations that machines come from: name of the
            group or node pool -> "reservation", "bound", "policies".
        later: Fields that a later version of this program wrote and this one does not know; they
            are written back as they were read.
    """

    kind: str
    cluster_id: str
    project_id: str
    name_prefix: str
    region: str
    zone: str
    tool_version: str
    terraform_version: str
    image: dict[str, str | None] = field(default_factory=dict)
    last_request: int = 0
    gke_version: str | None = None
    reservations: dict[str, dict[str, Any]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    later: dict[str, Any] = field(default_factory=dict)

    def document(self) -> str:
        """The text of `deployment.json`."""
        own = asdict(self)
        later = own.pop("later")
        whole = {"made_by": _MADE_BY, "format": _FORMAT, **later, **own}
        return json.dumps(whole, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read the text that `document` makes; None when it is damaged, such as cut short.

        Raises:
            ForeignRecordError: Another program wrote it.
        """
        try:
            document = json.loads(text)
        except ValueError:
            return None
        if not isinstance(document, dict) or "made_by" not in document:
            raise ForeignRecordError
        if document.pop("made_by") != _MADE_BY or document.pop("format", None) != _FORMAT:
            raise ForeignRecordError
        known = {about.name for about in fields(cls)} - {"later"}
        later = {name: value for name, value in document.items() if name not in known}
        own = {name: value for name, value in document.items() if name in known}
        try:
            record = cls(**own, later=later)
        except TypeError:
            return None  # a field that each record has is missing
        return record if record.is_whole else None

    @property
    def is_whole(self) -> bool:
        """Whether each field has a value of its type, which a damaged record may not have."""
        texts = (self.kind, self.cluster_id, self.project_id, self.name_prefix)
        places = (self.region, self.zone, self.tool_version, self.terraform_version)
        return (
            all(isinstance(one, str) for one in (*texts, *places))
            and isinstance(self.image, dict)
            and isinstance(self.settings, dict)
            and isinstance(self.reservations, dict)
            and type(self.last_request) is int
        )
