"""What provider 7.45.0 sent to Compute Engine, sent again.

The recording's answers are those of a rough server that satisfied the real provider; each
difference to it is named and explained.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from rehearsal.cloud import discovery
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import Reply
from tests.rehearsal.cloud.sending import Sender

STORIES = Path(__file__).parent / "traffic"
REPLAYED = ("a_vpc", "b_gpu_nets", "d_a2_mig")
PLACEHOLDERS = ("TIMESTAMP", "NUMID", "operation-OP")

# Field of the answer -> why it may differ.
TOLERATED = {
    r"(.*\.)?fingerprint": "it may be anything; it follows the requests",
    r"user": "who asks",
    r"id|description|licenses\[0\]": "of an image: the recording's server made them up",
    r"updatePolicy\.maxSurge\.calculated": "the recording's server always said 1",
    r"status\.versionTarget\.isReached": "the recording's server had no VMs that could be behind",
}


def _exchanges(story: str) -> list[dict[str, Any]]:
    document: dict[str, Any] = json.loads((STORIES / f"{story}.json").read_text())
    exchanges: list[dict[str, Any]] = document["exchanges"]
    return exchanges


class Replay(Sender):
    """Sends recorded requests, with the names and ids of this run for the recording's."""

    def __init__(self, database: Path) -> None:
        super().__init__(Database(database))
        self._templates: list[str] = []
        self._made = 0
        self._ids: dict[str, str] = {}
        self._fingerprints: dict[str, str] = {}
        self._images: dict[str, str] = {}
        # Another service's, so no request of those that are sent here makes it.
        self("iam", "POST", "projects/proj-a1/serviceAccounts", {"accountId": "a2-node"})

    def send(self, exchange: dict[str, Any]) -> Reply:
        text = json.dumps([exchange["path"], exchange["body"]])
        path, body = json.loads(self._translate(exchange, text))
        target = f"{path}?{urlencode(exchange['query'])}"
        reply = self("compute", exchange["method"], target, body)
        if reply.status != 200:
            return reply
        assert isinstance(reply.body, dict)
        self._learn(exchange, reply.body)
        return reply

    def _translate(self, exchange: dict[str, Any], text: str) -> str:
        if "UNIQ" in text and exchange["method"] == "POST" and "Templates" in exchange["path"]:
            self._made += 1
            self._templates.append(f"a2-{self._made:026d}")
        if self._templates:
            # What is deleted is the oldest, anything else is about the newest.
            oldest = exchange["method"] == "DELETE"
            name = self._templates.pop(0) if oldest and "UNIQ" in text else self._templates[-1:]
            text = text.replace("a2-UNIQ", name if isinstance(name, str) else "".join(name))
        text = text.replace("NUMID", self._ids.get("template", "NUMID"))
        for recorded, ours in (*self._fingerprints.items(), *self._images.items()):
            text = text.replace(recorded, ours)
        return text

    def _learn(self, exchange: dict[str, Any], ours: dict[str, Any]) -> None:
        if exchange["method"] == "POST" and exchange["path"].endswith("/instanceTemplates"):
            self._ids["template"] = ours["targetId"]
        if "/images/family/" in exchange["path"]:
            self._images[exchange["response"]["name"]] = ours["name"]
        if "fingerprint" in exchange["response"]:
            self._fingerprints[exchange["response"]["fingerprint"]] = ours["fingerprint"]


def _differences(recorded: Any, ours: Any, field: str = "") -> Iterator[str]:
    """The fields of a recorded answer that ours has not, or has with another value."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for key, value in recorded.items():
            yield from _differences(value, ours.get(key), f"{field}.{key}" if field else key)
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for index, value in enumerate(recorded):
            yield from _differences(value, ours[index], f"{field}[{index}]")
    elif not _is_same(recorded, ours) and not any(re.fullmatch(it, field) for it in TOLERATED):
        yield f"{field}: recorded {recorded!r}, answered {ours!r}"


def _is_same(recorded: Any, ours: Any) -> bool:
    if not (isinstance(recorded, str) and isinstance(ours, str)):
        return bool(recorded == ours)
    pattern = re.escape(recorded)
    for placeholder in (*PLACEHOLDERS, "UNIQ"):
        pattern = pattern.replace(re.escape(placeholder), r"[^/]+")
    return re.fullmatch(pattern, ours) is not None


@pytest.mark.parametrize("story", REPLAYED)
def test_each_recorded_request_is_answered_as_recorded(tmp_path: Path, story: str) -> None:
    replay = Replay(tmp_path / "cloud.sqlite")
    for exchange in _exchanges(story):
        where = f"{exchange['phase']}: {exchange['method']} {exchange['path']}"
        reply = replay.send(exchange)
        assert reply.status == exchange["status"], f"{where}: {reply.body!r}"
        assert not list(_differences(exchange["response"], reply.body)), where


@pytest.mark.parametrize("story", sorted(path.stem for path in STORIES.glob("*.json")))
def test_each_recorded_request_passes_the_checks_of_the_discovery_document(story: str) -> None:
    api = discovery.api("compute.v1")
    for recorded in _exchanges(story):
        text = json.dumps(recorded).replace("NUMID", "4000000000000000001").replace("UNIQ", "1")
        exchange = json.loads(text)
        match = api.match(exchange["method"], exchange["path"])
        api.check(match, exchange["query"], exchange["body"] or {})
