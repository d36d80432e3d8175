import json
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import TypeAdapter

from provision.codes import Code
from provision.documents import plain, schema
from provision.documents.events import NoteEvent
from provision.documents.problem import of
from provision.errors import Alternatives, Problem
from provision.report import Report
from tests import output_schema


def _faults(document: Any) -> list[str]:
    whole = output_schema.schema()
    return list(output_schema.faults(document, whole, whole))


def _document(**more: Any) -> dict[str, Any]:
    report = Report(action="Create")
    report.problems.append(Problem(what="w", code=Code.STOCK_OUT))
    document: dict[str, Any] = json.loads(json.dumps(plain(report.document(7))))
    return document | more


def test_the_kept_schema_is_made_from_the_types() -> None:
    kept = output_schema.FILE.read_text(encoding="utf-8")
    assert kept == schema.text(), "renew it: make docs"


def test_a_document_is_as_the_schema_says_and_what_it_does_not_say_is_found() -> None:
    assert _faults(_document()) == []
    wrong: dict[str, dict[str, Any]] = {
        "$.ok: 'no' is no boolean": {"ok": "no"},
        "$.exit_code: True is no integer": {"exit_code": True},
        "$: surprise is not in the schema": {"surprise": 1},
        "$.problems[0]: has no code": {"problems": [{}]},
        "$.backend: has no prefix": {"backend": {"bucket": "b"}},
        "$.timeline[0].name: 'sleep' is none of": {"timeline": [{"name": "sleep"}]},
    }
    for fault, change in wrong.items():
        assert any(found.startswith(fault) for found in _faults(_document(**change)))


def test_a_line_of_a_stream_is_an_event_or_the_document() -> None:
    note = of(Problem(what="w", code=Code.CHOSEN))
    event = json.loads(json.dumps(plain(NoteEvent(time="2026-11-22T23:40:01Z", note=note))))
    output_schema.require_line(event)
    output_schema.require_line(_document(event="result", time="2026-11-22T23:40:01Z"))
    with pytest.raises(AssertionError, match="note"):
        output_schema.require_line(event | {"event": "message"})


def test_a_keyword_that_nobody_checks_fails() -> None:
    with pytest.raises(AssertionError, match="minimum"):
        list(output_schema.faults(1, {"minimum": 2}, {}))


@dataclass(frozen=True, kw_only=True)
class Half:
    """It says something of one field."""

    told: Annotated[str | None, "what it says; None for nothing"] = None
    silent: str


def test_a_field_that_nothing_is_said_of_is_no_part_of_a_contract() -> None:
    with pytest.raises(AttributeError, match="metadata"):
        TypeAdapter(Half).json_schema(schema_generator=schema._AsPlain)


def test_a_problem_says_to_programs_what_else_would_do() -> None:
    told = of(
        Problem(
            setting="ZONE",
            what="us-central1-a has none",
            code=Code.STOCK_OUT,
            alternatives=Alternatives(zones=("us-central1-b",), settings={"ZONE": "us-central1-b"}),
        )
    )
    assert plain(told) == {
        "code": "stock-out",
        "retryable": True,
        "setting": "ZONE",
        "what": "us-central1-a has none",
        "why": "",
        "fix": "",
        "alternatives": {"zones": ["us-central1-b"], "settings": {"ZONE": "us-central1-b"}},
    }
