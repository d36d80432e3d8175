"""Uploads to Cloud Storage: in one piece, with metadata, or in chunks that can be resumed."""

from __future__ import annotations

import json
import re
from email.message import Message
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from rehearsal.cloud.routes import Routes
from rehearsal.cloud.storage import buckets, objects, preconditions
from rehearsal.cloud.wire import GoogleError, Reply, Request

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store

_COLLECTION = "storage/uploads"
_GRAIN = 256 * 1024  # bytes of which every chunk but the last is a multiple
_RANGE = re.compile(r"bytes (?:\*|(?P<first>\d+)-(?P<last>\d+))/(?P<total>\*|\d+)")


def _insert(request: Request, store: Store, bucket: str) -> Reply:
    """Take an upload, or the beginning of one."""
    match request.query.get("uploadType"):
        case "media":
            return _simple(request, store, bucket)
        case "multipart":
            return _multipart(request, store, bucket)
        case "resumable" if "upload_id" not in request.query:
            return _begin(request, store, bucket)
        case "resumable":
            return _chunk(request, store, bucket)
        case kind:
            raise GoogleError(400, f"Unknown upload type: {kind}", reason="badRequest")


def _simple(request: Request, store: Store, bucket: str) -> Reply:
    metadata = {
        "name": request.query.get("name"),
        "contentType": request.headers.get("content-type"),
        "contentEncoding": request.query.get("contentEncoding"),
    }
    made = objects.create(request, store, bucket, metadata, request.body)
    return Reply(body=objects.shown(request, made))


def _multipart(request: Request, store: Store, bucket: str) -> Reply:
    """RFC 2387: the first part is the metadata, the second the content."""
    parts = _parts(request)
    if len(parts) != len(("metadata", "content")):
        raise GoogleError(400, "Malformed multipart body.", reason="badRequest")
    (_, head), (content_type, content) = parts
    metadata = _metadata(request, head, content_type)
    made = objects.create(request, store, bucket, metadata, content)
    return Reply(body=objects.shown(request, made))


def _begin(request: Request, store: Store, bucket: str) -> Reply:
    """Open a session; its address is in the Location header."""
    buckets.find(store, bucket, "storage.objects.create")
    content_type = request.headers.get("x-upload-content-type", "")
    metadata = _metadata(request, request.body, content_type)
    # Asked for now, so that a caller whose condition fails does not send everything first.
    preconditions.check(request.query, objects.live(store, bucket, metadata.get("name") or ""))
    upload_id = f"upload-{store.count(_COLLECTION):016x}"
    session = {"metadata": metadata, "query": dict(request.query), "chunks": [], "size": 0}
    store.put(_COLLECTION, upload_id, session)
    query = urlencode({**request.query, "uploadType": "resumable", "upload_id": upload_id})
    location = f"{request.base_url}/upload/storage/v1/b/{bucket}/o?{query}"
    return Reply(headers={"Location": location, "X-GUploader-UploadID": upload_id}, body=b"")


def _chunk(request: Request, store: Store, bucket: str) -> Reply:
    """Take a chunk; the one that completes the content makes the object."""
    upload_id = request.query["upload_id"]
    session = store.get(_COLLECTION, upload_id)
    if session is None:
        raise GoogleError(404, "No such upload.")
    if "result" in session:  # a client that missed the last answer asks again
        return Reply(body=objects.shown(request, session["result"]))
    total = _append(request, store, upload_id, session)
    if total is None or session["size"] < total:
        store.put(_COLLECTION, upload_id, session)
        return _incomplete(request, session["size"])
    content = b"".join(_taken(store, session["chunks"]))
    conditions = Request(method="POST", path="", query=session["query"], now=request.now)
    session["result"] = objects.create(conditions, store, bucket, session["metadata"], content)
    session["chunks"] = []
    store.put(_COLLECTION, upload_id, session)
    return Reply(body=objects.shown(request, session["result"]))


def _place(request: Request, size: int) -> tuple[int, int | None]:
    """Where the request's bytes belong, and the content's whole size if it is known."""
    header = request.headers.get("content-range")
    if header is None:  # all at once
        return 0, len(request.body)
    match = _RANGE.fullmatch(header)
    if match is None:
        raise GoogleError(400, "Failed to parse Content-Range header.", reason="badRequest")
    first = size if match["first"] is None else int(match["first"])
    return first, None if match["total"] == "*" else int(match["total"])


def _append(request: Request, store: Store, upload_id: str, session: dict[str, Any]) -> int | None:
    """Add the request's bytes that are new, and return the content's whole size if it is known."""
    first, total = _place(request, session["size"])
    if first > session["size"]:
        raise GoogleError(
            503,
            "Invalid request. According to the Content-Range header, the upload offset is"
            f" {first} byte(s), which exceeds already uploaded size of {session['size']} byte(s).",
        )
    new = request.body[session["size"] - first :]
    if total is None and len(request.body) % _GRAIN:
        raise GoogleError(
            400,
            f"The chunk's size, {len(request.body)} bytes, is not a multiple of {_GRAIN}.",
            reason="badRequest",
        )
    if new:
        name = f"{upload_id}/{session['size']}"
        store.put_content(_COLLECTION, name, new)
        session["chunks"].append(name)
        session["size"] += len(new)
    return total


def _taken(store: Store, names: list[str]) -> list[bytes]:
    chunks = [store.content(_COLLECTION, name) or b"" for name in names]
    for name in names:
        store.delete(_COLLECTION, name)
    return chunks


def _incomplete(request: Request, size: int) -> Reply:
    headers = {"Range": f"bytes=0-{size - 1}"} if size else {}
    if request.headers.get("x-guploader-no-308") == "yes":
        # Google's Go client asks for this: to an HTTP client of today 308 is a redirection.
        return Reply(body=b"", headers={**headers, "X-HTTP-Status-Code-Override": "308"})
    return Reply(status=308, body=b"", headers=headers)


def _metadata(request: Request, document: bytes, content_type: str) -> dict[str, Any]:
    """An object's metadata as given in JSON; the query and the content's own type complete it."""
    try:
        given = json.loads(document or b"{}")
    except ValueError as error:
        raise GoogleError(400, "Parse Error", reason="parseError") from error
    metadata = {"contentType": content_type, **given}
    return {**metadata, "name": request.query.get("name") or given.get("name")}


def _parts(request: Request) -> list[tuple[str, bytes]]:
    """The parts' content types and bytes."""
    message = Message()
    message["Content-Type"] = request.headers.get("content-type", "")
    boundary = message.get_boundary()
    if not boundary:
        raise GoogleError(400, "Missing boundary of the multipart body.", reason="badRequest")
    # Not with the email package: it would alter line ends of the content.
    _, *parts = (b"\r\n" + request.body).split(b"\r\n--" + boundary.encode())
    found = []
    for part in parts[:-1]:  # the last is what follows the closing boundary
        head, _, content = part.partition(b"\r\n\r\n")
        headers = Message()
        for line in head.decode("latin-1").split("\r\n")[1:]:  # behind the boundary's own line
            name, _, value = line.partition(":")
            headers[name.strip()] = value.strip()
        found.append((headers.get("Content-Type", ""), content))
    return found


_PATH = "b/{bucket}/o"

upload = Routes({f"POST {_PATH}": _insert, f"PUT {_PATH}": _insert})
