"""The metadata server of a Compute Engine VM, and Google's OAuth token endpoint.

Whoever asks runs, as far as the metadata server knows, on a VM of a project of the rehearsal's own
as Compute Engine's default service account. Tokens are strings that every simulated API takes.
"""

import json
from typing import Any
from urllib.parse import unquote

from rehearsal.cloud.projects import Project, number
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

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
_ROOT = "computeMetadata/v1/"
_OWN = "instance/service-accounts/default"
# What Google's clients ask for, below `_ROOT`; of an account by either of its names.
_TEXTS = {
    "instance/zone": _ZONE,
    f"{_OWN}/email": HOST.compute_account,
    "project/numeric-project-id": HOST.number,
    "project/project-id": HOST.id,
    "universe/universe-domain": "googleapis.com",
}


def service(request: Request, store: Store) -> Reply:
    """Answer for the metadata server ("", "computeMetadata/...") and for "token"."""
    path = unquote(request.path).strip("/")
    if path == "token":
        return _grant(request, store)
    if path == "":  # what clients ping; it alone needs no header
        return _text("computeMetadata/\n")
    if request.headers.get("metadata-flavor") != "Google":
        return _text("Missing Metadata-Flavor:Google header.", status=403)
    wanted = path.removeprefix(_ROOT).replace(f"/{HOST.compute_account}", "/default")
    if wanted in _TEXTS:
        return _text(_TEXTS[wanted])
    if wanted.rstrip("/") == _OWN:
        return _json(_ACCOUNT)
    return _json(_token(store)) if wanted == f"{_OWN}/token" else _text("Not Found", status=404)


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
