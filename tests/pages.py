"""Pages of reports for tests: the examples as they are planned, with what a run would add."""

import datetime as dt
from pathlib import Path
from typing import Any, Final

from provision.catalogue import prices
from provision.cost import estimate
from provision.documents.plan import Change, Checks, Count, Plan, Quota
from provision.documents.timeline import Stage, StageName, StageState
from provision.intake import load
from provision.kinds import registry
from provision.screens.page import Contents
from provision.spec import topology

EXAMPLES: Final = Path(__file__).parents[1] / "examples"
NAMES: Final = sorted(path.name for path in EXAMPLES.glob("*env.list"))
MADE: Final = dt.datetime(2026, 11, 22, 12, 0, tzinfo=dt.UTC)


def contents(name: str, action: str = "Plan", **more: Any) -> Contents:
    """What a run of an example has to tell."""
    loaded = load({"ACTION": action}, EXAMPLES / name)
    assert loaded.settings is not None
    kind = registry.of(loaded.settings)
    spec = kind.spec(loaded.settings)
    told: dict[str, Any] = {
        "action": action,
        "version": "1.0",
        "made": MADE,
        "topology": topology.of(spec),
        "cost": estimate.of(spec, prices.listed()),
        "plan": Plan(
            change=Change.NEW,
            topology=topology.of(spec),
            contents=kind.contents(spec),
            counts=(
                Count(noun="group", add=1, change=0, destroy=0),
                Count(noun="role", add=2, change=0, destroy=0),
            ),
            checks=Checks(
                made=14,
                skipped=(),
                seconds=1.1,
                permissions=31,
                apis=6,
                quotas=(Quota(metric="NVIDIA_A100_GPUS", limit=16, used=4, needed=2),),
            ),
        ),
        "notes": loaded.notes,
        "settings": loaded.effective,
    }
    if action == "Create":
        told |= {"timeline": timeline(), "seconds": 271.0}
        told["connection"] = {"shell": "gcloud compute ssh my-vm --zone us-central1-a"}
    return Contents(**told | more)


def timeline(last: StageState = StageState.DONE) -> tuple[Stage, ...]:
    """The stages of a Create of some minutes."""
    spans = (
        (StageName.CHECKS, 0, 2, "14 checks", StageState.DONE),
        (StageName.TERRAFORM, 2, 44, "6 of 6", StageState.DONE),
        (StageName.MACHINES, 44, 105, "1 of 1", StageState.DONE),
        (StageName.STARTUP, 105, 271, None, last),
    )
    return tuple(
        Stage(
            name=name,
            state=state,
            began=(MADE + dt.timedelta(seconds=begin)).isoformat(),
            ended=(MADE + dt.timedelta(seconds=end)).isoformat(),
            seconds=end - begin,
            words=words,
        )
        for name, begin, end, words, state in spans
    )
