"""What happens to the hosts of VMs, and how long it takes; seconds of cloud time."""

from typing import Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("host_events")
_BELIEVED: Final = _FACTS["believed"]

STOP: Final[float] = _FACTS["seconds_from_preemption_to_stop"]
"""How long a VM has to shut down once Google wants its place."""

NOTICE: Final[float] = _FACTS["seconds_of_notice_before_maintenance"]
"""How long before the maintenance of its host a VM with GPUs is told."""

DETECTION: Final[float] = _FACTS["seconds_until_a_host_error_is_seen"]
"""How long it takes until Google sees that a host has failed, unless the VM says otherwise."""

MAINTENANCE: Final[float] = _BELIEVED["seconds_of_maintenance"]
"""How long a VM is down for the maintenance of its host."""

SHORTAGE: Final[float] = _BELIEVED["seconds_until_there_is_room_again"]
"""How long a zone has no room for a VM that was preempted there."""
