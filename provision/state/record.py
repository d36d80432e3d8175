"""The record of what is deployed: `deployment.json`, next to the state."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

_MADE_BY: Final = "aiinfra-cluster"


@dataclass(frozen=True, kw_only=True)
class Record:
    """The content of `deployment.json`; secrets are masked before they get here.

    Attributes:
        last_request: The highest number that a resize request has had. Google forgets requests
            that have ended, and a new one with a used name would be taken for the old one.
        gke_version: The full version that the cluster was created with; None for the channel's
            default version, and for other kinds of cluster.
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
    settings: dict[str, Any] = field(default_factory=dict)

    def document(self) -> str:
        """The record as JSON."""
        return json.dumps({"made_by": _MADE_BY, "format": 1, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read what `document` wrote; None if another tool wrote the text."""
        try:
            document = json.loads(text)
            if document.pop("made_by") != _MADE_BY or document.pop("format") != 1:
                return None
            return cls(**document)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
