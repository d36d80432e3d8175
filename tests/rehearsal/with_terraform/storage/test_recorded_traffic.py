"""What provider 7.45.0 sent for storage, accounts, policies and services, sent again.

The recording's answers are those of a rough server; each difference to it is named and explained.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from rehearsal.cloud.server import Cloud

_STORIES = Path(__file__).parent / "traffic"
_PREFIXES = {
    "storage": "storage",
    "iam": "iam",
    "cloudresourcemanager": "crm",
    "serviceusage": "serviceusage",
    "cloudbilling": "cloudbilling",
}
_PLACEHOLDERS = ("TIMESTAMP", "NUMID", "operations/acat.OP")

# Request path, field of the answer -> why it may differ.
_TOLERATED = {
    (r".*", r"etag"): "an etag may be anything; it follows the requests by _Etags",
    (r".*", r"generation|id|mediaLink"): "generations are of the moment",
    (r"v1/b/[^/]+(/o/.*)?", r"metageneration"): "the recording's server did not count them",
    (r".*/o(/.*)?", r"md5Hash|crc32c"): "the content of a big object is not in the recording",
    (r"v1/b(/[^/]+)?", r"iamConfiguration\.bucketPolicyOnly\.enabled"): "the older name of"
    " uniformBucketLevelAccess, and always equal to it",
    (r".*/iam|.*:.etIamPolicy", r"version"): "Google answers 1 for policies without conditions",
    (r".*/o", r"items"): "Google leaves empty lists out; the recording's server kept no versions",
}


class _Etags:
    """Our etags for the recorded ones, by resource."""

    def __init__(self) -> None:
        self._ours: dict[tuple[str, str], str] = {}

    def learn(self, path: str, recorded: Any, ours: Any) -> None:
        if isinstance(recorded, dict) and "etag" in recorded:
            self._ours[_resource(path), recorded["etag"]] = ours["etag"]

    def translate(self, path: str, body: Any) -> Any:
        if isinstance(body, dict):
            return {key: self.translate(path, value) for key, value in body.items()} | (
                {"etag": self._ours[_resource(path), body["etag"]]} if "etag" in body else {}
            )
        return body


def _resource(path: str) -> str:
    return path.partition(":")[0]


def _stories() -> list[str]:
    return sorted(path.stem for path in _STORIES.glob("*.json"))


@pytest.mark.parametrize("story", _stories())
def test_each_recorded_request_is_answered_as_recorded(cloud: Cloud, story: str) -> None:
    etags, upload_id = _Etags(), ""
    for exchange in json.loads((_STORIES / f"{story}.json").read_text())["exchanges"]:
        answer = _send(cloud, exchange, etags, upload_id)
        where = f"{exchange['phase']}: {exchange['method']} {exchange['path']}"
        assert answer.status_code == exchange["status"], f"{where}: {answer.text}"
        location = answer.headers.get("Location", "")
        upload_id = location.partition("upload_id=")[2] or upload_id
        ours = answer.json() if answer.content else {}
        etags.learn(exchange["path"], exchange["response"], ours)
        differences = [
            f"{field}: recorded {recorded!r}, answered {actual!r}"
            for field, recorded, actual in _differences(_asked_for(exchange), ours)
            if not _is_tolerated(exchange["path"], field)
        ]
        assert differences == [], where
        if exchange["query"].get("versions") == "true":
            _delete_generations(cloud, ours.get("items", []))


def _asked_for(exchange: dict[str, Any]) -> dict[str, Any]:
    """The recorded answer; its server knew nothing of `fields`, by which APIs are listed."""
    answer: dict[str, Any] = exchange["response"] or {}
    if exchange["query"].get("fields") != "services/name,nextPageToken":
        return answer
    return {"services": [{"name": it["name"]} for it in answer["services"]]}


def test_what_is_tolerated_occurs() -> None:
    paths = {
        exchange["path"]
        for story in _stories()
        for exchange in json.loads((_STORIES / f"{story}.json").read_text())["exchanges"]
    }
    for pattern, _ in _TOLERATED:
        assert any(re.fullmatch(pattern, path) for path in paths), pattern


def _send(
    cloud: Cloud, exchange: dict[str, Any], etags: _Etags, upload_id: str
) -> requests.Response:
    upload = exchange["path"].startswith("upload/")
    path = exchange["path"] if upload else f"{_PREFIXES[exchange['service']]}/{exchange['path']}"
    query = dict(exchange["query"])
    if "upload_id" in query:
        query["upload_id"] = upload_id
    headers = {"Authorization": "Bearer recorded", **exchange.get("headers", {})}
    if "content-range" in headers:  # Google's Go client says this with each chunk
        headers["X-GUploader-No-308"] = "yes"
    return requests.request(
        exchange["method"],
        f"{cloud.base_url}/{path}",
        params=query,
        data=_body(etags.translate(exchange["path"], exchange["body"])),
        headers=headers,
        timeout=600,
    )


def _delete_generations(cloud: Cloud, items: list[dict[str, Any]]) -> None:
    """As the provider does with force_destroy; the recording's server kept no old generations."""
    for item in items:
        url = item["selfLink"].replace("https://www.googleapis.com", cloud.base_url)
        query = {"generation": item["generation"]}
        assert requests.delete(url, params=query, timeout=600).status_code == 204


def _body(recorded: Any) -> bytes | None:
    match recorded:
        case None:
            return None
        case {"bytes": int(size)}:
            return bytes(size)
        case {"multipart": [head, content]}:
            return (
                "--BOUNDARY\r\nContent-Type: application/json\r\n\r\n"
                f"{json.dumps(head['json'])}\r\n"
                f"--BOUNDARY\r\nContent-Type: {content['contentType']}\r\n\r\n"
                f"{content['text']}\r\n--BOUNDARY--\r\n"
            ).encode()
        case _:
            return json.dumps(recorded).encode()


def _differs(recorded: Any, actual: Any, field: str) -> bool:
    match field:
        case "services":  # a rehearsal's project has more than the recorded one from the start
            return any(service not in actual for service in recorded)
        case "bindings":  # the recording's server put no real project into a bucket's first policy
            return _granted(recorded) != _granted(actual)
        case _:
            return bool(recorded != actual) and recorded not in _PLACEHOLDERS


def _granted(bindings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [b for b in bindings if not b["role"].startswith("roles/storage.legacyBucket")]


def _differences(recorded: Any, actual: Any, field: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(recorded, dict) and isinstance(actual, dict):
        for key, value in recorded.items():
            yield from _differences(value, actual.get(key), f"{field}.{key}".removeprefix("."))
    elif _differs(recorded, actual, field):
        yield field, recorded, actual


def _is_tolerated(path: str, field: str) -> bool:
    return any(
        re.fullmatch(paths, path) and re.fullmatch(fields, field) for paths, fields in _TOLERATED
    )
