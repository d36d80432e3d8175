"""Documents against docs/reference/output.schema.json, as strictly as tests want it.

A validator of only those keywords that the schema uses: it fails on any other, so that nothing is
passed over. What the schema leaves open for newer versions, keys that it does not name, is a fault
here: the tests run this version.
"""

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from provision.codes import Code

FILE: Final = Path(__file__).parents[1] / "docs" / "reference" / "output.schema.json"
_SAID: Final = {"$schema", "$defs", "title", "description"}
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


@functools.cache
def schema() -> dict[str, Any]:
    """The schema as it is documented."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def require(document: Any) -> None:
    """See that a document is as the schema says."""
    found = list(faults(document, schema(), schema()))
    assert not found, "not as docs/reference/output.schema.json says:\n" + "\n".join(found)


def require_line(event: Any) -> None:
    """See that a line of `--output ndjson` is as the schema says."""
    found = list(faults(event, schema()["$defs"]["ndjson.Line"], schema()))
    assert not found, "not as docs/reference/output.schema.json says:\n" + "\n".join(found)


def require_exit_code(document: dict[str, Any]) -> None:
    """See that each problem may make a run fail with this exit code, as the page of codes says."""
    if document["action"] in ("Plan", "Status") and document["exit_code"] == 1:
        return  # --detailed-exitcode has one code for all failures
    codes = {str(code): code for code in Code}
    problems = [codes[problem["code"]] for problem in document["problems"]]
    wrong = [code for code in problems if document["exit_code"] not in code.exits]
    assert not wrong, f"exit code {document['exit_code']} with {', '.join(wrong)}"


def faults(value: Any, rule: dict[str, Any], whole: dict[str, Any], at: str = "$") -> Iterator[str]:
    """What is wrong with a value, each with its place."""
    for keyword, said in rule.items():
        if keyword not in _SAID:
            assert keyword in _KEYWORDS, f"this validator does not know the keyword {keyword}"
            yield from _KEYWORDS[keyword](value, said, whole, at)


def _type(value: Any, said: str, whole: dict[str, Any], at: str) -> Iterator[str]:
    del whole
    # Python takes a bool for a number, JSON does not.
    if not isinstance(value, _TYPES[said]) or (isinstance(value, bool) and said != "boolean"):
        yield f"{at}: {value!r:.80} is no {said}"


def _enum(value: Any, said: list[str], whole: dict[str, Any], at: str) -> Iterator[str]:
    del whole
    if value not in said:
        yield f"{at}: {value!r:.80} is none of {said}"


def _ref(value: Any, said: str, whole: dict[str, Any], at: str) -> Iterator[str]:
    yield from faults(value, whole["$defs"][said.removeprefix("#/$defs/")], whole, at)


def _any_of(
    value: Any, said: list[dict[str, Any]], whole: dict[str, Any], at: str
) -> Iterator[str]:
    yield from min((list(faults(value, one, whole, at)) for one in said), key=len)


def _items(value: Any, said: dict[str, Any], whole: dict[str, Any], at: str) -> Iterator[str]:
    for number, one in enumerate(value if isinstance(value, list) else []):
        yield from faults(one, said, whole, f"{at}[{number}]")


def _required(value: Any, said: list[str], whole: dict[str, Any], at: str) -> Iterator[str]:
    del whole
    if isinstance(value, dict):
        yield from (f"{at}: has no {name}" for name in said if name not in value)


def _properties(value: Any, said: dict[str, Any], whole: dict[str, Any], at: str) -> Iterator[str]:
    for name, one in (value if isinstance(value, dict) else {}).items():
        if name in said:
            yield from faults(one, said[name], whole, f"{at}.{name}")
        else:
            yield f"{at}: {name} is not in the schema"


def _others(value: Any, said: Any, whole: dict[str, Any], at: str) -> Iterator[str]:
    for name, one in (value if isinstance(value, dict) and said is not True else {}).items():
        yield from faults(one, said, whole, f"{at}.{name}")


_KEYWORDS: Final[dict[str, Callable[[Any, Any, dict[str, Any], str], Iterator[str]]]] = {
    "$ref": _ref,
    "additionalProperties": _others,
    "anyOf": _any_of,
    "const": lambda value, said, whole, at: _enum(value, [said], whole, at),
    "enum": _enum,
    "items": _items,
    "properties": _properties,
    "required": _required,
    "type": _type,
}
