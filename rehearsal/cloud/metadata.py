"""The metadata server of a Compute Engine VM, and Google's OAuth token endpoint.

Whoever asks runs, as far as the metadata server knows, on a VM of a project of the rehearsal's own
as Compute Engine's default service account. Tokens are strings that every simulated API takes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from rehearsal.cloud.projects import Project, number
from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

HOST = Project("rehearsal-host", number("rehearsal-host"))
"""The project whose VM the caller seems to run on."""

_LIFETIME = 3600  # seconds
_ZONE = f"projects/{HOST.number}/zones/us-central1-a"
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
_FLAVOR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
_ACCOUNT: dict[str, Any] = {
    "aliases": ["default"],
    "email": HOST.compute_account,
    "scopes": list(_SCOPES),
}
_TREE: dict[str, Any] = {
    "instance": {
        "attributes": {},
        "hostname": f"rehearsal.us-central1-a.c.{HOST.id}.internal",
        "id": 1,
        "name": "rehearsal",
        "service-accounts": {"default": _ACCOUNT, HOST.compute_account: _ACCOUNT},
        "zone": _ZONE,
    },
    "project": {
        "attributes": {},
        "numeric-project-id": int(HOST.number),
        "project-id": HOST.id,
    },
    "universe": {"universe-domain": "googleapis.com"},
}
_ROOT = "computeMetadata/v1"


def service(request: Request, store: Store) -> Reply:
    """Answer for the metadata server ("", "computeMetadata/...") and for "token"."""
    path = unquote(request.path).strip("/")
    if path == "token":
        return _grant(request, store)
    if path == "":  # what clients ping; it alone needs no header
        return _text("computeMetadata/\n")
    if request.headers.get("metadata-flavor") != "Google":
        return _text("Missing Metadata-Flavor:Google header.", status=403)
    if path != _ROOT and not path.startswith(_ROOT + "/"):
        return _text("Not Found", status=404)
    steps = [step for step in path.removeprefix(_ROOT).split("/") if step]
    if len(steps) == 4 and steps[:2] == ["instance", "service-accounts"] and steps[3] == "token":  # noqa: PLR2004 - instance, service-accounts, which, token
        return _known_account(steps[2], store)
    return _lookup(request, steps)


def _known_account(name: str, store: Store) -> Reply:
    if name not in _TREE["instance"]["service-accounts"]:
        return _text("Not Found", status=404)
    return _json(_token(store))


def _lookup(request: Request, steps: list[str]) -> Reply:
    found: Any = _TREE
    for step in steps:
        if not isinstance(found, dict) or step not in found:
            return _text("Not Found", status=404)
        found = found[step]
    if request.query.get("recursive", "").lower() == "true":
        return _json(_camel(found))
    if isinstance(found, dict):
        listed = (f"{key}/" if isinstance(value, dict) else key for key, value in found.items())
        return _text("".join(f"{name}\n" for name in listed))
    if isinstance(found, list):
        return _text("".join(f"{item}\n" for item in found))
    return _text(str(found))


def _camel(value: Any) -> Any:
    """As the server writes whole trees: names in camel case, except those of accounts."""
    if not isinstance(value, dict):
        return value
    return {_camel_name(key): _camel(inner) for key, inner in value.items()}


def _camel_name(name: str) -> str:
    if "@" in name:
        return name
    first, *rest = name.split("-")
    return first + "".join(part.capitalize() for part in rest)


def _token(store: Store) -> dict[str, Any]:
    return {
        "access_token": f"ya29.rehearsal-{store.count('tokens')}",
        "expires_in": _LIFETIME,
        "token_type": "Bearer",
    }


def _grant(request: Request, store: Store) -> Reply:
    """OAuth 2.0: whatever is presented (refresh token, signed claim, foreign token) is taken."""
    if request.method != "POST":
        raise GoogleError(405, "Method Not Allowed", status=None)
    token_exchange = {"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}
    return Reply(body=_token(store) | token_exchange | {"scope": " ".join(_SCOPES)})


def _json(document: Any) -> Reply:
    return Reply(
        body=json.dumps(document).encode(),
        headers={"Content-Type": "application/json", **_FLAVOR},
    )


def _text(text: str, *, status: int = 200) -> Reply:
    return Reply(
        status=status,
        body=text.encode(),
        headers={"Content-Type": "application/text", **_FLAVOR},
    )
