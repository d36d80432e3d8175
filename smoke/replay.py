"""What the simulated cloud answers to what was asked of Google."""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

import requests

from rehearsal.cloud.server import Cloud
from smoke import differences, exchange, places
from smoke.exchange import Pair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from smoke.exchange import Exchange

_READS: Final = (
    *("/listManagedInstances", ":getIamPolicy", ":testIamPermissions", "/testIamPermissions"),
)
"""Ends of paths that are read by POST."""
_TIMEOUT: Final = 120.0
_GIVEN: Final = frozenset(
    {
        *("name", "id", "targetId", "etag", "fingerprint", "labelFingerprint", "generation"),
        *("metageneration", "projectNumber", "number", "uniqueId", "uid", "resourceVersion"),
        *("endpoint", "email", "instance", "selfLink", "targetLink", "instanceTemplate"),
        *("image", "networkIP", "clientId"),
    }
)
"""Fields whose values a cloud draws or derives, and a client gives back."""
_SHORTEST: Final = 4
_STORAGE: Final = ("/storage/", "/upload/", "/download/")


def replay(exchanges: Sequence[Exchange], folder: Path, project: str) -> list[Pair]:
    """Ask a simulated cloud of its own the same, in the same order; it does all at once.

    Of looks that only wait for something, the last alone is asked: what passes meanwhile follows
    Google's clock, which the simulation does not keep. A look that was under way together with a
    change is asked before and after it, as nobody knows which of the two Google served first.
    """
    asked = settled(exchanges)
    before, after = _neighbours(asked)
    pairs: dict[int, Pair] = {}
    with (
        Cloud(database=folder / "replay.sqlite", environ={"CLOUD_CLOCK_RATE": "0"}) as cloud,
        requests.Session() as session,
    ):
        twin = _Twin(cloud.base_url, session, fixed=frozenset({project}))

        for number in range(len(asked)):
            for look in (*before[number], number, *after[number]):
                pair = twin.ask(asked[look])
                better = look in pairs and _amount(pair) < _amount(pairs[look])
                if look not in pairs or better:
                    pairs[look] = pair
                # What is asked at another moment too would else give an etag of that moment.
                if look == number or better:
                    twin.learn(pair)
    return [pairs[number] for number in range(len(asked))]


def _neighbours(
    asked: Sequence[Exchange],
) -> tuple[defaultdict[int, list[int]], defaultdict[int, list[int]]]:
    """By the number of a change, the looks that are asked before it too, and those after it."""
    before: defaultdict[int, list[int]] = defaultdict(list)
    after: defaultdict[int, list[int]] = defaultdict(list)
    changes = [number for number, it in enumerate(asked) if not is_read(it)]
    for number, look in enumerate(asked):
        if is_read(look):
            for change in changes:
                if asked[change].began < look.at and asked[change].at > look.began:
                    (before if change < number else after)[change].append(number)
    return before, after


def _amount(pair: Pair) -> tuple[bool, int]:
    """How different two answers are: a status counts for more than any number of fields."""
    return pair.asked.status != pair.status, len(differences.of([pair]))


