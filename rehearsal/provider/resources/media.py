"""Uploads to Cloud Storage, and what kind of content bytes are."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.provider.api import Api

_CHUNK = 16 * 1024 * 1024
"""Bytes that go in one request; anything as large as that goes in several."""

_SNIFFED = 512
"""How much of the content its kind is judged by."""

# How content begins that is no plain text; the rules of WHATWG's MIME sniffing, as Go has them.
_BEGINNINGS: Mapping[bytes, str] = {
    b"%PDF-": "application/pdf",
    b"%!PS-Adobe-": "application/postscript",
    b"\x1f\x8b\x08": "application/x-gzip",
    b"PK\x03\x04": "application/zip",
    b"\x89PNG\x0d\x0a\x1a\x0a": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
    b"\x00asm": "application/wasm",
}
_MARKUP: Mapping[bytes, str] = {
    b"<?XML": "text/xml; charset=utf-8",
    b"<!DOCTYPE HTML": "text/html; charset=utf-8",
    b"<HTML": "text/html; charset=utf-8",
    b"<HEAD": "text/html; charset=utf-8",
    b"<BODY": "text/html; charset=utf-8",
    b"<!--": "text/html; charset=utf-8",
}
_BINARY = frozenset({*range(0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)})


def kind(content: bytes) -> str:
    """The content type that bytes are given when nobody names one."""
    head = content[:_SNIFFED]
    for beginning, name in _BEGINNINGS.items():
        if head.startswith(beginning):
            return name
    text = head.lstrip(b"\t\n\x0c\r ").upper()
    for beginning, name in _MARKUP.items():
        if text.startswith(beginning):
            return name
    if _BINARY.isdisjoint(head):
        return "text/plain; charset=utf-8"
    return "application/octet-stream"


def upload(api: Api, bucket: str, name: str, about: dict[str, Any], content: bytes) -> None:
    """Insert an object: small ones with their description in one request, others chunk by chunk.

    Raises:
        GoogleApiError: Google refused.
    """
    url = f"{api.upload_base()}b/{bucket}/o"
    query = {"alt": "json", "prettyPrint": "false", "name": name}
    of = about.get("contentType") or kind(content)
    if len(content) >= _CHUNK:
        _resumable(api, url, query, about, content, of)
        return
    boundary = uuid.uuid4().hex
    api.send(
        "POST",
        url,
        query={**query, "uploadType": "multipart"},
        body=_multipart(boundary, about, content, of),
        headers={"Content-Type": f"multipart/related; boundary={boundary}"},
    )


def _multipart(boundary: str, about: dict[str, Any], content: bytes, of: str) -> bytes:
    head = (
        f"--{boundary}\r\nContent-Type: application/json\r\n\r\n{json.dumps(about)}\r\n"
        f"--{boundary}\r\nContent-Type: {of}\r\n\r\n"
    )
    return head.encode() + content + f"\r\n--{boundary}--\r\n".encode()


def _resumable(  # noqa: PLR0913, PLR0917 - the parts of an upload
    api: Api, url: str, query: dict[str, str], about: dict[str, Any], content: bytes, of: str
) -> None:
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
