"""What has to hold for a Ray cluster on VMs, of which whoever reaches it could run programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings.choices import Orchestrator
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST_WITH_TOKENS: Final = (2, 52)
"""Ray's notes of 2.52.0: the first version that asks its clients for a token."""


def _knows_no_token(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.orchestrator_type is not Orchestrator.RAY:
        return
    version = tuple(int(part) for part in settings.ray_version.split(".")[:2])
    if version < _FIRST_WITH_TOKENS:
        first = ".".join(map(str, _FIRST_WITH_TOKENS))
        yield Finding(
            field="ray_version",
            what=f"is older than {first}",
            why="such a Ray asks nobody for a token, so that every machine of the network could"
            " run programs on the VMs",
            fix=f"RAY_VERSION={first}.0 or newer, or remove {case.name('ray_version')}",
        )


def _account_of_many(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.orchestrator_type is Orchestrator.RAY and settings.service_account == "default":
        yield Finding(
            code=Code.NOTE,
            field="service_account",
            what="leaves Ray's ports open to the network: its token alone protects them",
            why="firewall rules close them to all but VMs of the cluster's own account, and many"
            " others may act as the default one; Ray's metrics need no token",
            fix="SERVICE_ACCOUNT=dedicated",
            note=True,
        )


RULES: Final = (
    Rule(("orchestrator_type", "ray_version"), _knows_no_token),
    Rule(("orchestrator_type", "service_account"), _account_of_many),
)
