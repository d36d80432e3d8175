import json
from typing import Any

import pytest

from smoke import exchange, places, redaction
from smoke.exchange import Exchange
from smoke.redaction import GONE

TOKEN = "an-opaque-token-of-no-known-form"  # noqa: S105 - of a test


def _exchange(**fields: Any) -> Exchange:
    usual: dict[str, Any] = {"method": "POST", "path": "/compute/v1/projects/p/global/networks"}
    usual |= {"query": (), "body": b"", "content_type": "application/json", "status": 200}
    usual |= {"answer": None, "size": 0, "upload": "", "began": 0.0, "at": 0.0}
    return Exchange(**(usual | fields))


@pytest.mark.parametrize(
    "text",
    [
        "ya29.a0AfH6SMBx-yz_1.23",
        "Bearer abcdef",
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJhY2NvdW50In0.c2lnbmF0dXJl",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----",
    ],
)
def test_what_has_the_form_of_a_secret_is_gone_wherever_it_stands(text: str) -> None:
    shown = json.dumps(redaction.document({"items": [{"value": f"a {text} b"}]}))
    assert text.partition("\n")[0] not in shown
    assert GONE in shown


@pytest.mark.parametrize(
    "field", ["privateKeyData", "access_token", "password", "clientKey", "payload", "signedJwt"]
)
def test_fields_that_hold_secrets_are_gone_whatever_they_hold(field: str) -> None:
    assert redaction.document({"a": [{field: {"x": 1}}]}) == {"a": [{field: GONE}]}


def test_keys_of_metadata_stay_and_secrets_of_kubernetes_go() -> None:
    items = {"items": [{"key": "enable-oslogin", "value": "TRUE"}]}
    assert redaction.document(items) == items
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "b"}, "metadata": {"name": "s"}}
    shown = redaction.document({"items": [secret]})["items"][0]
    assert (shown["data"], shown["metadata"]) == (GONE, {"name": "s"})


def test_the_callers_token_is_gone_even_without_a_form() -> None:
    row = _exchange(
        path=f"/compute/v1/{TOKEN}",
        query=(("upload_id", "x"), ("access_token", TOKEN), ("filter", f"a {TOKEN}")),
        body=json.dumps({"description": TOKEN}).encode(),
        answer={"description": f"it is {TOKEN}"},
    ).row(frozenset({TOKEN}))
    assert TOKEN not in json.dumps(row)
    assert row["query"]["upload_id"] == GONE


def test_an_objects_content_is_known_by_its_size_alone() -> None:
    state = b'{"resources": ["a secret"]}'
    row = _exchange(path="/upload/storage/v1/b/bucket/o", body=state).row(frozenset())
    assert row["body"] == {"bytes": len(state)}
    path = "/storage/v1/b/bucket/o/state"
    assert places.is_object(path, [("alt", "media")])
    assert places.is_object("/download/storage/v1/b/x/o/y", [])
    assert places.is_object("/bucket/terraform/state/default.tfstate", [])
    assert not places.is_object(path, [("alt", "json")])
    kind = "application/json"
    assert exchange.document(state, kind, 200, is_object=True) is None
    assert exchange.document(state, kind, 404, is_object=True) == json.loads(state)
    assert exchange.document(state, kind, 200, is_object=False) == json.loads(state)
