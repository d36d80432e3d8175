"""Who may use a subnetwork of others: these credentials, and Google's account that makes VMs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Problem
from provision.preflight.check import CheckNote
from provision.preflight.existing import USER, seen, unseen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.google.api import GoogleApiError
    from provision.preflight.check import Finding
    from provision.preflight.existing import Case

_HOST_AGENT: Final = "roles/container.hostServiceAgentUser"
_USE: Final = "compute.subnetworks.use"
_USE_EXTERNAL: Final = "compute.subnetworks.useExternalIp"
# Google's roles that have compute.subnetworks.use; a role of somebody's own may have it, too.
_USING: Final = frozenset(
    {
        USER,
        "roles/compute.admin",
        "roles/compute.instanceAdmin.v1",
        "roles/compute.networkAdmin",
        "roles/editor",
        "roles/owner",
    }
)


def of_caller(case: Case) -> Iterator[Finding]:
    """Check that these credentials may use the subnetwork."""
    needed = [_USE, *([_USE_EXTERNAL] if any(it.external_ip for it in case.ctx.spec.pools) else [])]
    held, refused = seen(lambda: case.ctx.answers.held_on(case.it.path, needed))
    if refused is not None:
        yield unseen(case, "what these credentials may do on the subnetwork", refused)
        return
    lacking = sorted(set(needed) - set(held))
    if lacking:
        yield Problem(
            code=Code.PERMISSION_MISSING,
            setting=case.setting,
            what=f"these credentials may not use the subnetwork {case.it.name} of"
            f" {case.it.project}",
            why=f"they lack {', '.join(lacking)} on it",
            fix=case.granting("<YOU>"),
        )


def of_google(case: Case) -> Iterator[Finding]:
    """Check that Google's accounts which make machines may use the subnetwork."""
    number = case.ctx.answers.project_number(case.ctx.project)
    policies = [
        seen(lambda: case.ctx.answers.policy_of_subnetwork(case.it.path)),
        seen(lambda: case.ctx.answers.policy_of_project(case.it.project)),
    ]
    bindings = [one for policy, _ in policies if policy for one in policy.get("bindings", [])]
    refused = next((error for _, error in policies if error), None)
    is_gke = case.ctx.spec.has_control_plane
    robot = f"service-{number}@container-engine-robot.iam.gserviceaccount.com"
    for agent in (f"{number}@cloudservices.gserviceaccount.com", *([robot] if is_gke else [])):
        if not any(lets(one, agent, _USING) for one in bindings):
            does = "GKE" if agent == robot else f"Google makes {case.ctx.project}'s machines"
            yield _lacking(case, agent, does, case.granting(f"serviceAccount:{agent}"), refused)
    if is_gke and not any(lets(one, robot, frozenset({_HOST_AGENT})) for one in bindings):
        grant = (
            f"ask an administrator of {case.it.project} to run:\ngcloud projects"
            f" add-iam-policy-binding {case.it.project} --member serviceAccount:{robot} --role"
            f" {_HOST_AGENT}"
        )
        yield _lacking(case, robot, f"GKE works in {case.it.project}", grant, policies[1][1])


def _lacking(
    case: Case, agent: str, does: str, grant: str, refused: GoogleApiError | None
) -> Finding:
    """That an account has no right, or a note where that may not be seen."""
    if refused is not None:
        return CheckNote(
            Problem(
                code=Code.NOT_CHECKED,
                setting=case.setting,
                what=f"could not see whether {agent} may use the subnetwork {case.it.name}",
                why=f"{does} as this account; {refused.message}",
                fix=f"if it may not, {grant}",
            )
        )
    return Problem(
        code=Code.PERMISSION_MISSING,
        setting=case.setting,
        what=f"{agent} may not use the subnetwork {case.it.name} of {case.it.project}",
        why=f"{does} as this account, which has no role for that there",
        fix=f"{grant}\nSKIP_CHECKS=subnetwork if a folder or the organization grants it",
    )


def lets(binding: Mapping[str, Any], agent: str, roles: frozenset[str]) -> bool:
    """Whether a binding may give an account one of these roles; a group may have it."""
    members = binding.get("members", [])
    has_it = f"serviceAccount:{agent}" in members or any(it.startswith("group:") for it in members)
    return has_it and (binding["role"] in roles or not binding["role"].startswith("roles/"))
