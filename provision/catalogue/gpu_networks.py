"""The networks of a VM's interfaces after the first, as its machine type wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from provision.catalogue.machines import MachineType

USUAL_INTERFACES: Final = 5
"""A VM's interfaces, the first included, where its machine type has no network for its GPUs: as
many as the predecessor made."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """One VPC network beside that of the first interface.

    Attributes:
        mtu: In bytes.
        nic_type: The type of its interfaces, by the API's name.
        subnets: Its subnetworks; each VM has one interface in each.
        profile: Google's network profile without the zone that its name begins with; None where
            it is a network like others.
    """

    mtu: int
    nic_type: str
    subnets: int = 1
    profile: str | None = None


_PLAIN: Final = Network(mtu=8896, nic_type="GVNIC")


def beside_the_first(machine: MachineType | None) -> tuple[Network, ...]:
    """The networks in the order of the interfaces that are in them.

    Args:
        machine: None for a type that the tool does not know; it is taken for one without a
            network for its GPUs.
    """
    if machine is None or machine.gpu_network is None:
        return (USUAL_INTERFACES - 1) * (_PLAIN,)
    kind = machine.gpu_network
    first = (_PLAIN,) if kind.second_gvnic else ()
    # Not `kind.subnets`: a machine with half the GPUs has half of them.
    subnets = (machine.nics - 1 - len(first)) // kind.vpcs
    gpus = Network(mtu=kind.mtu, nic_type=kind.nic_type, subnets=subnets, profile=kind.profile)
    return (*first, *kind.vpcs * (gpus,))
