"""The networks of a VM's additional interfaces, which depend on its machine type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from provision.catalogue.machines import MachineType

USUAL_INTERFACES: Final = 5
"""The number of interfaces, including the first, for machine types without a GPU network: the same
as in the predecessor."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """One additional VPC network."""

    mtu: int  # the MTU in bytes
    nic_type: str  # the type of its interfaces, by its name in the API
    subnets: int = 1  # the number of its subnetworks; each VM has one interface in each
    # Google's network profile, without the zone at the beginning of its name; None for an ordinary
    # network
    profile: str | None = None


_PLAIN: Final = Network(mtu=8896, nic_type="GVNIC")


def beside_the_first(machine: MachineType | None) -> tuple[Network, ...]:
    """The networks of the additional interfaces, in the order of the interfaces.

    `machine`: the machine type; None if the tool does not know it, which counts as one without a
    GPU network.
    """
    if machine is None or machine.gpu_network is None:
        return (USUAL_INTERFACES - 1) * (_PLAIN,)
    kind = machine.gpu_network
    first = (_PLAIN,) if kind.second_gvnic else ()
    # Not `kind.subnets`: a machine type with half the GPUs has half the subnetworks.
    subnets = (machine.nics - 1 - len(first)) // kind.vpcs
    gpus = Network(mtu=kind.mtu, nic_type=kind.nic_type, subnets=subnets, profile=kind.profile)
    return (*first, *kind.vpcs * (gpus,))