def settled(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The exchanges without looks that were repeated before anything was changed."""
    last: dict[tuple[str, str, tuple[tuple[str, str], ...]], int] = {}
    gone = set()
    for number, it in enumerate(exchanges):
        key = (it.method, it.path, it.query)
        if is_read(it):
            if key in last:
                gone.add(last[key])
            last[key] = number
        elif not it.path.startswith(_STORAGE):
            # What is written to a bucket changes no other service's answers.
            last.clear()
        else:
            last = {k: v for k, v in last.items() if not k[1].startswith(_STORAGE)}
    return [it for number, it in enumerate(exchanges) if number not in gone]


def is_read(asked: Exchange) -> bool:
    """Whether a request changes nothing."""
    return asked.method == "GET" or asked.path.endswith(_READS)


class _Twin:
    """Asks the simulation, in its own names for what Google has named."""

    def __init__(self, base_url: str, session: requests.Session, *, fixed: frozenset[str]) -> None:
        self._base_url = base_url
        self._session = session
        self._fixed = fixed
        self._names: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def ask(self, asked: Exchange) -> Pair:
        """Send one request."""
        if not is_read(asked):
            # What the client has named is called so everywhere.
            self._fixed |= set(_chosen(asked.body))
        headers = {"Authorization": "Bearer replay"}
        if asked.content_type:
            headers["Content-Type"] = asked.content_type
        answer = self._session.request(
            asked.method,
            self._base_url + self._translated(asked.path),
            params=[(name, self._translated(value)) for name, value in asked.query],
            data=self._body(asked),
            headers=headers,
            allow_redirects=False,
            timeout=_TIMEOUT,
        )
        document = exchange.document(
            answer.content,
            answer.headers.get("Content-Type", ""),
            answer.status_code,
            is_object=places.is_object(asked.path, asked.query),
        )
        return Pair(asked, answer.status_code, document, answer.headers.get("Location", ""))

    def learn(self, pair: Pair) -> None:
        """Take from two answers what is called otherwise here."""
        if pair.asked.answer is not None and pair.answer is not None:
            for name, one, other in _values(pair.asked.answer, pair.answer, ""):
                if name in _GIVEN:
                    self._learn_text(str(one), str(other))
        self._learn_upload(pair.asked.upload, pair.upload)

    def _body(self, asked: Exchange) -> bytes | None:
        if asked.path.startswith("/upload/") or not asked.body:
            return asked.body or None
        with contextlib.suppress(UnicodeDecodeError):
            return self._translated(asked.body.decode()).encode()
        return asked.body

    def _translated(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._names[found[0]], text)

    def _learn_text(self, one: str, other: str) -> None:
        mine, yours = one.split("/"), other.split("/")
        if "projects" in mine and "projects" in yours:
            mine = mine[mine.index("projects") :]
            yours = yours[yours.index("projects") :]
        if len(mine) != len(yours):
            return
        for theirs, ours in zip(mine, yours, strict=True):
            if len(theirs) >= _SHORTEST and theirs not in self._fixed:
                self._know(theirs, ours)

    def _learn_upload(self, theirs: str, ours: str) -> None:
        for name, value in parse_qsl(urlsplit(theirs).query):
            own = dict(parse_qsl(urlsplit(ours).query)).get(name, "")
            if own:
                self._know(value, own)

    def _know(self, theirs: str, ours: str) -> None:
        # Two clouds may draw the same, for different things: a name that fits is learned, too.
        if self._names.get(theirs, theirs) == ours:
            return
        self._names[theirs] = ours
        longest = sorted(self._names, key=len, reverse=True)
        words = "|".join(map(re.escape, longest))
        # An object's name is one part of a path, with its slashes encoded.
        self._pattern = re.compile(rf"(?:(?<![\w.-])|(?<=%2F))(?:{words})(?![\w-])")


def _chosen(body: bytes) -> Iterator[str]:
    """The names that a request gives to what it makes, and to what that consists of."""
    with contextlib.suppress(ValueError):
        document = json.loads(body or b"{}")
        parts = [document, *document.values()] if isinstance(document, dict) else []
        for part in (it for it in parts if isinstance(it, dict)):
            yield from (str(part[key]) for key in ("name", "accountId") if key in part)


def _values(theirs: Any, ours: Any, field: str) -> Iterator[tuple[str, Any, Any]]:
    """Each value that stands in both documents at the same place, with its field's name."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for name in theirs.keys() & ours.keys():
            yield from _values(theirs[name], ours[name], name)
    elif isinstance(theirs, list) and isinstance(ours, list):
        for one, other in _matched(theirs, ours):
            yield from _values(one, other, field)
    elif isinstance(theirs, str | int) and isinstance(ours, str | int):
        yield field, theirs, ours


def _matched(theirs: list[Any], ours: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The entries of two lists that stand for the same: by name, else in their order."""
    named = {it["name"]: it for it in ours if isinstance(it, dict) and "name" in it}
    rest_theirs = []
    taken = set()
    for it in theirs:
        name = it.get("name") if isinstance(it, dict) else None
        if name in named:
            taken.add(name)
            yield it, named[name]
        else:
            rest_theirs.append(it)
    rest_ours = [it for it in ours if not (isinstance(it, dict) and it.get("name") in taken)]
    if len(rest_theirs) == len(rest_ours):
        yield from zip(rest_theirs, rest_ours, strict=True)
