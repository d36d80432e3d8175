"""Fields of Kubernetes objects by path, compared with what somebody wrote by hand.

A path has a name a step: `spec.volumes`. In brackets a step picks the entry of a list by number, by
name, or by its key, mount path or path, and a key of a mapping that has dots itself. At its end
`@interfaces` reads an annotation as interface -> network, and `?words` says whether a script, or a
list of arguments, has the words.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from provision.kinds.gke.kubernetes.objects import Object

_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")
_KEYS: Final = ("name", "key", "mountPath", "path")
# What an entry is picked by, and what an object is called, is no field that somebody adds.
_CALLS: Final = (*_KEYS, "operator")
_SAYS: Final = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True, kw_only=True)
class ByHand:
    """One object of a walk-through, or several that are alike."""

    title: str  # its kind and name; `{name}` and `{number}` stand for each of several
    ours: str  # kind and name of our object; "" if we have none
    why: str = ""  # why we have none
    fields: Mapping[str, object]  # path -> value; `{name}` and `{number}` as above
    renamed: Mapping[str, str] = field(default_factory=dict)  # part of a path -> what it is in ours
    each: tuple[str, ...] = ("",)  # the names of several objects, whose numbers count from 0


@dataclass(frozen=True, kw_only=True)
class Row:
    """One field: its path, what stood there by hand, and what ours has."""

    kind: str
    path: str
    by_hand: object
    ours: object

    @property
    def differs(self) -> bool:
        """Whether ours is another one."""
        return self.by_hand != self.ours


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of one object, and what ours has beside them."""

    title: str
    rows: tuple[Row, ...]
    added: tuple[str, ...]
    why: str = ""


def compare(thing: ByHand, ours: Mapping[str, Object]) -> Iterator[Table]:
    """The tables of an object, one for each of several.

    Raises:
        KeyError: We have none, where we should.
    """
    for number, name in enumerate(thing.each):
        filled = {"name": name, "number": str(number)}
        title = _fill(thing.title, filled)
        mine = ours[_fill(thing.ours, filled)] if thing.ours else None
        rows, known = [], []
        for path, value in thing.fields.items():
            place = path
            for old, new in thing.renamed.items():
                place = place.replace(old, new)
            known.append(place)
            wanted = _fill(value, filled) if isinstance(value, str) else value
            found = None if mine is None else value_at(mine, place)
            rows.append(Row(kind=thing.title.split()[0], path=path, by_hand=wanted, ours=found))
        added = () if mine is None else tuple(_added(mine, known))
        yield Table(title=title, rows=tuple(rows), added=added, why=thing.why)


def _fill(text: str, parts: Mapping[str, str]) -> str:
    for name, value in parts.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def value_at(thing: Object, path: str) -> object:
    """What stands at a path; None where a part of it is not there."""
    path, asks, words = path.partition("?")
    path, reads, _ = path.partition("@")
    found: Any = thing
    for name, picked in _STEP.findall(path):
        found = _step(found, name or picked)
        if found is None:
            break
    if asks:
        return words in (" ".join(found) if isinstance(found, list) else str(found))
    if reads and found is not None:
        return {it["interfaceName"]: it["network"] for it in json.loads(found)}
    result: object = found
    return result


def _step(found: Any, name: str) -> Any:
    if isinstance(found, dict):
        return found.get(name)
    if not isinstance(found, list):
        return None
    if name.isdigit():
        return found[int(name)] if int(name) < len(found) else None
    return next((it for it in found if _called(it, name)), None)


def _called(entry: Any, name: str) -> bool:
    return isinstance(entry, dict) and any(entry.get(key) == name for key in _KEYS)


def _added(thing: Object, known: Sequence[str]) -> Iterator[str]:
    """The paths of ours that no known path leads to or comes from, the shortest of each."""
    plain = [re.split(r"[?@]", path)[0] for path in known]
    yield from _unknown(thing, "", [_steps(path) for path in plain], thing)


def _steps(path: str) -> tuple[str, ...]:
    return tuple(name or picked for name, picked in _STEP.findall(path))


def _unknown(
    value: Any, path: str, known: Sequence[tuple[str, ...]], whole: Object
) -> Iterator[str]:
    if isinstance(value, dict):
        entries = [(key, (key,), it) for key, it in value.items()]
    elif isinstance(value, list) and all(isinstance(it, dict) for it in value):
        entries = [
            (next((str(it[key]) for key in _KEYS if key in it), str(at)), (str(at),), it)
            for at, it in enumerate(value)
        ]
    else:
        return
    for key, others, it in entries:
        if isinstance(value, dict) and (key in _CALLS or (value is whole and key in _SAYS)):
            continue
        plain = isinstance(value, dict) and not re.search(r"[.\[\]/]", key)
        place = (f"{path}.{key}" if path else key) if plain else f"{path}[{key}]"
        names = {key, *others}
        if isinstance(value, list) and isinstance(it, dict):
            names |= {str(it[one]) for one in _KEYS if one in it}
        below = [steps[1:] for steps in known if steps and steps[0] in names]
        if not below:
            yield place
        elif () not in below:
            yield from _unknown(it, place, below, whole)


def page(tables: Sequence[Table], why: Mapping[tuple[str, str], str]) -> str:
    """The tables of a walk-through; of several alike the first alone."""
    return "\n\n".join(_section(table, why) for table in tables)


def _section(table: Table, why: Mapping[tuple[str, str], str]) -> str:
    lines = [f"### {table.title}", ""]
    if table.why:
        lines += [f"None of ours: {table.why}.", ""]
    lines += ["| field | by hand | ours | why |", "| --- | --- | --- | --- |"]
    for row in table.rows:
        reason = why[reason_of(row, why)] if row.differs and not table.why else ""
        lines.append(f"| `{row.path}` | {_cell(row.by_hand)} | {_cell(row.ours)} | {reason} |")
    if table.added:
        lines += ["", f"Ours has besides: {', '.join(f'`{path}`' for path in table.added)}."]
    return "\n".join(lines)


def reason_of(row: Row, why: Mapping[tuple[str, str], str]) -> tuple[str, str]:
    """The key of the reason for a difference: the longest end of its path that has one.

    `why`: kind, or "" for all, and a part of a path -> the reason.

    Raises:
        LookupError: There is none.
    """
    fitting = [key for key in why if key[0] in ("", row.kind) and key[1] in row.path]
    if not fitting:
        raise LookupError(f"{row.kind} {row.path}: {row.by_hand!r} by hand, ours {row.ours!r}")
    return max(fitting, key=lambda key: (len(key[1]), key[0]))


def _cell(value: object) -> str:
    text = json.dumps(value).replace("|", "\\|")
    return "-" if value is None else f"`{text}`"
