"""Uploads to Cloud Storage: in one piece, with metadata, or in chunks that can be resumed."""

import json
import re
from email.message import Message
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote, urlencode
from xml.sax.saxutils import escape

from rehearsal.cloud.routes import Routes
from rehearsal.cloud.storage import buckets, objects
from rehearsal.cloud.storage.buckets import NotModified
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

_COLLECTION = "storage/uploads"
_GRAIN = 256 * 1024  # bytes of which every chunk but the last is a multiple
_RANGE = re.compile(r"bytes (?:\*|(?P<first>\d+)-(?P<last>\d+))/(?P<total>\*|\d+)")


def _insert(request: Request, store: Store, bucket: str) -> Reply:
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
    buckets.check(request.query, objects.live(store, bucket, metadata.get("name") or ""))
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


_RANGE_ASKED = re.compile(r"bytes=(?P<first>\d*)-(?P<last>\d*)")
_DOWNLOAD = re.compile(r"b/(?P<bucket>[^/]+)/o/(?P<name>[^/]+)")
_CODES = {
    400: "InvalidArgument",
    403: "AccessDenied",
    404: "NoSuchKey",
    405: "MethodNotAllowed",
    412: "PreconditionFailed",
}


def media(request: Request, store: Store) -> Reply:
    """Answer "b/{bucket}/o/{object}" of the JSON API and "{bucket}/{object}" of the XML API.

    The two can't be mixed up: no bucket has a name as short as "b".
    """
    download = _DOWNLOAD.fullmatch(request.path)
    if download:
        return of_json_api(request, store, unquote(download["bucket"]), unquote(download["name"]))
    bucket, _, name = request.path.partition("/")
    if request.method != "GET" or not name:
        return _xml(GoogleError(405, "The specified method is not allowed against this resource."))
    try:
        return read(request, store, unquote(bucket), unquote(name))
    except GoogleError as error:
        return _xml(error)


def of_json_api(request: Request, store: Store, bucket: str, name: str) -> Reply:
    """An object's content by the JSON API, whose errors are no JSON there.

    Source: a recorded answer to `alt=media` of an object that is not there, in
    firebase/firebase-tools#3647 (2021-08-09): 404, text/html, and one line of text.
    """
    try:
        return read(request, store, bucket, name)
    except GoogleError as error:
        headers = {"Content-Type": "text/html; charset=UTF-8"}
        return Reply(status=error.code, body=error.message.encode(), headers=headers)


def read(request: Request, store: Store, bucket: str, name: str) -> Reply:
    """An object's content, or the range of it that is asked for."""
    buckets.find(store, bucket, "storage.objects.get")
    found = objects.require(store, bucket, name, request.query.get("generation"))
    try:
        buckets.check_read(request, found)
    except NotModified:
        return Reply(status=304)
    content = objects.content(store, found)
    headers = _headers(found)
    span = _span(request.headers.get("range", ""), len(content))
    if span is None:
        return Reply(body=content, headers=headers)
    if not span:
        headers["Content-Range"] = f"bytes */{len(content)}"
        return Reply(status=416, body=b"", headers=headers)
    headers["Content-Range"] = f"bytes {span.start}-{span.stop - 1}/{len(content)}"
    return Reply(status=206, body=content[span.start : span.stop], headers=headers)


def _span(header: str, size: int) -> range | None:
    """The bytes that a Range header asks for (RFC 9110): empty if there are none; None for all."""
    match = _RANGE_ASKED.fullmatch(header)
    if match is None or not (match["first"] or match["last"]):
        return None
    if not match["first"]:
        return range(max(0, size - int(match["last"])), size)
    last = int(match["last"]) if match["last"] else size - 1
    return range(int(match["first"]), min(last + 1, size))


def _headers(found: objects.Object) -> dict[str, str]:
    optional = {
        "Cache-Control": found.get("cacheControl"),
        "Content-Disposition": found.get("contentDisposition"),
        "Content-Encoding": found.get("contentEncoding"),
        "Content-Language": found.get("contentLanguage"),
        **{f"X-Goog-Meta-{key}": value for key, value in found.get("metadata", {}).items()},
    }
    return {
        "Content-Type": found["contentType"],
        "ETag": found["etag"],
        "Last-Modified": formatdate(int(found["generation"]) / 1_000_000, usegmt=True),
        "Accept-Ranges": "bytes",
        "X-Goog-Generation": found["generation"],
        "X-Goog-Metageneration": found["metageneration"],
        "X-Goog-Hash": ",".join(
            f"{key}={found[field]}"
            for key, field in (("crc32c", "crc32c"), ("md5", "md5Hash"))
            if field in found
        ),
        "X-Goog-Storage-Class": found["storageClass"],
        "X-Goog-Stored-Content-Encoding": found.get("contentEncoding", "identity"),
        "X-Goog-Stored-Content-Length": found["size"],
        **{name: value for name, value in optional.items() if value},
    }


def _xml(error: GoogleError) -> Reply:
    no_bucket = error.message == buckets.NO_BUCKET
    code = "NoSuchBucket" if no_bucket else _CODES.get(error.code, "InvalidArgument")
    words = "The specified key does not exist." if code == "NoSuchKey" else error.message
    document = (
        "<?xml version='1.0' encoding='UTF-8'?>"
        f"<Error><Code>{code}</Code><Message>{escape(words)}</Message>"
        f"<Details>{escape(error.message)}</Details></Error>"
    )
    headers = {"Content-Type": "application/xml; charset=UTF-8"}
    return Reply(status=error.code, body=document.encode(), headers=headers)
