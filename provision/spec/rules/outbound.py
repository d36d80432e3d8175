"""Rules about the way out: whom a proxy reaches, and what means nothing without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.settings.choices import Orchestrator
from provision.spec.outbound import Outbound
from provision.spec.rules.findings import Case, Finding, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


def _whom_it_reaches(case: Case) -> Iterator[Finding]:
    settings = case.settings
    if settings.https_proxy is None:
        return
    if settings.orchestrator_type is Orchestrator.GKE:
        yield Finding(
            code=Code.NOTE,
            field="https_proxy",
            what="is for this program and Terraform alone: nodes of GKE go out without it",
            why="GKE sets up their containerd, which pulls images; it takes no proxy",
            fix="IMAGE_MIRROR, where nodes reach no registry but Google's; JOB_ENV for jobs",
            note=True,
        )
    elif Outbound.of(settings).proxy is None:
        yield Finding(
            code=Code.NOTE,
            field="https_proxy",
            what="is on this machine, so that VMs go out without it",
            why="on a VM, that address is the VM itself",
            fix="https_proxy in lower case is for this program alone, or name a proxy of the"
            " VMs' network",
            note=True,
        )


def _nothing_to_go_around(case: Case) -> Iterator[Finding]:
    if case.settings.no_proxy and case.settings.https_proxy is None:
        yield Finding(
            code=Code.WITHOUT_EFFECT,
            field="no_proxy",
            what="has no effect without HTTPS_PROXY",
            fix="set HTTPS_PROXY, or remove it",
            note=True,
        )


RULES: Final = (
    Rule(("https_proxy", "orchestrator_type"), _whom_it_reaches),
    Rule(("https_proxy", "no_proxy"), _nothing_to_go_around),
)
