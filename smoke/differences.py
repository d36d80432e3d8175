"""Where Google answered otherwise than the simulation: statuses, fields, words of a closed set.

Not compared is what two clouds can't have in common: ids, times, etags, addresses, and the values
of free text.
"""

from __future__ import annotations

import enum
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud import discovery
from rehearsal.cloud.wire import GoogleError
from smoke import redaction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from smoke.exchange import Pair

_APIS: Final = {
    "/compute/v1/": "compute.v1",
    "/storage/v1/": "storage.v1",
    "/iam/v1/": "iam.v1",
    "/crm/v1/": "cloudresourcemanager.v1",
    "/crm/v3/": "cloudresourcemanager.v3",
    "/orgpolicy/v2/": "orgpolicy.v2",
    "/serviceusage/v1/": "serviceusage.v1",
    "/serviceusage/v1beta1/": "serviceusage.v1beta1",
    "/cloudbilling/v1/": "cloudbilling.v1",
    "/container/v1/": "container.v1",
    "/file/v1/": "file.v1",
    "/cloudkms/v1/": "cloudkms.v1",
    "/secretmanager/v1/": "secretmanager.v1",
    "/monitoring/v1/": "monitoring.v1",
}
_ENUM: Final = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_REFUSED: Final = 400
_WHOLE, _PARTIAL = 200, 206
_FREE: Final = frozenset(
    {"labels", "resourceLabels", "annotations", "matchLabels", "nodeSelector", "data", "scopes"}
)
"""Fields whose keys are names that people or controllers choose."""
_PASSING: Final = frozenset({"status", "state", "currentAction", "instanceStatus", "phase"})
"""Fields that say how far something is: Google's time against the simulation's."""
_OF_OPERATIONS: Final = frozenset(
    {"status", "progress", "endTime", "startTime", "insertTime", "done", "response", "metadata"}
)
"""Fields of an operation that follow the clock."""


_TEXTS: Final = frozenset(
    {"name", "key", "value", "command", "args", "description", "title", "displayName", "message"}
)
"""Fields of free text, which may have the form of such a word."""


class Kind(enum.Enum):
    """In what two answers differ."""

    STATUS = "status"
    ABSENT = "fields that only Google has"
    PRESENT = "fields that only the simulation has"
    ENUM = "words of a closed set"
    PASSING = "states in passing"
    WORDS = "words of a refusal"


@dataclass(frozen=True, order=True)
class Difference:
    """One difference, however often it was met."""

    method: str  # Google's name of the method ("compute.networks.insert")
    kind: str  # in what they differ
    field: str  # where; "" for the answer as such
    google: str  # what Google has; "" for nothing
    simulation: str  # what the simulation has; "" for nothing


def of(pairs: Iterable[Pair]) -> list[tuple[Difference, int]]:
    """Every difference, and how often it was met."""
    found: defaultdict[Difference, int] = defaultdict(int)
    for pair in pairs:
        for difference in _of_pair(pair):
            found[difference] += 1
    return sorted(found.items())


def method(verb: str, path: str) -> str:
    """Google's name of what was asked; the path's form where no document has it."""
    for prefix, name in _APIS.items():
        if path.startswith(prefix):
            try:
                match = discovery.api(name).match(verb, path.removeprefix(prefix))
            except GoogleError:
                break
            return f"{name.partition('.')[0]}.{match.method.id}"
    if path.startswith("/kubernetes/"):
        return f"{verb} {_kubernetes(path)}"
    return f"{verb} {path.partition('/o/')[0]}"


def _kubernetes(path: str) -> str:
    """A path of a cluster without the names in it."""
    parts = path.split("/")[3:]
    kept: list[str] = []
    for number, part in enumerate(parts):
        before = parts[number - 1] if number else ""
        is_name = before == "namespaces" or (number > 0 and kept[-1:] != ["*"] and "." in part)
        kept.append("*" if is_name and before not in ("apis", "api") else part)
    return "/".join(["kubernetes", *kept])


