"""Whatever happens, what was made is removed and looked for."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smoke import program, steps
from smoke.costs import Prices
from smoke.program import Ended
from smoke.steps import Place, Step
from smoke.walk import Walk

PLACE = Place("my-project", "us-central1-a", "us-central1-b", "smk1a2b")
PRICES = Prices.of("us-central1")


class Bystander:
    """Google, as far as the smoke test asks itself."""

    def __init__(self, left: list[str] | None = None) -> None:
        self.buckets: set[str] = set()
        self._left = left or []

    def make_bucket(self, name: str) -> None:
        self.buckets.add(name)

    def remove_bucket(self, name: str) -> None:
        self.buckets.remove(name)

    def left(self) -> tuple[list[str], list[str]]:
        return self._left, []

    def run_job(self, _connection: Any, _seconds: float) -> str:
        return ""

    def preempt(self, _settings: Any, _seconds: float) -> str:
        return ""


@pytest.fixture
def walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Walk, list[str]]]:
    """Make a walk whose program does what a table says of "DEPLOYMENT ACTION"."""

    def make(
        said: dict[str, Any] | None = None, limit: float = 10, left: list[str] | None = None
    ) -> tuple[Walk, list[str]]:
        done: list[str] = []

        def run(step: Step, _environ: Any, _folder: Path) -> Ended:
            done.append(f"{step.deployment} {step.action}")
            what = (said or {}).get(done[-1], "")
            if isinstance(what, BaseException):
                raise what
            older = [{"name": "vm"}] * (step.older if what != "none older" else 0)
            document = {"connection": {"jobs": {}}, "out_of_date": older}
            what = "" if what == "none older" else what
            return Ended(6 if what else 0, 1.0, document, what)

        monkeypatch.setattr(program, "run", run)
        google: Any = Bystander(left)
        return Walk(PLACE, PRICES, limit, {}, tmp_path, google, lambda _: None), done

    return make


def test_all_goes_well_and_nothing_is_left(walk: Callable[..., Any]) -> None:
    made, done = walk()
    made.take(steps.plan(PLACE))
    assert made.done
    assert [it for it in done if "Destroy" in it] == [f"{it} Destroy" for it in steps.DEPLOYMENTS]
    assert made.google.buckets == set()


def test_what_fails_is_removed_and_the_next_one_tried(walk: Callable[..., Any]) -> None:
    made, done = walk({"vm Create": "no", "gke Status": "no"})
    made.take(steps.plan(PLACE, frozenset({"vm", "ray", "gke"})))
    assert done[:3] == ["vm Create", "vm Destroy", "ray Create"]
    assert done[-3:] == ["gke Create", "gke Status", "gke Destroy"]
    assert not made.done


def test_a_vm_that_should_be_older_than_its_settings_and_is_not_is_trouble(
    walk: Callable[..., Any],
) -> None:
    made, done = walk({"held Create": "none older"})
    made.take(steps.plan(PLACE, frozenset({"held"})))
    assert done == ["held Create", "held Create", "held Destroy"]
    assert [it.trouble for it in made.outcomes][1] == "0 VMs are of older settings, not 1"


def test_ctrl_c_removes_what_is_there(walk: Callable[..., Any]) -> None:
    made, done = walk({"ray Test": KeyboardInterrupt()})
    made.take(steps.plan(PLACE))
    assert done[-2:] == ["ray Test", "ray Destroy"]
    assert (made.stopped, made.google.buckets) == ("interrupted", set())
    assert made.outcomes[-2].trouble == "interrupted"


def test_the_state_stays_with_what_could_not_be_removed(walk: Callable[..., Any]) -> None:
    made, _ = walk({"vm Create": "no", "vm Destroy": "no"}, left=["VMs: smk1a2b-vm-x"])
    made.take(steps.plan(PLACE, frozenset({"vm"})))
    assert made.google.buckets == {PLACE.state_bucket, PLACE.data_bucket}
    assert made.left == ["VMs: smk1a2b-vm-x"]
    assert not made.done


def test_a_step_that_could_cost_too_much_is_not_begun(walk: Callable[..., Any]) -> None:
    made, done = walk(limit=0.5)
    made.take(steps.plan(PLACE))
    assert done == []
    assert "before held: Create" in made.stopped
    assert "COST_LIMIT is 0.50" in made.stopped
    assert made.google.buckets == set()


SLEEPER = """\
import signal, sys, time
def end(*_):
    print('{"problems": [{"what": "ended in order"}]}')
    sys.exit(130)
signal.signal(signal.SIGINT, end)
time.sleep(60)
"""


def test_a_step_that_takes_too_long_is_stopped_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "sleeper.py"
    script.write_text(SLEEPER)
    monkeypatch.setattr(program, "_ENTRYPOINT", script)
    step = Step("vm", "Create", "Create", {}, minutes=0.05, billed={})
    ended = program.run(step, {"PATH": str(Path(sys.executable).parent)}, tmp_path)
    assert ended.code == 128 + signal.SIGINT
    assert ended.trouble == "it was stopped after 0.05 minutes; ended in order"
