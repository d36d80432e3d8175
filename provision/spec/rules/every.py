"""The rules across settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import zones
from provision.settings.choices import Orchestrator
from provision.spec.rules import capacity, gke, machines, secrets, storage
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


# Where the Deep Learning VM images are, and were.
_NOTEBOOK_PROJECTS: Final = frozenset({"deeplearning-platform-release", "ml-images"})


def judge(case: Case) -> list[Finding]:
    """All that the rules have to say."""
    return [finding for rule in RULES for finding in rule.judge(case)]


def _region(case: Case) -> Iterator[Finding]:
    zone, region = case.settings.zone, case.settings.region
    if zones.region_of(zone) != region:
        yield Finding(
            field="region",
            what=f"does not contain the zone {zone}",
            why="the region is the zone without its last part",
            fix=f"REGION={zones.region_of(zone)}, or leave it out",
        )


def _unknown_zone(case: Case) -> Iterator[Finding]:
    zone = case.settings.zone
    region = zones.region_of(zone)
    if zone not in zones.ZONES[region]:
        yield Finding(
            field="zone",
            what="is not in this tool's list of zones",
            why=f"known in {region}: {', '.join(zones.ZONES[region])}; Google adds zones, so the"
            " online check decides",
            note=True,
        )


def _state_path(case: Case) -> Iterator[Finding]:
    if case.settings.terraform_gcs_path is None:
        yield Finding(
            field="terraform_gcs_path",
            what="is needed with a domain scoped project",
            why=f"the default bucket has the project's id in its name, and no bucket name can hold"
            f" {case.settings.project_id}",
            fix="TERRAFORM_GCS_PATH=gs://<an existing bucket>",
        )


def _one_image(case: Case) -> Iterator[Finding]:
    if case.asked("image_name") and case.asked("image_family_name"):
        yield Finding(
            field="image_family_name",
            what="stands next to IMAGE_NAME",
            why="an image is chosen by its name or by its family",
            fix="take IMAGE_NAME or IMAGE_FAMILY_NAME out",
        )


def _notebook(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.orchestrator_type is Orchestrator.GKE:
        return
    if not settings.enable_notebook:
        if case.on("show_proxy_url"):
            yield Finding(
                field="show_proxy_url",
                what="has nothing to show",
                why=f"{case.name('enable_notebook')} says that the VMs have no notebook",
                fix="SHOW_PROXY_URL=no, or ENABLE_NOTEBOOK=yes",
                note=True,
            )
    elif settings.image_project not in _NOTEBOOK_PROJECTS:
        yield Finding(
            field="enable_notebook",
            what=f"may have no effect with images of {settings.image_project}",
            why="the notebook is part of the Deep Learning VM images; where the image has none,"
            " its step at start-up is skipped",
            fix="ENABLE_NOTEBOOK=no, if your image has none",
            note=True,
        )


RULES: Final = (
    Rule(("region", "zone"), _region),
    Rule(("zone",), _unknown_zone),
    Rule(("project_id", "terraform_gcs_path"), _state_path),
    Rule((), _one_image),
    *machines.RULES,
    *capacity.RULES,
    *storage.RULES,
    *secrets.RULES,
    Rule(
        ("enable_notebook", "show_proxy_url", "image_project", "orchestrator_type"),
        _notebook,
    ),
    *gke.RULES,
)
"""Every rule across settings, in the order in which a reader meets them."""
