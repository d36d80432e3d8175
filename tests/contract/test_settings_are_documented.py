"""The model, the README, the help text and the examples agree, in both directions."""

import re
from pathlib import Path
from typing import Final

import pytest

from provision.command_line import Option
from provision.google import resources
from provision.intake import load
from provision.settings import documentation, spelling
from provision.settings.choices import Action
from provision.settings.model import BY_VARIABLES, Settings

ROOT: Final = Path(__file__).parents[2]
REFERENCE: Final = ROOT / "docs" / "reference"
SETTINGS: Final = REFERENCE / "settings.md"
COMMAND_LINE: Final = REFERENCE / "command-line.md"
EXAMPLES: Final = sorted((ROOT / "examples").glob("**/*.list"))
ASSIGNMENT: Final = re.compile(r"^([A-Za-z_][A-Za-z0-9_]*)=", re.MULTILINE)
MODEL: Final = set(spelling.SETTINGS)


def rows(table: str) -> list[str]:
    """The variables that have a row in a Markdown table."""
    return re.findall(r"^\| `([A-Z0-9_]+)` \|", table, re.MULTILINE)


@pytest.mark.parametrize("page", [SETTINGS, COMMAND_LINE], ids=lambda path: path.name)
def test_the_reference_holds_what_is_made_from_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")

    assert documentation.renew(text) == text, "run: make docs"


def test_every_setting_has_one_row_and_every_row_is_a_setting() -> None:
    named = rows(documentation.settings_table())

    assert len(named) == len(set(named))
    assert set(named) == MODEL
    # Those that a beginner needs come first, the mandatory ones before all.
    assert named[:3] == ["PROJECT_ID", "NAME_PREFIX", "ZONE"]
    assert {"VM_TYPE", "ENABLE_SPOT", "MAX_RUN_DURATION", "MAX_HOURLY_COST"} < set(named[:13])


def test_every_setting_is_in_the_help_and_the_help_has_no_other() -> None:
    text = documentation.env_list_help()

    assert set(re.findall(r"^  ([A-Z0-9_]+)  \(", text, re.MULTILINE)) == MODEL
    assert set(re.findall(r"^      ([A-Z0-9_]+)=", text, re.MULTILINE)) == MODEL


def test_the_help_fits_a_terminal() -> None:
    for line in documentation.env_list_help().splitlines():
        assert len(line) <= 80 or "=" in line, line


def test_other_spellings_are_documented_and_none_hides_a_setting() -> None:
    table = documentation.settings_table()

    assert not MODEL & set(spelling.SPELLINGS)
    for name, other in spelling.SPELLINGS.items():
        assert f"`{name}` for `{other.setting}`" in table
        assert other.setting in MODEL


@pytest.mark.parametrize("field", BY_VARIABLES)
def test_every_setting_says_in_one_sentence_what_it_does(field: str) -> None:
    description = str(Settings.model_fields[field].description)

    assert description.endswith(".")
    assert ". " not in description
    assert "|" not in description


@pytest.mark.parametrize("field", BY_VARIABLES)
def test_the_example_of_every_setting_passes(field: str) -> None:
    (example,) = Settings.model_fields[field].examples or []
    mandatory = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}

    loaded = load(mandatory | {field.upper(): str(example)}, fetch=lambda _: "")

    told = [problem.what for problem in loaded.problems if problem.setting == field.upper()]
    # What an example needs beside itself, and what a later version makes, is not its fault.
    beside = ("has no effect with", "asks for", "is set without", "is not available for")
    assert all(any(words in what for words in beside) for what in told)
    assert loaded.effective[field.upper()] is not None


def test_there_is_an_example_of_the_smallest_env_list() -> None:
    smallest = (ROOT / "examples" / "env.list").read_text(encoding="utf-8")

    assert set(ASSIGNMENT.findall(smallest)) == {
        field.upper() for field, about in Settings.model_fields.items() if about.is_required()
    }
    assert not re.search(r"=.*[\"']", smallest)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_uses_settings_by_their_own_names_and_has_no_problem(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    loaded = load({}, path)

    assert set(ASSIGNMENT.findall(text)) <= MODEL
    assert not loaded.problems


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_means_the_same_when_docker_reads_it(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    as_docker_does = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))

    assert load(as_docker_does).effective == load({}, path).effective


def test_the_exit_codes_of_the_reference_are_those_of_the_program() -> None:
    table = documentation.exit_code_table()

    assert "| 0 | done |" in table
    assert "| 75 | still waiting for capacity; everything is kept |" in table
    assert table in COMMAND_LINE.read_text(encoding="utf-8")


def test_the_options_of_the_reference_and_their_actions_are_those_of_the_program() -> None:
    text = COMMAND_LINE.read_text(encoding="utf-8")
    table = re.findall(r"^\| `(--[a-z-]+)[^|]*\| ([^|]*) \|", text, re.MULTILINE)

    assert len(table) == len(Option)
    assert dict(table) == {
        str(option): "all"
        if option.actions == set(Action)
        else ", ".join(f"`{action}`" for action in Action if action in option.actions)
        for option in Option
    }


def test_a_document_without_markers_is_not_renewed() -> None:
    with pytest.raises(ValueError, match="settings:begin"):
        documentation.renew("# Nothing here\n")


def test_renewing_keeps_what_stands_around_the_markers() -> None:
    markers = "".join(
        f"<!-- {name}:begin -->old<!-- {name}:end -->\n" for name in ("settings", "exit-codes")
    )

    renewed = documentation.renew(f"before\n{markers}after\n")

    assert renewed.startswith("before\n<!-- settings:begin -->\n### To begin with")
    assert renewed.endswith("<!-- exit-codes:end -->\nafter\n")
    assert "old" not in re.sub(r"\w*old\w+|\w+old\w*", "", renewed)
    assert documentation.renew(renewed) == renewed


def test_the_page_of_resources_is_what_the_code_says() -> None:
    page = (REFERENCE / "resources.md").read_text(encoding="utf-8")
    assert page == resources.page(), "run: make docs"


def test_every_resource_that_is_billed_is_one_that_is_made() -> None:
    assert set(resources._HOW_BILLED) <= {row.type for row in resources.ALL}
