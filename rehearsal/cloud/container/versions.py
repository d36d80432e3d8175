"""The versions of GKE that are on offer, by release channel.

A snapshot of what Google offers: new ones come every week.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.container import records
from rehearsal.cloud.facts.gke_versions import numbers
from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

# Channel -> its versions, the newest first, and the default among them: minor versions and defaults
# as Google's release notes had them in September 2026, of each minor version a patch or two that
# they name. 1.37 is missing in RAPID: they name none of its versions.
_CHANNELS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "RAPID": (
        (
            "1.36.4-gke.1082000",
            "1.35.7-gke.1222000",
            "1.34.9-gke.1655001",
        ),
        "1.36.4-gke.1082000",
    ),
    "REGULAR": (
        (
            "1.36.4-gke.1082000",
            "1.35.7-gke.1222000",
            "1.35.6-gke.1250000",
            "1.34.9-gke.1655001",
        ),
        "1.35.7-gke.1222000",
    ),
    "STABLE": (
        ("1.35.6-gke.1250000", "1.34.9-gke.1655001", "1.34.8-gke.1000000"),
        "1.35.6-gke.1250000",
    ),
    "EXTENDED": (
        (
            "1.36.4-gke.1082000",
            "1.35.7-gke.1222000",
            "1.34.9-gke.1655001",
            "1.33.13-gke.1101000",
            "1.32.13-gke.2268000",
            "1.31.14-gke.1986000",
        ),
        "1.35.7-gke.1222000",
    ),
}
_USUAL: Final = "REGULAR"


ALL: Final = tuple(
    sorted({it for on, _ in _CHANNELS.values() for it in on}, key=numbers, reverse=True)
)
"""Every version on offer, the newest first."""


def default(channel: str) -> str:
    """What a cluster on a channel gets that names no version."""
    return _CHANNELS.get(channel, _CHANNELS[_USUAL])[1]


def offered(channel: str) -> tuple[str, ...]:
    """The versions of a channel, the newest first."""
    return _CHANNELS.get(channel, _CHANNELS[_USUAL])[0]


def resolve(asked: str, channel: str) -> str:
    """The full version that a request means.

    `asked`: a full version, a beginning of one ("1.33"), "latest", "-", or "".
    """
    if asked in ("", "-"):
        return default(channel)
    on_offer = offered(channel) if channel in _CHANNELS else ALL
    if asked == "latest":
        return on_offer[0]
    wanted = numbers(asked)
    for version in (*on_offer, *ALL):
        if numbers(version)[: len(wanted)] == wanted:
            return version
    raise GoogleError(400, f'Master version "{asked}" is unsupported.', status=None)


def server_config(_: Request, store: Store, project: str, location: str) -> Reply:
    """What a location offers."""
    records.place(store, project, location)
    return Reply(
        body={
            "defaultClusterVersion": default(_USUAL),
            "validMasterVersions": list(ALL),
            "validNodeVersions": list(ALL),
            "validImageTypes": ["COS_CONTAINERD", "UBUNTU_CONTAINERD"],
            "defaultImageType": "COS_CONTAINERD",
            "channels": [_channel(name) for name in _CHANNELS],
        }
    )


def _channel(name: str) -> dict[str, Any]:
    on_offer, usual = _CHANNELS[name]
    return {
        "channel": name,
        "defaultVersion": usual,
        "validVersions": list(on_offer),
        "upgradeTargetVersion": usual,
    }
