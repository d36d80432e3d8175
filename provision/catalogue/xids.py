"""What an Xid of NVIDIA's driver means, and what NVIDIA does about it.

The rows are those of NVIDIA's "Analyzing Xid Errors with the Xid Catalog" (read 2026-11-28) that a
VM's agent tells of. Google's device plugin for GKE counts 48, 63, 64, 79, 119, 120, 123 and 140 as
broken (container-engine-accelerators, pkg/gpu/nvidia/health_check); NVIDIA says to ignore 63, a row
of memory that was replaced, and uses 123 no more, so VMs tell of neither.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_RESET: Final = "a restart of the VM clears it; if it comes back, another host"
_HOST: Final = "another host: a restart of the VM is not enough"
_LINK: Final = "a restart of the VM; seen again, another host, as either end may be at fault"
_MEANT: Final = {
    48: ("memory that could not be corrected", _RESET),
    62: ("the GPU's own processor has halted", _RESET),
    64: ("a bad row of memory could not be replaced", _RESET),
    74: ("an NVLink failed", _LINK),
    79: ("the GPU has fallen off the bus", _HOST),
    95: ("an uncorrected memory error that may have reached other programs", _RESET),
    119: ("the GPU's system processor (GSP) did not answer", _RESET),
    120: ("the GPU's system processor (GSP) failed", _RESET),
    140: ("memory errors that the driver could not deal with", _RESET),
    143: ("the GPU could not be initialised", _RESET),
    **dict.fromkeys(range(144, 151), ("an NVLink failed", _LINK)),
    154: ("what the driver asks for after another error", "what the line says in brackets"),
    158: ("the GPU did not answer in time, for good", _RESET),
}
_XID: Final = re.compile(r"\bXid \([^)]*\): (\d+)")
_SXID: Final = re.compile(r"\bSXid \(")
_SWITCH: Final = f"SXid: an error of an NVSwitch, which links all GPUs of the machine; {_LINK}"


def need_another_host(faults: Iterable[str]) -> bool:
    """Whether a restart of the VM is not enough for something in these lines."""
    found = (_XID.search(line) for line in faults)
    return any(one and _MEANT.get(int(one[1]), ("", ""))[1] == _HOST for one in found)


def meanings(faults: Iterable[str]) -> list[str]:
    """What the lines of a driver's log among these mean, each once."""
    found: dict[str, None] = {}
    for line in faults:
        if _SXID.search(line):
            found[_SWITCH] = None
        elif (one := _XID.search(line)) and (known := _MEANT.get(int(one[1]))):
            meaning, remedy = known
            found[f"Xid {one[1]}: {meaning}; {remedy}"] = None
    return list(found)
