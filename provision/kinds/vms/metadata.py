"""The metadata of a running VM: what of it is ours, what differs, and how that is changed.

Anybody who may change a VM can write there too, such as `gcloud compute ssh` its keys, and so does
Google. What is not ours is left alone.
"""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.settings import labels

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google.api import GoogleApi

_USERS: Final = "aiinfra-metadata-keys"
"""The key under which a template lists the keys of METADATA (`terraform/modules/gpu-mig`)."""
_GOOGLES: Final = frozenset({"instance-template", "created-by", "proxy-url"})
"""Google adds these to the VMs of a group."""
_AT_START: Final = frozenset(
    {*labels.RESERVED_METADATA, "install-nvidia-driver", "user-data"} - {"enable-guest-attributes"}
)
"""What a VM reads when it starts, and not again; so it does with our own keys."""
_AT_ONCE: Final = 8
"""VMs that are changed at the same time."""

Keys = dict[str, str]


@dataclass(frozen=True)
class Differing:
    """The keys that a VM has otherwise than its group's template."""

    keys: tuple[str, ...]  # their names, in order
    in_place: bool  # whether a VM needs no start to heed the new values


def differing(vm: Mapping[str, Any], template: Mapping[str, Any]) -> Differing:
    """The keys of ours that a VM has otherwise than a template, and whether that can be fixed."""
    now, wanted = _read(vm), _read(template)
    found = {key for key in _ours(now) | wanted.keys() if now.get(key) != wanted.get(key)}
    return Differing(
        # The list of keys differs with them; alone it does where an older version made the VM.
        keys=tuple(sorted(found - {_USERS} or found)),
        in_place=not any(_is_read_at_start(key) for key in found),
    )


class Keeper:
    """Keeps what others have added to the metadata of VMs, whatever an update makes of it.

    Google says that an update of a group's VMs gives them a template's metadata, and not what
    becomes of the rest (Compute Engine, InstanceGroupManagerUpdatePolicy, 2026-09-01). `vms`: the
    VMs as they were before the update, by path ("projects/...").
    """

    def __init__(self, api: GoogleApi, vms: Mapping[str, Mapping[str, Any]]) -> None:
        self._api = api
        self._before = {path: _read(vm) for path, vm in vms.items()}

    def restore(self, template: Mapping[str, Any]) -> None:
        """Give the VMs a template's metadata, beside what is not ours.

        Raises:
            GoogleApiError: These credentials may not do that, or others kept changing them.
        """
        wanted = _read(template)
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda path: self._restore(path, wanted), self._before))

    def _restore(self, path: str, wanted: Keys) -> None:
        before = self._before[path]

        def change(now: Keys) -> Keys:
            ours = _ours(before) | _ours(now)
            added = {key: value for key, value in {**before, **now}.items() if key not in ours}
            return {**added, **wanted}

        self._api.change_metadata(path, change)


def _is_read_at_start(key: str) -> bool:
    return key in _AT_START or (key.startswith(labels.OWN_METADATA) and key != _USERS)


def _ours(keys: Mapping[str, str]) -> set[str]:
    """Those keys of a VM that one of our templates has given it."""
    listed = filter(None, keys.get(_USERS, "").split(","))
    own = {
        key
        for key in keys
        if key in labels.RESERVED_METADATA or key.startswith(labels.OWN_METADATA)
    }
    return own | {*listed} - _GOOGLES


def _read(document: Mapping[str, Any]) -> Keys:
    items = document.get("metadata", {}).get("items", [])
    return {one["key"]: one.get("value", "") for one in items}
