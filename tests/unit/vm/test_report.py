import json
from pathlib import Path

import pytest
from aiinfra_vm import report


@pytest.mark.parametrize(
    ("text", "is_told"),
    [
        (json.dumps({"state": "done", "steps": {"gpu": {"state": "done"}}}), True),
        (json.dumps({"state": "running", "steps": {}}), False),
        (json.dumps({"state": "failed", "steps": {}}), False),
        (json.dumps({"state": "done", "steps": {"fabric": {"detail": "é" * 3000}}}), False),
        ('{"state": "do', False),
        ("[]", False),
        (None, False),
    ],
    ids=["done", "running", "failed", "large", "cut short", "no object", "missing"],
)
def test_a_start_up_is_told_once_it_is_done_if_metadata_can_hold_it(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_told: bool
) -> None:
    document = tmp_path / "report.json"
    monkeypatch.setattr(report, "_DOCUMENT", document)
    if text is not None:
        document.write_text(text, encoding="utf-8")
    assert report.done() == (text if is_told else None)