def _of_pair(pair: Pair) -> Iterator[Difference]:
    asked = pair.asked
    name = method(asked.method, asked.path)
    # A recording has no header fields, so the simulation is asked for all of what the program asked
    # for up to its limit: the same object comes with another status.
    if (asked.status, pair.status) != (_PARTIAL, _WHOLE) and asked.status != pair.status:
        words = [_refusal(it) for it in (asked.answer, pair.answer)]
        google, simulation = f"{asked.status} {words[0]}", f"{pair.status} {words[1]}"
        yield Difference(name, Kind.STATUS.value, "", google.strip(), simulation.strip())
        return
    words = [_refusal(it) for it in (asked.answer, pair.answer)]
    if asked.status >= _REFUSED and _without_names(words[0]) != _without_names(words[1]):
        yield Difference(name, Kind.WORDS.value, "", *words)
    if asked.answer is None or pair.answer is None:
        if (asked.answer is None) != (pair.answer is None):
            shown = ["no JSON" if it is None else "JSON" for it in (asked.answer, pair.answer)]
            yield Difference(name, Kind.STATUS.value, "", *shown)
        return
    theirs, ours = _reduced(asked.answer), _reduced(pair.answer)
    fields, own = dict(_fields(theirs)), dict(_fields(ours))
    for field in sorted(fields.keys() - own.keys()):
        yield Difference(name, Kind.ABSENT.value, field, "there", "")
    for field in sorted(own.keys() - fields.keys()):
        yield Difference(name, Kind.PRESENT.value, field, "", "there")
    for field in sorted(fields.keys() & own.keys()):
        yield from _words(name, field, fields[field], own[field])


def _words(name: str, field: str, google: set[str], simulation: set[str]) -> Iterator[Difference]:
    """What a field says, where it says words of a closed set on either side."""
    if google == simulation:
        return
    passing = field.rpartition(".")[2].removesuffix("[]") in _PASSING
    kind = Kind.PASSING if passing else Kind.ENUM
    yield Difference(
        name,
        kind.value,
        field,
        " ".join(sorted(google - simulation)),
        " ".join(sorted(simulation - google)),
    )


def _reduced(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer without what follows the clock in operations."""
    operation = "operationType" in answer or str(answer.get("name", "")).startswith("operations/")
    # A compute operation has its type, another has "done" or a name of that form.
    if operation or ("done" in answer and "/operations/" in str(answer.get("name", ""))):
        return {name: it for name, it in answer.items() if name not in _OF_OPERATIONS}
    return answer


def _fields(value: Any, place: str = "") -> Iterator[tuple[str, set[str]]]:
    """Each field by its place, with the words of closed sets that stand there."""
    merged: defaultdict[str, set[str]] = defaultdict(set)
    for field, word in _walk(value, place):
        merged[field] |= {word} if word else set()
    yield from merged.items()


def _walk(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, it in value.items():
            # The keys of an aggregated list are places ("zones/us-central1-a").
            own = "*" if "/" in name else name
            below = f"{place}.{own}" if place else own
            yield below, ""
            if name not in _FREE:
                yield from _walk(it, below)
    elif isinstance(value, list):
        for it in value:
            yield from _walk(it, f"{place}[]")
    elif isinstance(value, str) and _ENUM.fullmatch(value) and not _is_text(place):
        yield place, value


def _is_text(place: str) -> bool:
    """Whether a field has free text, by the last name of its place."""
    return place.rpartition(".")[2].removesuffix("[]") in _TEXTS


def _without_names(words: str) -> str:
    """Words without what two clouds call otherwise: numbers, addresses, names with digits."""
    return re.sub(r"https?://\S+|\S*\d\S*", "*", words)


def _refusal(answer: dict[str, Any] | None) -> str:
    """A refusal's reason and words, without what is secret."""
    error = (answer or {}).get("error")
    if not isinstance(error, dict):
        return redaction.text(str((answer or {}).get("message", "")))[:200]
    return redaction.text(str(error.get("message", "")))[:300]
