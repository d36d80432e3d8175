"""The JSON Schema of all documents, and the page of problems: what programs can rely on.

    python -m provision.documents.schema OUTPUT.SCHEMA.JSON PROBLEMS.MD

Pydantic makes the schema from the types: it says of each what `plain` makes of it, and of each
field the words in its annotation.
"""

from __future__ import annotations

import json
import re
import sys
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import DefsRef, GenerateJsonSchema
from typing_extensions import override

from provision.codes import Code
from provision.documents.events import Event
from provision.documents.run import ResultEvent, Run

if TYPE_CHECKING:
    from pydantic.json_schema import CoreModeRef

_LINE: Final = "ndjson.Line"  # the name in the schema of what each line of `--output ndjson` is

_NONE: Final = re.compile(r"\bNone\b")


def text() -> str:
    """The schema as a file. Documents may have more keys: newer versions add some."""
    kinds: dict[str, Any] = {"run": Run, _LINE: Event | ResultEvent}
    made, known = TypeAdapter.json_schemas(
        [(name, "serialization", TypeAdapter(kind)) for name, kind in kinds.items()],
        schema_generator=_AsPlain,
    )
    named = {name: _in_order(one) for name, one in sorted(known["$defs"].items())}
    whole = {
        "$schema": _AsPlain.schema_dialect,
        "title": "What is printed with --output json",
        **made["run", "serialization"],
        "$defs": {_LINE: made[_LINE, "serialization"], **named},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


class _AsPlain(GenerateJsonSchema):
    """Decimals are numbers, and what is None by default is left out, as `plain` has it."""

    @override
    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        return {"type": "number"}

    @override
    def literal_schema(self, schema: Any) -> dict[str, Any]:
        return {"const": schema["expected"][0]}

    @override
    def default_schema(self, schema: Any) -> dict[str, Any]:
        inner = schema["schema"]
        return self.generate_inner(inner["schema"] if _is_left_out(schema) else inner)

    @override
    def field_is_required(self, field: Any, total: bool) -> bool:
        return not _is_left_out(field["schema"])

    @override
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    @override
    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        made: dict[str, Any] = {"required": []} | super().dataclass_schema(schema)
        hints = typing.get_type_hints(schema["cls"], include_extras=True)
        for name, of_it in made["properties"].items():
            nothing = "null" if name in made["required"] else "absent"
            words = _sentence(_NONE.sub(nothing, hints[name].__metadata__[0]))
            made["properties"][name] = {"description": words} | of_it
        return made

    @override
    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        path = core_mode_ref[0].partition(":")[0].split(".")
        ref = DefsRef(".".join(path[-2:]))
        self._prioritized_defsref_choices[ref] = [ref]
        return ref

    @override
    def sort(self, value: dict[str, Any], parent_key: str | None = None) -> dict[str, Any]:
        return value


def _is_left_out(schema: Any) -> bool:
    return schema["type"] == "default" and schema.get("default", ...) is None


def _in_order(made: dict[str, Any]) -> dict[str, Any]:
    summary = {"description": made["description"].partition("\n")[0]}
    order = ("type", "properties", "required", "enum")
    return summary | {key: made[key] for key in order if key in made}


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")


def problems_page() -> str:
    """The page docs/reference/problems.md."""
    problems = [
        f"| `{it}` | {it.meaning} | {', '.join(str(int(number)) for number in sorted(it.exits))}"
        f" | {'yes' if it.is_retryable else 'no'} | {it.remedy} |"
        for it in Code
        if it.exits
    ]
    notes = [f"| `{it}` | {it.meaning} | {it.remedy} |" for it in Code if not it.exits]
    return _PAGE.replace("PROBLEMS", "\n".join(problems)).replace("NOTES", "\n".join(notes))


_PAGE: Final = """\
# Problems and notes

With `--output json`, everything in `problems` and `notes` has a `code`. Codes stay what they are;
the words in `what`, `why` and `fix` are for people, and get better from version to version.
[output.schema.json](output.schema.json) is the schema of the whole document.

What a program does about a failed run, in this order:

1. `problems[].retryable` is true for all problems: run the same action again after a while, and
   stop after a time or cost of your own. Nothing has to change for it to succeed.
2. A problem has `alternatives.zones` or `alternatives.settings`: write those settings, or one of
   those zones, into the env.list, and run the action again. Zones are sorted, the best first; what
   is in `settings` belongs together. Another zone moves a cluster that exists: `--yes` agrees to
   that, so ask a person first if something runs on it.
3. Otherwise ask a person, and show them `what`, `why` and `fix`.

A run that fails with one of several problems has the exit code of them all. A code can stand in
`notes` too: then it did not make the run fail, and nothing has to be done.

| code | meaning | exit codes | retryable | what to do |
| --- | --- | --- | --- | --- |
PROBLEMS

These are only ever notes:

| code | meaning | what to do |
| --- | --- | --- |
NOTES

This page is generated by `make docs` from `provision/codes.tsv`.
"""


if __name__ == "__main__":
    for given in sys.argv[1:]:
        made = problems_page() if given.endswith(".md") else text()
        Path(given).write_text(made, encoding="utf-8")
