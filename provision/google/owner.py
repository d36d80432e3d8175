"""Whose something in the cloud is: the marker that a deployment leaves on all that it makes."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

MARKER: Final = "aiinfra-cluster"
"""The label whose value is the id of the deployment."""

_LONGEST: Final = 256
"""Bytes of a service account's description, and of an IAM condition's: Google's least limit."""
_TEXT: Final = re.compile(rf"{MARKER}=(?P<id>[\w-]+)(?: (?P<state>gs://\S+))?")


@dataclass(frozen=True)
class Owner:
    """A deployment, as its marker names it."""

    id: str  # the value of the label
    # URL of the folder that has its state, "gs://BUCKET/FOLDER"; "" where it is not known
    state: str = ""

    @classmethod
    def of(cls, project_id: str, name_prefix: str, state: str) -> Self:
        """The deployment of a project, a prefix and a state: the same at each of its runs.

        The state belongs to it, as two states with one prefix would each take what the other has
        made for their own.
        """
        told = f"{project_id}/{name_prefix} {state}"
        return cls(hashlib.sha256(told.encode()).hexdigest()[:12], state)

    @property
    def text(self) -> str:
        """All of a description, of a type that has one; it names the state if there is room."""
        marker = f"{MARKER}={self.id}"
        whole = f"{marker} {self.state}" if self.state else marker
        return whole if len(whole.encode()) <= _LONGEST else marker

    @property
    def words(self) -> str:
        """Who it is, for people."""
        if self.state:
            return f"the deployment with its state in {self.state}"
        return f"the deployment with the marker {MARKER}={self.id}"


def read(document: Mapping[str, Any]) -> Owner | None:
    """Whose something is; None where it carries no marker."""
    found = _TEXT.fullmatch(str(document.get("description") or ""))
    if found is not None:
        return Owner(found["id"], found["state"] or "")
    for name in ("labels", "resourceLabels", "resource_labels"):
        labels = document.get(name)
        value = labels.get(MARKER) if isinstance(labels, dict) else None
        if value:
            return Owner(str(value))
    return None
