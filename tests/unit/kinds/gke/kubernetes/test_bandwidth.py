from __future__ import annotations

from pathlib import Path

import pytest

from provision.errors import ClusterError
from provision.kinds.gke.kubernetes import bandwidth
from tests.kubernetes import samples

# The published result of two A3 Ultra nodes, among lines of other programs.
LOG = (Path(__file__).parent / "a3-ultra-all-gather.log").read_text(encoding="utf-8")


def test_the_published_table_is_read_to_the_last_digit() -> None:
    measured = bandwidth.parse(LOG)
    assert measured.average == 120.248
    assert measured.out_of_bounds == 0
    assert (measured.peak_out_of_place, measured.peak_in_place) == (328.85, 335.67)
    assert [row.size for row in measured.rows] == [1024 << step for step in range(24)]
    assert measured.networks == ("gIB",)
    assert measured.interfaces == {"w-0-0": 10, "test-w-0-1.test": 10}


def test_the_table_is_shown_without_the_lines_around_it() -> None:
    lines = bandwidth.parse(LOG).table.splitlines()
    assert len(lines) == 2 + 24 + 2
    assert lines[0].split()[:2] == ["#", "size"]
    assert lines[-1] == "# Avg bus bandwidth    : 120.248"


def test_the_published_table_passes_on_its_machine() -> None:
    verdict = bandwidth.judge(bandwidth.parse(LOG), samples.ULTRA, 2)
    assert verdict == "The bandwidth is as expected for a3-ultragpu-8g"


def test_more_than_two_nodes_are_judged_by_the_peak_of_two_and_not_by_the_average() -> None:
    measured = bandwidth.parse(LOG.replace(": 120.248", ": 80.0"))
    verdict = bandwidth.judge(measured, samples.ULTRA, 4)
    assert verdict.endswith("by the figures of 2: there are none for more")


def test_machines_without_a_reference_get_no_verdict() -> None:
    assert "No verdict" in bandwidth.judge(bandwidth.parse(LOG), samples.T4, 2)


def test_one_node_has_no_network_to_judge() -> None:
    slow = bandwidth.parse(LOG.replace(": 120.248", ": 12"))
    assert "No verdict" in bandwidth.judge(slow, samples.ULTRA, 1)


@pytest.mark.parametrize(
    ("published", "other", "words"),
    [
        (": 120.248", ": 100.0", "average bus bandwidth is 100 GB/s, 83%"),
        ("values : 0 OK", "values : 7 FAILED", "7 wrong values"),
        ("335.67      0", "335.67      3", "3 wrong values"),
        ("# Avg", "# nothing", "did not finish"),
    ],
)
def test_a_result_that_is_not_as_it_should_be_says_what_is_wrong(
    published: str, other: str, words: str
) -> None:
    assert published in LOG
    with pytest.raises(ClusterError, match=words):
        bandwidth.judge(bandwidth.parse(LOG.replace(published, other)), samples.ULTRA, 2)


@pytest.mark.parametrize(("column", "name"), [(7, "out of place"), (11, "in place")])
def test_a_peak_that_is_too_low_is_named(column: int, name: str) -> None:
    lines = [_halved(line, column) for line in LOG.splitlines()]
    with pytest.raises(ClusterError, match=f"peak bus bandwidth {name} is 1"):
        bandwidth.judge(bandwidth.parse("\n".join(lines)), samples.ULTRA, 2)


def _halved(line: str, column: int) -> str:
    words = line.split()
    if len(words) != 13 or not words[0].isdigit():
        return line
    words[column] = str(float(words[column]) / 2)
    return " ".join(words)


def test_few_interfaces_and_plain_sockets_are_diagnosed() -> None:
    log = LOG.replace("test-w-0-1.test 10", "test-w-0-1.test 2").replace("gIB", "Socket")
    slow = log.replace(": 120.248", ": 11.0")
    with pytest.raises(ClusterError) as caught:
        bandwidth.judge(bandwidth.parse(slow), samples.ULTRA, 2)
    said = " ".join(problem.what for problem in caught.value.problems)
    assert "test-w-0-1.test has 2 of 10" in said
    assert "plain sockets" in said


def test_a_slow_result_that_reaches_nine_tenths_passes() -> None:
    measured = bandwidth.parse(LOG.replace(": 120.248", ": 108.3"))
    assert "as expected" in bandwidth.judge(measured, samples.ULTRA, 2)
