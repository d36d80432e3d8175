import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.provider import schema, trim
from rehearsal.provider.resources import DATA_SOURCES, RESOURCES

PUBLISHED: dict[str, Any] = {
    "attributes": {
        "priority": {"optional": True, "type": "number"},
        "secret": {"optional": True, "computed": True, "sensitive": True, "type": "string"},
    },
    "block_types": {
        "disk": {
            "nesting_mode": "list",
            "min_items": 1,
            "block": {"attributes": {"size": {"required": True, "type": "number"}}},
        }
    },
}
SEMANTICS: dict[str, Any] = {
    "priority": {"flags": "o", "default": 1000, "refuses": "x to be in the range (0 - 9), got -1"},
    "disk": {"flags": "oc", "block": {"size": {"flags": "r", "force_new": True}}},
}


def test_schema_and_semantics_become_one_table() -> None:
    assert trim.trim_block(PUBLISHED, SEMANTICS, {"secret": ["json"]}) == {
        "disk": {
            "nesting": "list",
            "flags": "oc",
            "min": 1,
            "block": {"size": {"type": "number", "flags": "r", "force_new": True}},
        },
        "priority": {"type": "number", "flags": "o", "default": 1000, "check": ["range", 0, 9]},
        "secret": {"type": "string", "flags": "oc", "sensitive": True, "check": ["json"]},
    }


def test_a_refusal_that_no_check_gives_stops_the_trimming() -> None:
    with pytest.raises(ValueError, match="no check is known for the message: odd"):
        trim.check_of("odd")


def test_words_that_point_to_a_page_are_no_enumeration() -> None:
    published = {"attributes": {"member": {"required": True, "type": "string"}}}
    meaning = {"member": {"enum": ["the", "values", "here:", "https://example.com/binding)"]}}
    fields = trim.trim_block(published, meaning, {})
    assert fields["member"] == {"type": "string", "flags": "r", "check": ["iam_member"]}


def test_what_is_written_is_what_the_server_loads(tmp_path: Path) -> None:
    path = tmp_path / "resources" / "google_x.json"
    trim.write(path, 3, trim.trim_block(PUBLISHED, SEMANTICS, {}))
    assert json.loads(path.read_text())["version"] == 3
    read = schema._read(path)
    assert read.version == 3
    assert read.block["disk"].block["size"].force_new
    assert read.type == [
        "object",
        {
            "disk": ["list", ["object", {"size": "number"}]],
            "priority": "number",
            "secret": "string",
        },
    ]


def test_exactly_the_types_that_are_asked_for_are_there() -> None:
    assert tuple(schema.names("resources")) == tuple(RESOURCES)
    assert tuple(schema.names("data")) == tuple(DATA_SOURCES)


def test_completing_a_value_fills_nulls_and_empty_blocks() -> None:
    block = schema.load("resources", "google_compute_instance_template").block
    done = schema.complete(block, {"disk": [{"boot": True}], "unheard": 1})
    assert set(done) == set(block)
    assert done["disk"][0]["boot"] is True
    assert done["disk"][0]["disk_encryption_key"] == []
    assert done["machine_type"] is None
    assert done["timeouts"] is None
