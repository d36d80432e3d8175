"""What pytest does here on top: parts of the tests, and a count of every layer at the end."""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from rehearsal.errors import ProviderNotUsable
from rehearsal.provider import given
from tests import layers, real_provider

_LEFT_OUT: Final = "left_out_by_layer"
"""How a worker tells what it left out, which is what every other leaves out too."""
_FEW: Final = 3
"""Slow rows of one test that CI has all of; of more it has one in `_ONE_IN`."""
_ONE_IN: Final = 4
_ABOUT: Final = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="leave out what is marked as slow")
    parser.addoption("--rest", action="store_true", help="only what --quick leaves out")
    parser.addoption("--every", action="store_true", help="what CI has but a sample of, too")
    parser.addoption("--goldens", action="store_true", help="only what compares with a golden")
    parser.addoption(
        "--provider", type=Path, help="run rehearsals with this google provider, not the stand-in"
    )
    parser.addoption("--counts", type=Path, help="write what each layer ran into this file")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "slow(sibling): left to `make test-all`; a cheaper test in `make test`, its sibling,"
        " would catch the same mistake",
    )
    config.addinivalue_line(
        "markers", "every: a cell of a product of which CI has a sample; left to `make test-every`"
    )
    config.pluginmanager.register(_Selection(config), "selection of tests")
    if (file := config.getoption("--provider")) and not hasattr(config, "workerinput"):
        _use(file, config)
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Counts(config), "counts of layers")


def _use(file: Path, config: pytest.Config) -> None:
    """Let every rehearsal run a google provider from outside; workers inherit that."""
    folder = Path(tempfile.mkdtemp(prefix="provider-"))
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    try:
        found = given.check(file.expanduser().absolute(), folder)
    except ProviderNotUsable as error:
        raise pytest.UsageError(f"{error.what}: {error.why}; {error.fix}") from error
    before = os.environ.get(given.VARIABLE)
    os.environ[given.VARIABLE] = str(found.binary)
    config.add_cleanup(lambda: _restore(before))
    config.stash[_ABOUT] = found.about


def _restore(before: str | None) -> None:
    os.environ.pop(given.VARIABLE)
    if before is not None:
        os.environ[given.VARIABLE] = before


def pytest_report_header(config: pytest.Config) -> str | None:
    about = config.stash.get(_ABOUT, "")
    return f"google provider: {about}" if about else None


def unsound(marks: Sequence[tuple[str, str | None]]) -> list[str]:
    """What is wrong with the siblings of slow tests.

    `marks`: of each test its node id, and its sibling's if it is slow ("" where it names none). A
    sibling with cases needs one that is not slow; in a file that is not among them it is not looked
    for.
    """
    files = {_file(node) for node, _ in marks}
    quick = {node for node, sibling in marks if sibling is None}
    quick |= {node.partition("[")[0] for node in quick}
    wrong = []
    for node, sibling in marks:
        if sibling == "":
            wrong.append(f"{node} is slow and names no sibling")
        elif sibling is not None and _file(sibling) in files and sibling not in quick:
            wrong.append(f"{node} is slow, and its sibling {sibling} is no test of `make test`")
    return wrong


def _file(node: str) -> str:
    return node.partition("::")[0]


def _sibling(item: pytest.Item) -> str | None:
    mark = item.get_closest_marker("slow")
    if mark is None:
        return None
    named = str(mark.kwargs.get("sibling", ""))
    return _file(item.nodeid) + named if named.startswith("::") else named


def _is_quick(item: pytest.Item) -> bool:
    layer = layers.of(item.path)
    return layer is not None and layer.quick and _sibling(item) is None


