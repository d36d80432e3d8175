"""Reads of what objects hold: the JSON API's downloads and the XML API's GET and HEAD."""

from __future__ import annotations

import re
from email.utils import formatdate
from typing import TYPE_CHECKING
from urllib.parse import unquote
from xml.sax.saxutils import escape

from rehearsal.cloud.storage import buckets, objects, preconditions
from rehearsal.cloud.storage.preconditions import NotModified
from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_RANGE = re.compile(r"bytes=(?P<first>\d*)-(?P<last>\d*)")
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
        preconditions.check_read(request, found)
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
    match = _RANGE.fullmatch(header)
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
