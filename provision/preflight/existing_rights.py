"""Who may use a subnetwork of others: these credentials, and Google's account that makes VMs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Problem
from provision.preflight.check import CheckNote
from provision.preflight.existing import USER, seen, unseen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.preflight.check import Finding
    from provision.preflight.existing import Case

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
    needed = [_USE, *([_USE_EXTERNAL] if case.ctx.spec.group.external_ip else [])]
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
    """Check that Google's account which makes the VMs of groups may use the subnetwork."""
    number = case.ctx.answers.project_number(case.ctx.project)
    agent = f"{number}@cloudservices.gserviceaccount.com"
    policies = [
        seen(lambda: case.ctx.answers.policy_of_subnetwork(case.it.path)),
        seen(lambda: case.ctx.answers.policy_of_project(case.it.project)),
    ]
    bindings = [one for policy, _ in policies if policy for one in policy.get("bindings", [])]
    if any(_lets_use(one, agent) for one in bindings):
        return
    refused = next((error for _, error in policies if error), None)
    if refused is not None:
        yield CheckNote(
            Problem(
                code=Code.NOT_CHECKED,
                setting=case.setting,
                what=f"could not see whether {agent} may use the subnetwork"
                f" {case.it.name}; it makes the VMs of {case.ctx.project}'s groups",
                why=refused.message,
                fix=f"if it may not, {case.granting(f'serviceAccount:{agent}')}",
            )
        )
        return
    yield Problem(
        code=Code.PERMISSION_MISSING,
        setting=case.setting,
        what=f"{agent} may not use the subnetwork {case.it.name} of {case.it.project}",
        why=f"Google makes the VMs of {case.ctx.project}'s groups as this account, which has no"
        " role for that on the subnetwork or its project",
        fix=f"{case.granting(f'serviceAccount:{agent}')}\nSKIP_CHECKS=subnetwork if a folder or"
        " the organization grants it",
    )


def _lets_use(binding: Mapping[str, Any], agent: str) -> bool:
    """Whether a binding is one that may let an account use a subnetwork; a group may have it."""
    members = binding.get("members", [])
    has_it = f"serviceAccount:{agent}" in members or any(it.startswith("group:") for it in members)
    return has_it and (binding["role"] in _USING or not binding["role"].startswith("roles/"))
