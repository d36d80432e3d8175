"""The layers of tests: none is forgotten, none is empty in silence, and the Makefile has each."""

import re
import subprocess
import sys

import pytest

from tests import layers, real_provider
from tests.layers import LAYERS, Count, Part
from tests.running import ran

SAMPLED = "tests/runs/test_any_zone.py::test_a_cluster_goes_from_zone_to_zone_until_one_has_it"
MAKEFILE = (layers.TREE / "Makefile").read_text(encoding="utf-8")


def _folders_with_tests() -> set[str]:
    return {
        path.relative_to(layers.TREE / "tests").parts[0]
        for path in (layers.TREE / "tests").rglob("test_*.py")
    }


def test_every_folder_of_tests_is_a_layer() -> None:
    assert _folders_with_tests() == {it.name for it in LAYERS if not it.again}


def test_the_makefile_has_a_target_for_every_layer() -> None:
    names = re.search(r"^NAMES := (.*)$", MAKEFILE, re.MULTILINE)
    assert names is not None
    assert names[1].split() == [it.name for it in LAYERS]
    for it in LAYERS:
        assert f"\ntest-{it.name}: ## {it.about}" in MAKEFILE


def test_quick_has_every_layer_that_needs_no_more_than_python_and_terraform() -> None:
    wanted, part = layers.chosen("quick")
    assert part is Part.QUICK
    assert [it.name for it in wanted] == [
        *("unit", "contract", "terraform", "rehearsal", "runs", "chaos")
    ]


@pytest.mark.parametrize("name", ["rest", "all"])
def test_rest_and_all_start_every_layer_once(name: str) -> None:
    starts = layers.commands(*layers.chosen(name), 2)
    named = [word for start in starts for word in start if word.startswith("tests/")]
    assert sorted(named) == sorted(f"tests/{it.name}" for it in LAYERS if not it.again)


@pytest.mark.parametrize("name", ["rest", "all", "provider"])
def test_a_provider_from_outside_is_a_start_of_its_own_with_whole_tests(name: str) -> None:
    (start,) = [
        it for it in layers.commands(*layers.chosen(name), 2, "FILE") if "--provider=FILE" in it
    ]
    assert [word for word in start if word.startswith("tests/")] == list(real_provider.CHOSEN)
    assert not {"--quick", "--rest"} & set(start)


def test_a_provider_from_outside_has_a_short_part_of_tests_that_there_are() -> None:
    wanted = layers.chosen("provider")
    (start,) = layers.commands(*wanted, 2, "FILE", short=True)
    assert [word for word in start if word.startswith("tests/")] == list(real_provider.SHORT)
    assert {it.partition("::")[0] for it in real_provider.SHORT} <= set(real_provider.CHOSEN)
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *real_provider.SHORT]
    done = ran(command, cwd=layers.TREE)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_whole_run_that_a_provider_from_outside_is_spared_exists() -> None:
    for it in real_provider.LEFT_OUT:
        file, _, test = it.partition("::")
        text = (layers.TREE / file).read_text(encoding="utf-8")
        assert f"def {test or 'test_'}" in text, it
    assert "tests/runs/test_moves.py" in real_provider.CHOSEN


def test_quick_and_rest_together_are_all() -> None:
    quick = layers.commands(*layers.chosen("quick"), 2)
    rest = layers.commands(*layers.chosen("rest"), 2)
    assert all("--quick" in start for start in quick)
    assert all("--rest" in start for start in rest)
    for start in layers.commands(*layers.chosen("all"), 2):
        assert not {"--quick", "--rest"} & set(start)


def test_without_a_provider_its_layer_says_how_to_give_one_and_fails(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert layers.run("provider", 2, []) == 2
    said = capsys.readouterr().err
    assert "make test-provider PROVIDER=/folder/terraform-provider-google_v7.45.0_x5" in said


def test_a_layer_that_fails_keeps_no_other_from_being_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ends, started = iter([3, 0, 1]), []

    def run(argv: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        started.append(argv[-1])
        return subprocess.CompletedProcess(argv, next(ends))

    monkeypatch.setattr(layers, "commands", lambda *_, **__: [["one"], ["two"], ["three"]])
    monkeypatch.setattr(subprocess, "run", run)
    assert layers.run("rest", 2, []) == 3
    assert started == ["one", "two", "three"]


def test_the_table_names_what_did_not_run() -> None:
    lines = layers.table({"unit": Count(2, 0, 0, 0, 1)}, {"provider": "a binary"})
    assert lines[2].split() == ["provider", "NOT", "RUN:", "it", "needs", "a", "binary"]
    assert lines[3].split()[0] == "together"


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("terraform-provider-google_v7.45.0_x5", "there is no such file"),
        ("Makefile", "its name has to be terraform-provider-google_v7.45.0_x5"),
    ],
)
def test_a_provider_that_is_none_is_refused_before_anything_is_run(file: str, why: str) -> None:
    command = [sys.executable, "-m", "pytest", f"--provider={file}", "tests/contract"]
    done = ran(command, cwd=layers.TREE)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert why in done.stderr


def test_the_table_sums_up() -> None:
    said = layers.table({"unit": Count(2, 1, 0, 3, 1.5), "runs": Count(1, 0, 4, 0, 60.0)})
    assert [line.split() for line in said[1:]] == [
        ["unit", "2", "1", "0", "3", "2"],
        ["runs", "1", "0", "4", "0", "60"],
        ["together", "3", "1", "4", "3", "62"],
    ]


def test_a_layer_that_ran_nothing_is_a_failure_that_says_so() -> None:
    command = [sys.executable, "-m", "pytest", "tests/chaos", "-k", "there_is_no_such_test"]
    done = ran(command, cwd=layers.TREE)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "tests/chaos ran nothing: that is a failure" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "has"),
    [
        (("--rest", "tests/runs/test_any_zone.py"), False),
        (("--rest", "--every", "tests/runs/test_any_zone.py"), True),
        ((f"{SAMPLED}[quota-met-all-multi]",), True),
    ],
)
def test_a_cell_beyond_the_sample_is_for_who_asks(arguments: tuple[str, ...], *, has: bool) -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    done = ran(command, cwd=layers.TREE)
    assert ("[quota-met-all-multi]" in done.stdout) is has
    assert "[quota-met-all-flex]" in done.stdout or "::" in arguments[0]
