"""The oldest versions of Kubernetes Engine that have nodes of a machine type."""

import re

from rehearsal.cloud.facts import machines


def numbers(version: str) -> tuple[int, ...]:
    """A version, or the beginning of one, for comparison."""
    return tuple(map(int, re.findall(r"\d+", version)))


def lacking(machine: str, version: str) -> str | None:
    """The version that a cluster lacks for nodes of a machine type ("a4-highgpu-8g"), or None."""
    oldest = machines.oldest_gke(machine)
    if not oldest:
        return None
    minor = (it for it in oldest if numbers(it)[:2] == numbers(version)[:2])
    least = next(minor, oldest[0])
    return least if numbers(version) < numbers(least) else None
