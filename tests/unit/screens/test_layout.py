"""Lines for people: no word broken, nothing over the width but what is copied."""

import pytest

from provision.screens import layout
from provision.words import counted

_PROSE = "Google took the machines away and its group makes them again as soon as there are some"
_COMMAND = "gcloud compute ssh my-cluster-vm-nstf --project my-project --zone us-central1-a"


def _texts(text: str, width: int, first: str = "", rest: str = "") -> list[str]:
    return [line.text for line in layout.wrapped(text, width, first=first, rest=rest)]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_prose_breaks_at_blanks_alone_and_within_the_width(width: int) -> None:
    lines = _texts(_PROSE, width, first="  why: ", rest="       ")
    assert max(map(len, lines)) <= width
    assert " ".join(" ".join(lines).split()) == f"why: {_PROSE}"
    assert all(line.startswith("       ") for line in lines[1:])


def test_a_command_is_one_line_that_can_be_copied() -> None:
    lines = _texts(f"open a shell on the first VM with: {_COMMAND}", 80, rest="    ")
    assert lines == ["open a shell on the first VM with:", f"    {_COMMAND}"]


def test_a_command_within_a_sentence_is_whole_and_the_sentence_goes_on() -> None:
    text = "its number is what `gcloud projects get-iam-policy my-project` lists, behind ?uid="
    lines = _texts(text, 50, rest="    ")
    assert "    `gcloud projects get-iam-policy my-project`" in lines
    assert lines[-1] == "    lists, behind ?uid="


def test_a_url_is_not_broken() -> None:
    url = "https://console.cloud.google.com/" + 90 * "x"
    assert url in _texts(f"request an increase at {url}", 80)


def test_lines_that_were_separate_stay_so() -> None:
    assert _texts("one\ntwo", 80, first="a ", rest="  ") == ["a one", "  two"]


def test_what_belongs_at_the_end_gets_a_line_of_its_own_where_there_is_no_room() -> None:
    assert [line.text for line in layout.ended("left", "right", 20)] == ["left           right"]
    assert [line.text for line in layout.ended("l" * 18, "right", 20)] == ["l" * 18, "    right"]


def test_a_screen_is_as_wide_as_the_terminal_within_limits() -> None:
    wide = {None: 100, 0: 100, 80: 80, 200: 100, 20: 60}
    assert {it: layout.width_of(it) for it in wide} == wide


def test_numbers_agree_with_their_nouns() -> None:
    for words in ("1 VM", "2 policies", "3 keys", "1,200 nodes"):
        number, noun = words.replace(",", "").split()
        one = {"policies": "policy", "keys": "key", "nodes": "node"}.get(noun, noun)
        assert counted(int(number), one) == words


def test_columns_are_aligned_and_end_without_blanks() -> None:
    assert layout.columns([("a", "bb", ""), ("aaa", "b", "c")]) == ["a    bb", "aaa  b   c"]


def test_a_number_stays_with_its_unit() -> None:
    assert _texts(f"twelve checks in 1.1{layout.GLUE}s", 18) == ["twelve checks in", "1.1 s"]
