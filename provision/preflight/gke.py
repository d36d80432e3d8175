"""The check of the GKE version, and what a beginning of one stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.catalogue import gke_versions
from provision.errors import Problem
from provision.google.api import Service
from provision.preflight.case import Settled
from provision.settings.choices import ReleaseChannel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.case import Case, Finding


def version(case: Case) -> Iterator[Finding]:
    """GKE offers the version that is asked for; its own choice has the features that are."""
    settings = case.settings
    path = f"projects/{case.project}/locations/{settings.region}/serverConfig"
    config = case.answers.get(Service.CONTAINER, path)
    offered, usual = _offer(config, settings.gke_release_channel)
    asked = settings.gke_version
    before = case.record.gke_version if case.record else None
    settled = gke_versions.settle(asked, offered, before)
    if settled is not None:
        yield Settled(gke_version=settled)
    elif asked is not None:
        channel = settings.gke_release_channel
        yield Problem(
            setting="GKE_VERSION",
            what=f"GKE has no version {asked} in {settings.region}",
            why=f"the channel {channel} has {', '.join(offered)}",
            fix=f"GKE_VERSION={offered[0]}, or take it out" if offered else "take it out",
        )
    else:
        yield from _floors(case, usual)


def _offer(config: dict[str, Any], channel: ReleaseChannel) -> tuple[list[str], str]:
    """The versions that a channel has, the newest first as Google sorts them, and the usual one."""
    if channel is not ReleaseChannel.UNSPECIFIED:
        for one in config.get("channels", []):
            if one["channel"] == channel:
                return list(one.get("validVersions", [])), one.get("defaultVersion", "")
    return list(config.get("validMasterVersions", [])), config.get("defaultClusterVersion", "")


def _floors(case: Case, usual: str) -> Iterator[Finding]:
    floor = gke_versions.FLEX_START
    if case.settings.enable_flex_start and usual and floor.refuses(usual):
        yield Problem(
            setting="GKE_RELEASE_CHANNEL",
            what=f"{floor.feature} can't be had with GKE {usual}",
            why=f"it takes {floor.version} or newer, and {usual} is what the channel"
            f" {case.settings.gke_release_channel} gives to new clusters",
            fix="GKE_RELEASE_CHANNEL=RAPID, or a newer GKE_VERSION",
        )
