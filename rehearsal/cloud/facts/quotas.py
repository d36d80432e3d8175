"""Quotas that are not of GPUs: how much of what a project may have, and how Google calls it."""

from collections.abc import Mapping
from typing import Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("quotas")
SMALL: Final = "small-quotas"  # the scenario in which a project has what a new one has

OF_REGION: Final = tuple(_FACTS["of_region"])  # the quotas of each region
OF_DISKS: Final[Mapping[str, str]] = _FACTS["of_disks"]
"""Type of a disk -> the quota that its GB count against."""
OF_FAMILY: Final[Mapping[str, Mapping[str, int]]] = _FACTS["of_family"]["families"]
"""Family of machines -> how many of its vCPUs a project may have in a region."""
ID_OF_FAMILY: Final[str] = _FACTS["of_family"]["id"]
LOCAL_SSD: Final = "LOCAL_SSD_TOTAL_GB"
PREEMPTIBLE_LOCAL_SSD: Final = "PREEMPTIBLE_LOCAL_SSD_GB"
LONGEST_PREEMPTIBLE_RUN: Final[int] = _FACTS["longest_run_on_preemptible_quota_seconds"]
"""How long a VM on demand may run, at most, to count against either quota, in seconds."""
SHARES: Final[Mapping[str, str]] = {tier: it["id"] for tier, it in _FACTS["of_shares"].items()}
"""Filestore's tier -> the ID of its quota in each region."""


def limit(metric: str, scenarios: frozenset[str]) -> float:
    """How much a project may have of a quota of Compute Engine."""
    limits = {**_FACTS["of_project"], **_FACTS["of_region"]}[metric]
    return float(limits["small" if SMALL in scenarios else "usual"])


def limit_of_family(family: str, scenarios: frozenset[str]) -> float:
    """How many vCPUs of a family of machines a project may have in a region."""
    return float(OF_FAMILY[family]["small" if SMALL in scenarios else "usual"])


def limit_of_shares(tier: str, scenarios: frozenset[str]) -> int:
    """How many GiB of a tier of Filestore a project may have in a region."""
    return int(_FACTS["of_shares"][tier]["small" if SMALL in scenarios else "usual"])
