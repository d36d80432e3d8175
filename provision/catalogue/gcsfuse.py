"""Options of Cloud Storage FUSE (gcsfuse): which ones may be set, and what this tool sets itself.

Sources: gcsfuse at 7b39292 (2026-08-20), cfg/params.yaml for names, values and defaults,
tools/mount_gcsfuse/main.go for fstab; Cloud Storage FUSE CSI driver at 5fcdc04 (2026-08-21),
pkg/sidecar_mounter/sidecar_mounter_config.go for what it drops and how it takes the cache.
"""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LOCAL_SSD: Final = "/mnt/localssd"
"""Where VMs mount their Local SSDs (payload/lib/aiinfra_vm/localssd.py)."""
READ_ONLY: Final = "ro"
_MIB_PER_GIB: Final = 1024


class Kind(enum.Enum):
    """What the value of an option looks like: as a regular expression, and for people."""

    SWITCH = (r"true|false", "true or false")
    NUMBER = (r"[0-9]{1,9}", "a whole number, 0 or more")
    LIMIT = (r"-1|[0-9]{1,9}", "a whole number, or -1 for no limit")
    MODE = (r"0?[0-7]{3}", "permissions in octal, such as 755")
    DURATION = (r"[0-9]{1,6}(ms|s|m|h)", "a duration, such as 30s")
    SEVERITY = (r"TRACE|DEBUG|INFO|WARNING|ERROR|OFF", "TRACE, DEBUG, INFO, WARNING, ERROR or OFF")
    PROTOCOL = (r"http1|http2|grpc", "http1, http2 or grpc")
    PROJECT = (r"[a-z][-a-z0-9.:]{4,61}[a-z0-9]", "a project ID")

    def __init__(self, pattern: str, words: str) -> None:
        self.pattern = pattern
        self.words = words

    def takes(self, value: str) -> bool:
        """Whether a value looks like that."""
        return re.fullmatch(self.pattern, value) is not None


OPTIONS: Final[Mapping[str, Kind]] = {
    "billing-project": Kind.PROJECT,
    "client-protocol": Kind.PROTOCOL,
    "dir-mode": Kind.MODE,
    "enable-streaming-writes": Kind.SWITCH,
    "file-cache-cache-file-for-range-read": Kind.SWITCH,
    "file-cache-download-chunk-size-mb": Kind.NUMBER,
    "file-cache-enable-parallel-downloads": Kind.SWITCH,
    "file-cache-max-parallel-downloads": Kind.LIMIT,
    "file-cache-parallel-downloads-per-file": Kind.NUMBER,
    "file-mode": Kind.MODE,
    "gid": Kind.NUMBER,
    "http-client-timeout": Kind.DURATION,
    "ignore-interrupts": Kind.SWITCH,
    "implicit-dirs": Kind.SWITCH,
    "kernel-list-cache-ttl-secs": Kind.LIMIT,
    "limit-bytes-per-sec": Kind.LIMIT,
    "limit-ops-per-sec": Kind.LIMIT,
    "log-severity": Kind.SEVERITY,
    "max-conns-per-host": Kind.NUMBER,
    "max-idle-conns-per-host": Kind.NUMBER,
    "max-retry-attempts": Kind.NUMBER,
    "max-retry-sleep": Kind.DURATION,
    "metadata-cache-negative-ttl-secs": Kind.LIMIT,
    "metadata-cache-ttl-secs": Kind.LIMIT,
    "rename-dir-limit": Kind.NUMBER,
    READ_ONLY: Kind.SWITCH,
    "sequential-read-size-mb": Kind.NUMBER,
    "stat-cache-max-size-mb": Kind.LIMIT,
    "type-cache-max-size-mb": Kind.LIMIT,
    "uid": Kind.NUMBER,
}
"""The options that GCS_OPTIONS takes: those that VMs and pods both have for some versions."""

_USUAL: Final[Mapping[str, str]] = {
    # Folders that only other tools made objects in are seen, too.
    "implicit-dirs": "true",
    # Every user reads and writes.
    "dir-mode": "777",
    "file-mode": "777",
    # The default of most machines. On the largest ones it is -1: what another machine writes
    # over an object would never be seen.
    "metadata-cache-ttl-secs": "60",
}
_PARALLEL: Final = "file-cache-enable-parallel-downloads"


def reads_only(given: Iterable[str]) -> bool:
    """Whether the user's options make all mounts read-only."""
    return _pairs(given).get(READ_ONLY) == "true"


def on_vms(given: Iterable[str], cache_gib: int | None) -> tuple[str, ...]:
    """The options of a line in fstab, without those of mount(8).

    `given`: the user's options, as `name=value` or a bare name; they win. `cache_gib`: the size of
    the file cache on the Local SSDs, in GiB; None for no cache.
    """
    cache = {}
    if cache_gib is not None:
        cache = {
            "cache-dir": f"{LOCAL_SSD}/gcsfuse",
            "file-cache-max-size-mb": str(cache_gib * _MIB_PER_GIB),
            _PARALLEL: "true",
        }
    return tuple(_texts({**_USUAL, **cache, **_pairs(given)}))


def in_pods(given: Iterable[str], cache_gib: int | None) -> tuple[str, ...]:
    """The mount options of a volume, for GKE's driver.

    It has no cache folder but its own, which it uses if this one option comes in the form of its
    configuration file. `given`: the user's options, as `name=value` or a bare name; they win.
    """
    own = {} if cache_gib is None else {_PARALLEL: "true"}
    size = [] if cache_gib is None else [f"file-cache:max-size-mb:{cache_gib * _MIB_PER_GIB}"]
    return (*_texts({**_USUAL, **own, **_pairs(given)}), *size)


def _pairs(given: Iterable[str]) -> dict[str, str]:
    parts = (option.partition("=") for option in given)
    return {name: value or "true" for name, _, value in parts}


def _texts(options: Mapping[str, str]) -> list[str]:
    """A switch that is on is its bare name, which mount(8) and GKE's driver both take."""
    return [
        name if value == "true" else f"{name}={value}"
        for name, value in options.items()
        if (name, value) != (READ_ONLY, "false")
    ]
