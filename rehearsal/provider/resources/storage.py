"""google_storage_bucket_object: a change of its content writes a new one over it."""

import base64
import hashlib
import json
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN, State
from rehearsal.provider.resources import links
from rehearsal.provider.resources.rest import Rest, present, scope
from rehearsal.provider.resources.shapes import SKIP, VIRTUAL, Rule, Scope, Send, Shape, is_zero

_CHUNK = 16 * 1024 * 1024  # bytes that go in one request; anything as large as that goes in several
_SNIFFED = 512  # how much of the content its kind is judged by
# What no plain text has: the rules of WHATWG's MIME sniffing, as Go has them.
_BINARY = frozenset({*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})

# Attributes of which a change sends the content again.
_CONTENT = ("content", "detect_md5hash", "source_md5hash")
_DERIVED = ("md5hash", "md5hexhash", "crc32c", "generation", "media_link")
_UNKNOWN_TO_GOOGLE = (
    *("content", "source", "source_md5hash", "customer_encryption", "force_empty_content_type"),
)


def _unchanged(prior: Any, wanted: Any, state: State) -> bool:
    """Whether the file on disk is what was uploaded; the attribute's own value says nothing."""
    del wanted
    source = state.get("source")
    if not source:
        return True
    try:
        digest = hashlib.md5(Path(source).read_bytes(), usedforsecurity=False).digest()
    except OSError:
        return False
    return bool(base64.b64encode(digest).decode() == prior)


class _Object(Rest):
    def path(self, where: Scope) -> str:
        """Its name is one part, whatever slashes it has."""
        name = quote(where.state["name"], safe="$&+=:@~")
        return f"b/{links.name(where.state['bucket'])}/o/{name}"

    def id(self, where: Scope) -> str:
        return f"{links.name(where.state['bucket'])}-{where.state['name']}"

    def title(self, where: Scope) -> str:
        return f'Storage Bucket Object "{where.state["name"]}"'

    def no_delete(self, where: Scope) -> str:
        return f"Error deleting contents of object {where.state['name']}"

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """New content means new hashes."""
        plan = super().customize(api, prior, plan)
        if prior is not None and scope(api, plan, prior).changes(*_CONTENT):
            plan |= dict.fromkeys(_DERIVED, UNKNOWN)
        return plan

    def create(self, api: Api, plan: State) -> State:
        """Upload the content."""
        bucket, name = links.name(plan["bucket"]), plan["name"]
        about = self.shape.expand({**plan, "bucket": bucket}, scope(api, plan))
        try:
            upload(api, bucket, name, about, _content(plan))
        except GoogleApiError as error:
            raise ProviderError(f"Error uploading object {name}: {error}") from error
        return present(self.read(api, plan))

    def state(self, where: Scope, answer: Any) -> State:
        return {**super().state(where, answer), "name": where.state["name"]}

    def update(self, api: Api, prior: State, plan: State) -> State:
        if scope(api, plan, prior).changes(*_CONTENT):
            return self.create(api, plan)
        return present(self.read(api, plan))

    def import_state(self, api: Api, import_id: str) -> State:
        """Objects cannot be imported; an upload writes over what is there."""
        del api, import_id
        raise ValueError(f"resource {self.shape.of} doesn't support import")


def _content(plan: State) -> bytes:
    if is_zero(plan.get("source")):
        content = plan.get("content")
        if content is None or content is UNKNOWN:
            raise ProviderError('Error, either "content" or "source" must be specified')
        return str(content).encode()
    try:
        return Path(plan["source"]).read_bytes()
    except OSError as error:
        raise ProviderError(f"open {plan['source']}: {error.strerror}") from error


def upload(api: Api, bucket: str, name: str, about: dict[str, Any], content: bytes) -> None:
    """Insert an object: small ones with their description in one request, others chunk by chunk."""
    url = f"{api.upload_base()}b/{bucket}/o"
    query = {"alt": "json", "prettyPrint": "false", "name": name}
    text = _BINARY.isdisjoint(content[:_SNIFFED])
    sniffed = "text/plain; charset=utf-8" if text else "application/octet-stream"
    of = about.get("contentType") or sniffed
    if len(content) < _CHUNK:
        boundary = uuid.uuid4().hex
        head = (
            f"--{boundary}\r\nContent-Type: application/json\r\n\r\n{json.dumps(about)}\r\n"
            f"--{boundary}\r\nContent-Type: {of}\r\n\r\n"
        )
        api.send(
            "POST",
            url,
            query={**query, "uploadType": "multipart"},
            body=head.encode() + content + f"\r\n--{boundary}--\r\n".encode(),
            headers={"Content-Type": f"multipart/related; boundary={boundary}"},
        )
        return
    opened = api.send(
        "POST",
        url,
        query={**query, "uploadType": "resumable"},
        body=about,
        headers={"X-Upload-Content-Type": of},
    )
    place, _, parameters = opened.headers["location"].partition("?")
    session = dict(pair.split("=", 1) for pair in parameters.split("&"))
    for first in range(0, len(content), _CHUNK):
        part = content[first : first + _CHUNK]
        last = first + len(part) - 1
        total = len(content) if last + 1 == len(content) else "*"
        api.send(
            "POST",
            place,
            query=session,
            body=part,
            headers={
                "Content-Type": of,
                "Content-Range": f"bytes {first}-{last}/{total}",
                # The answer to a part is then 200, with the status in a header of its own.
                "X-GUploader-No-308": "yes",
            },
        )


RESOURCE = _Object(
    service="storage",
    by_client=True,
    collection="b/{bucket}/o",
    shape=Shape(
        "google_storage_bucket_object",
        {
            **dict.fromkeys(_UNKNOWN_TO_GOOGLE, VIRTUAL),
            "contexts": SKIP,
            "detect_md5hash": Rule("md5Hash", send=Send.NEVER),
            "md5hash": Rule("md5Hash"),
            "md5hexhash": Rule("md5Hash", flatten=lambda md5, _: base64.b64decode(md5 or "").hex()),
            "name": SKIP,
            "output_name": Rule("name"),
        },
    ),
    suppress={"detect_md5hash": _unchanged, "bucket": links.same_name},
)
