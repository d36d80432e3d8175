"""Whatever stands in an env.list: problems or settings, and never a traceback."""

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.intake import Loaded, load
from provision.settings import parsing, spelling
from provision.settings.model import Settings
from tests.unit.conftest import MANDATORY

VARIABLES = [*spelling.SETTINGS, *spelling.SPELLINGS]
EXAMPLES = [str((about.examples or [""])[0]) for about in Settings.model_fields.values()]
AWKWARD = [
    "", '""', "{", "{}", "=", ";", ",", ":", "gs://", "name=;", "name=a,vm_type=n1-standard-1",
    "٣", "²", "1_0", "-1", "9" * 15, "gke", "ray", "us-central1", "n1-standard-8", "a3-ultragpu-8g",
    "7d", "a=b", '{ a = "${b}" }', "yes", "no", "\ud800", "\x00",
]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(EXAMPLES),
    st.sampled_from(AWKWARD),
    st.text(max_size=40),
    st.text(alphabet="{}[]\"'=,:;/\\$%#ab1 \n", max_size=30),
)


def hold_together(loaded: Loaded) -> None:
    """What is true of every outcome."""
    assert (loaded.settings is None) == bool(loaded.problems)
    json.dumps(loaded.effective, ensure_ascii=False).encode()
    for problem in (*loaded.problems, *loaded.notes):
        assert problem.what
        repr(problem).encode()
        assert len(problem.what) < 1000


@given(st.dictionaries(st.sampled_from(VARIABLES), VALUES, max_size=10))
def test_any_environment_gives_settings_or_problems_and_the_same_ones_again(
    environ: dict[str, str],
) -> None:
    loaded = load(environ)

    hold_together(loaded)
    assert load(environ) == loaded
    hold_together(load(environ, only=tuple(MANDATORY)))


@given(st.binary(max_size=300) | st.text(alphabet="ZONE=\"'# \n\r\t\\$\x00\ufeff").map(str.encode))
def test_any_file_gives_settings_or_problems(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "env.list"
        path.write_bytes(content)

        hold_together(load({}, path))


@given(st.text(alphabet="{}=\"':,ab1\\$% \n", max_size=40))
def test_any_map_is_a_map_of_texts_or_invalid(text: str) -> None:
    try:
        found = parsing.mapping(text)
    except parsing.InvalidValueError:
        found = {}

    assert all(isinstance(item, str) for pair in found.items() for item in pair)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True), st.text(max_size=20), max_size=5
    )
)
def test_a_map_survives_json(values: dict[str, str]) -> None:
    assert parsing.mapping(json.dumps(values)) == values


@pytest.mark.parametrize(
    "part", ["a", "{", '{"a":', "a=b,", "/a:", "name=a;", '"', "key='", "://a", "a.", "a-", "a=[("]
)
def test_a_huge_value_is_refused_or_taken_like_any_other(part: str) -> None:
    text = part * (100_000 // len(part))

    for variable in ("LABELS", "METADATA", "GKE_NODE_POOLS", "GCS_MOUNT_LIST", "VM_TYPE", "ZONE"):
        hold_together(load(MANDATORY | {variable: text}))
