"""What is deployed, as `deployment.json` beside the state says it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Self

_MADE_BY: Final = "aiinfra-cluster"


@dataclass(frozen=True, kw_only=True)
class Record:
    """What `deployment.json` says; secrets are masked before they come here.

    Attributes:
        last_request: The greatest number that a request for flex start VMs has had. Google forgets
            ended ones, and a name that was used before would be taken for the old one.
        gke_version: The full version that the cluster was to be made with; None for the channel's
            default, and for other kinds.
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
        """As it is kept."""
        return json.dumps({"made_by": _MADE_BY, "format": 1, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `document`'s text; None when something else made it."""
        try:
            document = json.loads(text)
            if document.pop("made_by") != _MADE_BY or document.pop("format") != 1:
                return None
            return cls(**document)
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
