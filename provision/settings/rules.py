"""The rules across settings, and the features that this version does not have yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import places
from provision.settings import capacity_rules, gke_rules, machine_rules
from provision.settings.choices import Orchestrator
from provision.settings.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, kw_only=True)
class NotYet:
    """A feature that this version does not have.

    Attributes:
        field: The field that asks for it.
        feature: Its name, as the reader knows it.
        wants: Whether a value asks for it.
        instead: What to write to go on without it.
        by_default: Whether the default asks for it too, which is worth a note.
    """

    field: str
    feature: str
    wants: Callable[[Any], bool] = bool
    instead: str = ""
    by_default: bool = False


def _always(_value: object) -> bool:
    return True


NOT_YET: Final = (
    NotYet(
        field="orchestrator_type",
        feature="Ray clusters",
        wants=lambda value: value is Orchestrator.RAY,
        instead="ORCHESTRATOR_TYPE=none",
    ),
    NotYet(
        field="orchestrator_type",
        feature="GKE clusters",
        wants=lambda value: value is Orchestrator.GKE,
        instead="ORCHESTRATOR_TYPE=none",
    ),
    NotYet(field="gcs_mount_list", feature="mounted buckets"),
    NotYet(field="nfs_fileshare_list", feature="Filestore shares"),
    NotYet(field="startup_command", feature="a command at start-up"),
    NotYet(field="vm_localfile_dest_path", feature="a copied folder", wants=_always),
    NotYet(field="enable_flex_start", feature="flex start"),
    NotYet(field="enable_queued_provisioning", feature="queued provisioning"),
    NotYet(field="max_run_duration", feature="a limited run time"),
    NotYet(field="enable_spot", feature="spot machines"),
    NotYet(field="reservation_name", feature="reservations"),
    NotYet(field="enable_compact_placement", feature="compact placement"),
    NotYet(
        field="disable_ops_agent",
        feature="the Ops Agent",
        wants=lambda value: value is False,
        instead="DISABLE_OPS_AGENT=true",
        by_default=True,
    ),
    NotYet(
        field="enable_notebook",
        feature="notebooks on the VMs",
        instead="ENABLE_NOTEBOOK=no",
        by_default=True,
    ),
    NotYet(field="show_proxy_url", feature="notebooks' proxy URLs", instead="SHOW_PROXY_URL=no"),
)
"""What is refused where somebody asks for it, and noted where only a default does."""


def judge(case: Case) -> list[Finding]:
    """All that the rules and the table of absent features have to say."""
    found = [finding for rule in RULES for finding in rule.judge(case)]
    told = {finding.field for finding in found if not finding.note}
    return found + [
        finding
        for absent in NOT_YET
        # What breaks a rule has to change anyway; that is enough to read for one setting.
        if absent.field not in told | case.bad
        for finding in _absent(absent, case)
    ]


def _absent(absent: NotYet, case: Case) -> Iterator[Finding]:
    if not absent.wants(case.value(absent.field)):
        return
    if case.asked(absent.field):
        yield Finding(
            field=absent.field,
            what=f"asks for {absent.feature}, which this version does not have yet",
            why="it is refused rather than left out without a word",
            fix=absent.instead or f"take {case.name(absent.field)} out",
        )
    elif absent.by_default and case.settings.orchestrator_type is not Orchestrator.GKE:
        yield Finding(
            field=absent.field,
            what=f"asks by default for {absent.feature}, which this version does not have yet",
            why="it is left out",
            fix=f"{absent.instead} to say so",
            note=True,
        )


def _region(case: Case) -> Iterator[Finding]:
    zone, region = case.settings.zone, case.settings.region
    if places.region_of(zone) != region:
        yield Finding(
            field="region",
            what=f"does not contain the zone {zone}",
            why="the region is the zone without its last part",
            fix=f"REGION={places.region_of(zone)}, or leave it out",
        )


def _unknown_zone(case: Case) -> Iterator[Finding]:
    zone = case.settings.zone
    region = places.region_of(zone)
    if zone not in places.ZONES[region]:
        yield Finding(
            field="zone",
            what="is not in this tool's list of zones",
            why=f"known in {region}: {', '.join(places.ZONES[region])}; Google adds zones, so the"
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


def _mount_paths(case: Case) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name in ("gcs_mount_list", "nfs_fileshare_list"):
        for mounted in case.value(name) or ():
            if mounted.path in seen:
                also = "" if seen[mounted.path] == name else f", in {case.name(seen[mounted.path])}"
                yield Finding(
                    field=name,
                    what=f"mounts {mounted.path} twice{also}",
                    why="a path holds one mount",
                    fix=f"another path, such as {mounted.path}-2",
                )
            seen.setdefault(mounted.path, name)


RULES: Final = (
    Rule(("region", "zone"), _region),
    Rule(("zone",), _unknown_zone),
    Rule(("project_id", "terraform_gcs_path"), _state_path),
    Rule((), _one_image),
    *machine_rules.RULES,
    *capacity_rules.RULES,
    Rule((), _mount_paths),
    *gke_rules.RULES,
)
"""Every rule across settings, in the order in which a reader meets them."""
