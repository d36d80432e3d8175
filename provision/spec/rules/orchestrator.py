"""The rule that a setting needs an orchestrator for which it does something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings import spelling
from provision.settings.choices import Orchestrator
from provision.settings.model import Settings, kinds_of
from provision.spec.rules.findings import Case, Finding, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator


RULES: Final = Rules()

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
_INSTEAD: Final = {
    Orchestrator.GKE: _ON_GKE,
    Orchestrator.RAY: {
        "job_image": "on Ray, a job runs in the VMs' own Ray",
        "job_nodes": "on Ray, a job's tasks go to all VMs, and each says what it needs (num_gpus)",
    },
}


def _needs_of(case: Case, name: str) -> list[str]:
    """The orchestrators that a variable is for, by the name that the user wrote; empty for all."""
    spelled = spelling.SPELLINGS.get(case.name(name))
    if spelled and spelled.gke_only:
        return [Orchestrator.GKE.value]
    return kinds_of(name)


@RULES.on("orchestrator_type")
def _wrong_orchestrator(case: Case) -> Iterator[Finding]:
    orchestrator = case.settings.orchestrator_type
    for name in filter(case.on, Settings.model_fields):
        needs = _needs_of(case, name)
        if needs and orchestrator not in needs:
            instead = _INSTEAD.get(orchestrator, {}).get(name, "")
            yield Finding(
                code=Code.WITHOUT_EFFECT,
                field=name,
                what=f"has no effect with ORCHESTRATOR_TYPE={orchestrator}",
                why=f"it is only for ORCHESTRATOR_TYPE={' and '.join(needs)}"
                + (f"; {instead}" if instead else ""),
                fix=f"remove {case.name(name)}, or ORCHESTRATOR_TYPE={needs[0]}",
            )
