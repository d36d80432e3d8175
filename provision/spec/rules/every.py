"""All rules between settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings import spelling
from provision.settings.choices import Orchestrator, PriceList, asking_for
from provision.settings.model import Settings, kinds_of
from provision.spec.rules import (
    capacity,
    gke,
    machines,
    networks,
    places,
    pools,
    software,
    storage,
)
from provision.spec.rules.findings import Case, Finding, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.settings.choices import Way

_SEVERAL: Final = 2
_PRICES, _KINDS = Rules(), Rules()
_CHOSEN_BY_GKE: Final = "GKE chooses the image of its nodes"
_ON_GKE: Final = {
    "image_name": _CHOSEN_BY_GKE,
    "image_family_name": _CHOSEN_BY_GKE,
    "image_project": _CHOSEN_BY_GKE,
    "enable_external_ip": "GKE's nodes never have external addresses here",
    "startup_command": "on GKE, a job runs a command (docs/how-to/gke.md)",
    "startup_restart": "on GKE, a job says how often its pods are made again (backoffLimit)",
    "vm_localfile_dest_path": "on GKE, files come in an image or a bucket (GCS_MOUNT_LIST)",
    "disable_ops_agent": "GKE has metrics and logs of its own",
}
"""VMs' setting -> what a GKE cluster has in its place."""
_WHOLE: Final = "a group of VMs runs one job at a time, on whole machines"
_NUM_GPUS: Final = "on Ray, a job's tasks go to all VMs, and each says what it needs (num_gpus)"
_INSTEAD: Final = {
    Orchestrator.NONE: {"job_gpus": _WHOLE, "job_array": _WHOLE},
    Orchestrator.GKE: _ON_GKE,
    Orchestrator.RAY: {
        "job_image": "on Ray, a job runs in the VMs' own Ray",
        "job_setup": "on Ray, packages are Ray's to install: ray.init(runtime_env={'pip': [...]})",
        "job_nodes": _NUM_GPUS,
        "job_gpus": _NUM_GPUS,
        "job_array": _NUM_GPUS,
    },
    Orchestrator.SLURM: {
        "job_image": "a container is made by root, and Slurm runs a job as a user who is not root",
        "job_queue": "Slurm has one queue, for all VMs",
        "job_priority": "Slurm has one queue, in the order in which jobs come",
    },
}


def judge(case: Case) -> list[Finding]:
    """The findings of all rules."""
    return [finding for rule in RULES for finding in rule.judge(case)]


def judge_ways(case: Case) -> tuple[Case, list[Finding]]:
    """The case of the way of CAPACITY that is tried first, and the findings.

    What keeps one way from being tried is a note, as long as there is another one.
    """
    ways = case.settings.capacity or ()
    if len(ways) < _SEVERAL:
        case = case.by(ways[0]) if ways else case
        return case, judge(case)
    judged = {way: judge(case.by(way)) for way in ways}
    against = {way: [it for it in found if not it.note] for way, found in judged.items()}
    usable = [way for way in ways if not against[way]]
    if not usable:
        every = list(dict.fromkeys(it for found in against.values() for it in found))
        common = [it for it in every if all(it in found for found in against.values())]
        return case.by(ways[0]), common or every
    first = case.by(usable[0])
    skipped = [
        Finding(
            code=Code.WITHOUT_EFFECT,
            field="capacity",
            what=f"goes without {way}: {_sentence(case.by(way), it)}",
            why=it.why,
            fix=it.fix,
            note=True,
        )
        for way, found in against.items()
        for it in found
    ]
    return first, judged[usable[0]] + skipped


def against(settings: Settings, way: Way) -> str:
    """What keeps a way of CAPACITY from being tried; "" for nothing."""
    case = Case(settings).by(way)
    return "; ".join(_sentence(case, it) for it in judge(case) if not it.note)


def _sentence(case: Case, finding: Finding) -> str:
    return f"{case.name(finding.field)} {finding.what}"


@_PRICES.on("prices", "max_hourly_cost", "max_cost")
def _limit_without_prices(case: Case) -> Iterator[Finding]:
    settings = case.settings
    for name in ("max_hourly_cost", "max_cost"):
        if case.value(name) is not None and settings.prices is PriceList.OFF:
            yield Finding(
                field=name,
                what=f"can't be kept with {case.name('prices')}=off",
                why="without prices nobody knows what the cluster costs",
                fix=f"PRICES=list, or remove {case.name(name)}",
            )


def _needs_of(case: Case, name: str) -> list[str]:
    """The orchestrators that a variable is for, by the name that the user wrote; empty for all."""
    spelled = spelling.SPELLINGS.get(case.name(name))
    if spelled and spelled.gke_only:
        return [Orchestrator.GKE.value]
    return kinds_of(name)


@_KINDS.on("orchestrator_type")
def _wrong_orchestrator(case: Case) -> Iterator[Finding]:
    orchestrator = case.settings.orchestrator_type
    for name in filter(case.on, Settings.model_fields):
        needs = _needs_of(case, name)
        if needs and orchestrator not in needs:
            instead = _INSTEAD.get(orchestrator, {}).get(name, "")
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field=name,
                what=f"has no effect with {case.settings.kind_words}",
                why=f"it is only for {asking_for(', '.join(needs))}"
                + (f"; {instead}" if instead else ""),
                fix=f"remove {case.name(name)}, or {asking_for(needs[0])}",
            )


RULES: Final = (
    *places.RULES,
    *_PRICES,
    *software.RULES,
    *machines.RULES,
    *networks.RULES,
    *capacity.RULES,
    *storage.RULES,
    *_KINDS,
    *pools.RULES,
    *gke.RULES,
)
"""All rules between settings, in the order of the settings."""
