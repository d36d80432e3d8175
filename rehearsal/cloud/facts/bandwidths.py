"""What the network between two machines carries, and how long it takes VMs to find that out."""

from typing import Final

from rehearsal.cloud import facts

_FACTS: Final = facts.read("bandwidths")
_BELIEVED: Final = _FACTS["believed"]
_SHARED: Final = facts.read("shared_with_the_program")

CHECK: Final[float] = _BELIEVED["seconds_of_a_check"]
"""Seconds of cloud time that a VM looks at itself, DCGM's short diagnostic included."""

MEASUREMENT: Final[float] = _BELIEVED["seconds_of_a_measurement"]
"""Seconds of cloud time that a measurement takes with NCCL's start, where nothing is slow."""

HEARING: Final[float] = _BELIEVED["seconds_until_a_task_is_heard_of"]
"""Seconds of cloud time until a VM has looked for a task again."""

LATENCY: Final[float] = _BELIEVED["seconds_of_the_smallest_message"]
"""Seconds that no message takes less."""


def between(machine: str, *, on_gpu_network: bool) -> float:
    """The bus bandwidth of a machine type in GB/s, by the GPUs' network or by plain sockets."""
    if on_gpu_network:
        shared = _SHARED["gb_per_second_over_the_gpu_network"]
        known = _FACTS["over_the_gpu_network"].get(machine) or shared.get(machine)
        return float(known or _BELIEVED["over_the_gpu_network_of_others"])
    shared = _SHARED["gb_per_second_over_sockets"]
    known = _FACTS["over_sockets"].get(machine) or shared.get(machine)
    return float(known or _BELIEVED["over_sockets"])
