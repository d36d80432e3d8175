"""All rules between settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import zones
from provision.codes import Code
from provision.settings import candidates
from provision.settings.choices import Orchestrator, PriceList
from provision.spec.rules import (
    capacity,
    command,
    gke,
    images,
    machines,
    networks,
    offers,
    orchestrator,
    outbound,
    ray,
    secrets,
    storage,
)
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.settings.choices import Way
    from provision.settings.model import Settings


_SEVERAL: Final = 2
# The projects that have, or had, the Deep Learning VM images.
_NOTEBOOK_PROJECTS: Final = frozenset({"deeplearning-platform-release", "ml-images"})


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


def _region(case: Case) -> Iterator[Finding]:
    region, named = case.settings.region, case.settings.places
    outside = [zone for zone in named.zones if zones.region_of(zone) != region]
    if outside and case.asked("region"):
        there = zones.region_of(outside[0])
        yield Finding(
            field="region",
            what=f"does not contain the zone {outside[0]}",
            why=f"the zone is in {there}",
            fix="remove REGION" if named.is_several else f"REGION={there}, or remove REGION",
        )


def _several_zones(case: Case) -> Iterator[Finding]:
    settings, named = case.settings, case.settings.places
    if not named.is_several or settings.orchestrator_type is not Orchestrator.GKE:
        return
    region = zones.region_of(settings.zone)
    beyond = sorted({zones.region_of(it) for it in named.zones} - {region})
    if beyond:
        inside = [it for it in named.zones if zones.region_of(it) == region]
        other = f"ZONE={','.join(inside)}"
        if named.text in candidates.ANYWHERE:
            other = f"REGION={region}, or ZONE={region}-*"
        yield Finding(
            field="zone",
            what=f"names zones of {region} and of {words.listed(beyond)}",
            why="a GKE cluster is in one region, and only its GPU pools go from zone to zone",
            fix=other,
        )
    fixed = [pool for pool in settings.gke_node_pools or () if pool.zone]
    if fixed and len(fixed) == len(settings.gke_node_pools or ()):
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="zone",
            what="names several zones, and each pool of GKE_NODE_POOLS has its own",
            why="Create goes from zone to zone with the pools that name none",
            fix=f"ZONE={settings.zone}, or leave zone out of the pools that may be in any of them",
        )


def _state_path(case: Case) -> Iterator[Finding]:
    if case.settings.terraform_gcs_path is None:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="terraform_gcs_path",
            what="is required for a domain-scoped project",
            why=f"the default bucket has the project ID in its name, and a bucket name can't"
            f" contain {case.settings.project_id}",
            fix="TERRAFORM_GCS_PATH=gs://<an existing bucket>",
        )


def _limit_without_prices(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.max_hourly_cost is not None and settings.prices is PriceList.OFF:
        yield Finding(
            field="max_hourly_cost",
            what=f"can't be kept with {case.name('prices')}=off",
            why="without prices nobody knows what the cluster costs",
            fix="PRICES=list, or remove MAX_HOURLY_COST",
        )


def _notebook(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.orchestrator_type is Orchestrator.GKE:
        return
    if not settings.enable_notebook:
        if case.on("show_proxy_url"):
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field="show_proxy_url",
                what="has no effect",
                why=f"with {case.name('enable_notebook')}=no the VMs have no notebook",
                fix="SHOW_PROXY_URL=no, or ENABLE_NOTEBOOK=yes",
                note=True,
            )
    elif settings.image_project not in _NOTEBOOK_PROJECTS and (
        # Who asked for none does not miss it, and the start-up says that it skips it.
        case.on("enable_notebook") or case.on("show_proxy_url")
    ):
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="enable_notebook",
            what=f"may have no effect with images of {settings.image_project}",
            why="the notebook is part of the Deep Learning VM images; if an image has none, the"
            " start-up skips it",
            fix="ENABLE_NOTEBOOK=no, if your image has none",
            note=True,
        )


RULES: Final = (
    Rule(("region", "zone"), _region),
    Rule(("zone", "orchestrator_type"), _several_zones),
    *offers.RULES,
    Rule(("project_id", "terraform_gcs_path"), _state_path),
    Rule(("prices", "max_hourly_cost"), _limit_without_prices),
    *images.RULES,
    *machines.RULES,
    *networks.RULES,
    *capacity.RULES,
    *storage.RULES,
    *command.RULES,
    *outbound.RULES,
    *secrets.RULES,
    Rule(
        ("enable_notebook", "show_proxy_url", "image_project", "orchestrator_type"),
        _notebook,
    ),
    *orchestrator.RULES,
    *ray.RULES,
    *gke.RULES,
)
"""All rules between settings, in the order of the settings."""
