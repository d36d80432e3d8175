import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rehearsal.cloud.services.conftest import Api

_SAME_API = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def _body(api: Api, name: str, content: bytes = b"x", query: str = "") -> dict[str, Any]:
    reply = api.put(name, content, query)
    assert isinstance(reply.body, dict)
    return reply.body


def test_checksums_are_those_of_the_content(api: Api) -> None:
    api.bucket()
    made = _body(api, "x", b"123456789")
    assert made["md5Hash"] == base64.b64encode(hashlib.md5(b"123456789").digest()).decode()  # noqa: S324 - Google's checksum
    assert made["crc32c"] == base64.b64encode(bytes.fromhex("e3069283")).decode()
    assert made["size"] == "9"


def test_generations_only_grow(api: Api) -> None:
    api.bucket()
    generations = [int(_body(api, name)["generation"]) for name in "aab"]
    api.now -= 3600
    generations.append(int(_body(api, "a")["generation"]))
    assert generations == sorted(set(generations))


_GENERATION = "generation"  # stands for the generation that the object has


@pytest.mark.parametrize(
    ("exists", "condition", "holds"),
    [
        (False, "ifGenerationMatch=0", True),
        (True, "ifGenerationMatch=0", False),
        (True, f"ifGenerationMatch={_GENERATION}", True),
        (True, "ifGenerationMatch=1", False),
        (False, "ifGenerationMatch=1", False),
        (True, "ifMetagenerationMatch=1", True),
        (True, "ifMetagenerationMatch=2", False),
        (True, f"ifGenerationNotMatch={_GENERATION}", False),
        (True, "ifGenerationNotMatch=0", True),
        (False, "ifGenerationNotMatch=0", False),
        (True, "ifMetagenerationNotMatch=1", False),
        (True, "ifMetagenerationNotMatch=2", True),
    ],
)
def test_an_upload_takes_effect_only_under_its_condition(
    api: Api, condition: str, *, exists: bool, holds: bool
) -> None:
    api.bucket()
    if exists:
        condition = condition.replace(
            f"={_GENERATION}", f"={_body(api, 'x', b'old')['generation']}"
        )
    assert api.put("x", b"new", f"&{condition}").status == (200 if holds else 412)
    kept = api("media", "GET", "loom/x").body
    assert kept == b"new" if holds else kept != b"new"


@_SAME_API
@given(
    changes=st.lists(
        st.tuples(st.sampled_from(["put", "delete"]), st.sampled_from("ab"), st.booleans()),
        max_size=12,
    ),
    versioning=st.booleans(),
)
def test_a_condition_on_the_generation_last_seen_holds_exactly_if_nothing_happened(
    api: Api, changes: list[tuple[str, str, bool]], *, versioning: bool
) -> None:
    bucket = f"loom-{hashlib.sha256(repr((changes, versioning)).encode()).hexdigest()[:12]}"
    api("storage", "POST", "b?project=proj-a1", {"name": bucket})
    api("storage", "PATCH", f"b/{bucket}", {"versioning": {"enabled": versioning}})
    live: dict[str, str] = {}
    for kind, name, stale in changes:
        seen = "1" if stale else live.get(name, "0")
        condition = f"ifGenerationMatch={seen}"
        if kind == "put":
            target = f"b/{bucket}/o?uploadType=media&name={name}&{condition}"
            reply = api("upload", "POST", target, b"x")
            assert reply.status == (412 if stale else 200)
            if isinstance(reply.body, dict) and reply.status == 200:
                live[name] = reply.body["generation"]
        else:
            reply = api("storage", "DELETE", f"b/{bucket}/o/{name}?{condition}")
            assert reply.status == (404 if name not in live else 412 if stale else 204)
            if reply.status == 204:
                del live[name]
    items = api.json("storage", "GET", f"b/{bucket}/o").get("items", [])
    assert {item["name"]: item["generation"] for item in items} == live


