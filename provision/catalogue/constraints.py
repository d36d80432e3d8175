"""Constraints of organization policies that refuse what this tool makes, and what satisfies them.

The names are those of Google's list of constraints. A managed one has "managed" as the second part
of its name; it says the same and is asked for beside the one without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PAGE: Final = "https://console.cloud.google.com/iam-admin/orgpolicies"
"""The page of the Google Cloud console that shows a project's policies."""


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """One constraint."""

    name: str  # its name without "constraints/", such as "compute.vmExternalIpAccess"
    forbids: str  # what it forbids, as the end of "a policy of the organization ..."
    setting: str = ""  # the setting that the refusal is about; "" for none
    instead: str = ""  # what of the settings satisfies it; "" if nothing does
    managed: str = ""  # the name of its managed form; "" if it has none

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, and that of its managed form."""
        return tuple(filter(None, (self.name, self.managed)))


_GKE: Final = "or use ORCHESTRATOR_TYPE=gke, whose nodes"

EXTERNAL_IP: Final = Constraint(
    name="compute.vmExternalIpAccess",
    forbids="forbids VMs with an external IP",
    setting="ENABLE_EXTERNAL_IP",
    instead="or give the VMs no external IP (ENABLE_EXTERNAL_IP=no), on a network with a way out"
    " (NETWORK_CONFIG=new_network has one)",
    managed="compute.managed.vmExternalIpAccess",
)
SHIELDED_VM: Final = Constraint(
    name="compute.requireShieldedVm",
    forbids="demands Secure Boot, which refuses the NVIDIA driver that is built on the VM",
    setting="SECURE_BOOT",
    instead="or set SECURE_BOOT=yes, with an image whose driver is signed (IMAGE_PROJECT),"
    f" {_GKE} have Secure Boot",
)
GUEST_ATTRIBUTES: Final = Constraint(
    name="compute.disableGuestAttributesAccess",
    forbids="forbids guest attributes, in which VMs tell of their start-up",
    setting="ORCHESTRATOR_TYPE",
    instead=f"{_GKE} need none",
)
ACCOUNT_CREATION: Final = Constraint(
    name="iam.disableServiceAccountCreation",
    forbids="forbids to make service accounts",
    setting="SERVICE_ACCOUNT",
    instead="or let the machines act as an account that exists (SERVICE_ACCOUNT=<EMAIL>); a GKE"
    " cluster makes one for its pods in any case",
    managed="iam.managed.disableServiceAccountCreation",
)
TRUSTED_IMAGES: Final = Constraint(
    name="compute.trustedImageProjects",
    forbids="forbids images of other projects than those that it names",
    setting="IMAGE_PROJECT",
    instead="or choose an image of a project that the policy allows (IMAGE_PROJECT)",
)
LOCATIONS: Final = Constraint(
    name="gcp.resourceLocations",
    forbids="forbids resources in other places than those that it names",
    setting="ZONE",
    instead="or set ZONE to a location that the policy allows",
)
OWN_KEYS: Final = Constraint(
    name="gcp.restrictNonCmekServices",
    forbids="demands keys of your own for what is stored",
    setting="KMS_KEY",
    instead="or name a key of Cloud KMS (KMS_KEY)",
)

ALL: Final = (
    EXTERNAL_IP,
    SHIELDED_VM,
    GUEST_ATTRIBUTES,
    ACCOUNT_CREATION,
    TRUSTED_IMAGES,
    LOCATIONS,
    OWN_KEYS,
)

_BY_NAME: Final = {name: one for one in ALL for name in one.names}


def named(name: str) -> Constraint | None:
    """The constraint of that name, managed or not; None for one that is not known."""
    return _BY_NAME.get(name)


def exception_for(name: str, project: str) -> str:
    """How to get an exception from a policy, as a command to a person."""
    asked = f"the constraint {name}" if name else "that policy"
    page = f"{PAGE}?project={project}" if project else PAGE
    there = f", for the project {project}" if project else ""
    return f"ask whoever administers the organization for an exception from {asked}{there}: {page}"