def leave_rows_out(items: Iterable[pytest.Item]) -> None:
    """Mark all rows of a test but the first as slow, where it is cheaper to try all at the end.

    Each row of a whole run takes seconds, and the first of them shows most mistakes. Where somebody
    has marked rows by hand, that stays.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        layer = _layer(item)
        if layer is not None and layer.one_row and hasattr(item, "callspec"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, rows in tests.items():
        if all(_sibling(row) is None for row in rows):
            for row in rows[1:]:
                row.add_marker(pytest.mark.slow.with_args(sibling=name))


def leave_cells_out(items: Iterable[pytest.Item]) -> None:
    """Leave three of four slow rows of a test with many to `make test-every`.

    Where somebody has chosen the rows that CI has, that stays.
    """
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        layer = _layer(item)
        if layer is not None and layer.quick and _sibling(item):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for rows in tests.values():
        if len(rows) > _FEW and not any(row.get_closest_marker("every") for row in rows):
            for number, row in enumerate(rows):
                if number % _ONE_IN:
                    row.add_marker(pytest.mark.every)


class _Selection:
    """Leaves out what is not in the part of the tests that is asked for."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left_out: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        leave_rows_out(items)
        leave_cells_out(items)
        whole = not any("::" in argument for argument in self._config.args)
        if whole and (wrong := unsound([(it.nodeid, _sibling(it)) for it in items])):
            raise pytest.UsageError("\n".join(wrong))
        every = self._config.getoption("--every") or not whole
        wanted = [item for item in items if every or not item.get_closest_marker("every")]
        kept = [item for item in wanted if self._is_wanted(item)]
        chosen = set(kept)
        out = [item for item in items if item not in chosen]
        self._left_out.update(it.name for it in map(_layer, out) if it)
        self._config.hook.pytest_deselected(items=out)
        items[:] = kept

    def _is_wanted(self, item: pytest.Item) -> bool:
        option = self._config.getoption
        if option("--goldens") and "golden" not in getattr(item, "fixturenames", ()):
            return False
        if real_provider.is_left_out(item.nodeid):
            return False
        if option("--quick") or option("--rest"):
            return bool(_is_quick(item) is option("--quick"))
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        output: dict[str, Any] | None = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[_LEFT_OUT] = dict(self._left_out)
        elif counts := self._config.pluginmanager.get_plugin("counts of layers"):
            counts.leave_out(self._left_out)


def _layer(item: pytest.Item) -> layers.Layer | None:
    return layers.of(item.path)


class _Counts:
    """Counts what each layer ran, and fails a run in which a whole layer ran nothing."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._counts: dict[str, layers.Count] = {}
        self._bad: set[str] = set()

    def pytest_sessionstart(self) -> None:
        """Every layer that is asked for is in the table, whatever becomes of its tests."""
        for layer in self._asked():
            self._counts.setdefault(layer.name, layers.Count())

    def _asked(self) -> Iterable[layers.Layer]:
        """The layers whose whole folders are to be run."""
        if real_provider.in_use():
            wholes = (set(real_provider.CHOSEN), set(real_provider.SHORT))
            return [layers.BY_NAME["provider"]] if set(self._config.args) in wholes else []
        named = {(Path.cwd() / argument).resolve() for argument in self._config.args}
        return [it for it in layers.LAYERS if it.folder in named]

    def leave_out(self, numbers: dict[str, int]) -> None:
        """Take how many tests of each layer are not in this part."""
        for name, number in numbers.items():
            self._counts.setdefault(name, layers.Count()).left_out = number

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.leave_out(getattr(node, "workeroutput", {}).get(_LEFT_OUT, {}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        layer = layers.of(layers.TREE / _file(report.nodeid))
        if layer is None:
            return
        count = self._counts.setdefault(layer.name, layers.Count())
        count.seconds += report.duration
        if report.failed:
            # A test that passed may yet fail to clear away: it then counts once, as failed.
            count.passed -= report.when == "teardown" and report.nodeid not in self._bad
            count.failed += report.nodeid not in self._bad
            self._bad.add(report.nodeid)
        elif report.skipped:
            count.skipped += 1
        elif report.when == "call":
            count.passed += 1

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if path := self._config.getoption("--counts"):
            layers.write(path, self._counts)
        if self._silent() and session.exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        ):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _silent(self) -> list[str]:
        """Layers that were asked for and ran nothing; a part of one may be empty."""
        option = self._config.getoption
        if option("--collect-only") or option("--goldens"):
            return []
        return [
            it.name
            for it in self._asked()
            if not self._counts[it.name].passed
            and not (option("--rest") and it.quick and not self._counts[it.name].skipped)
        ]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._counts or self._config.getoption("--collect-only"):
            return
        terminalreporter.section("layers")
        for line in layers.table(self._counts):
            terminalreporter.write_line(line)
        for name in self._silent():
            terminalreporter.write_line(f"tests/{name} ran nothing: that is a failure", red=True)