@_SAME_API
@given(
    names=st.sets(
        st.text(st.sampled_from("ab/é-\U0001f600"), min_size=1, max_size=5).filter(
            lambda name: name not in (".", "..")
        ),
        max_size=8,
    ),
    prefix=st.text(st.sampled_from("ab/"), max_size=2),
    size=st.integers(1, 4),
)
def test_pages_put_together_are_the_whole_list(
    api: Api, names: set[str], prefix: str, size: int
) -> None:
    digest = hashlib.sha256(repr((sorted(names), prefix, size)).encode()).hexdigest()[:12]
    bucket = f"loom-{digest}"
    api("storage", "POST", "b?project=proj-a1", {"name": bucket})
    for name in names:
        body = json.dumps({"name": name}).encode()
        multipart = b"--B\r\n\r\n" + body + b"\r\n--B\r\n\r\nx\r\n--B--"
        headers = {"content-type": "multipart/related; boundary=B"}
        api("upload", "POST", f"b/{bucket}/o?uploadType=multipart", multipart, headers)
    for delimiter in ("", "/"):
        rest = {name for name in names if name.startswith(prefix)}
        folded = {
            prefix + head + "/" if delimiter and cut else name
            for name in rest
            for head, cut, _ in [name[len(prefix) :].partition("/")]
        }
        listed: list[str] = []
        token: str | None = ""
        while token is not None:
            target = f"b/{bucket}/o?prefix={prefix}&delimiter={delimiter}&maxResults={size}"
            page = api.json("storage", "GET", f"{target}&pageToken={token}")
            found = [*(i["name"] for i in page.get("items", [])), *page.get("prefixes", [])]
            assert len(found) <= size
            listed += found
            token = page.get("nextPageToken")
        assert sorted(listed) == sorted(folded)


def test_a_deleted_object_is_gone_without_versioning(api: Api) -> None:
    api.bucket()
    generation = _body(api, "x")["generation"]
    assert api("storage", "DELETE", "b/loom/o/x").status == 204
    refused = api.refused("storage", "GET", f"b/loom/o/x?generation={generation}")
    assert refused == (404, "notFound", "No such object: loom/x")


def test_names_and_page_tokens_against_the_rules_are_refused(api: Api) -> None:
    reply = api.put("x")
    assert reply.status == 404
    assert "The specified bucket does not exist." in str(reply.body)
    api.bucket()
    for token in ("%25", "w7w", "_w=="):
        assert api.refused("storage", "GET", f"b/loom/o?pageToken={token}")[0] == 400
    for name in ("..", ".", "a%0Ab", "a" * 1025, ".well-known/acme-challenge/x"):
        assert api.put(name).status == 400


def test_a_deleted_object_is_kept_as_noncurrent_with_versioning(api: Api) -> None:
    api.bucket(versioning={"enabled": True})
    generation = _body(api, "x", b"old")["generation"]
    api("storage", "DELETE", "b/loom/o/x")
    assert api.refused("storage", "GET", "b/loom/o/x")[0] == 404
    old = api.json("storage", "GET", f"b/loom/o/x?generation={generation}")
    assert "timeDeleted" in old
    assert "items" not in api.json("storage", "GET", "b/loom/o")
    assert len(api.json("storage", "GET", "b/loom/o?versions=true")["items"]) == 1
    api("storage", "DELETE", f"b/loom/o/x?generation={generation}")
    assert "items" not in api.json("storage", "GET", "b/loom/o?versions=true")


def test_a_retention_policy_keeps_an_object_for_its_time(api: Api) -> None:
    api.bucket(retentionPolicy={"retentionPeriod": "3600"})
    made = _body(api, "x")

    changes = [("DELETE", "b/loom/o/x"), ("DELETE", f"b/loom/o/x?generation={made['generation']}")]
    for method, path in changes:
        code, reason, words = api.refused("storage", method, path)
        assert (code, reason) == (403, "retentionPolicyNotMet")
        assert "Object 'loom/x' is subject to bucket's retention policy" in words
    assert api.put("x").status == 403
    # What the caller says of the object is judged first.
    assert api.put("x", query="&ifGenerationMatch=0").status == 412

    api.now += 3600
    assert api.put("x").status == 200


def test_a_retention_policy_lets_a_live_object_become_noncurrent(api: Api) -> None:
    api.bucket(retentionPolicy={"retentionPeriod": "3600"}, versioning={"enabled": True})
    old = _body(api, "x")["generation"]

    assert api.put("x").status == 200
    assert api("storage", "DELETE", "b/loom/o/x").status == 204
    assert api.refused("storage", "DELETE", f"b/loom/o/x?generation={old}")[0] == 403
