"""The enums of values that settings can have."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


class Action(enum.StrEnum):
    """What the program does."""

    CREATE = "Create"
    DESTROY = "Destroy"
    VALIDATE = "Validate"
    PLAN = "Plan"
    STATUS = "Status"
    TEST = "Test"
    DEBUG = "Debug"
    RUN = "Run"
    JOBS = "Jobs"
    LOGS = "Logs"
    CANCEL = "Cancel"
    FETCH = "Fetch"
    SSH = "Ssh"
    BAKE = "Bake"
    OFFERS = "Offers"


ACTIONS_BY_OTHER_NAMES: Final[Mapping[str, Action]] = {
    **dict.fromkeys(("apply", "deploy", "launch", "start", "up", "update"), Action.CREATE),
    **dict.fromkeys(("delete", "down", "remove", "rm", "teardown"), Action.DESTROY),
    **dict.fromkeys(("check", "lint", "verify"), Action.VALIDATE),
    **dict.fromkeys(("diff", "dry-run", "dryrun", "preview"), Action.PLAN),
    **dict.fromkeys(("describe", "get", "info", "list", "ls", "ps", "show"), Action.STATUS),
    **dict.fromkeys(("bash", "sh", "shell"), Action.DEBUG),
    **dict.fromkeys(("exec", "execute", "job", "submit"), Action.RUN),
    **dict.fromkeys(("squeue",), Action.JOBS),
    **dict.fromkeys(("log", "tail"), Action.LOGS),
    **dict.fromkeys(("abort", "kill", "scancel", "stop"), Action.CANCEL),
    **dict.fromkeys(("copy", "cp", "download", "pull", "rsync", "scp"), Action.FETCH),
    **dict.fromkeys(("image", "packer", "snapshot"), Action.BAKE),
    **dict.fromkeys(("catalog", "cost", "gpu", "gpus", "price"), Action.OFFERS),
}
"""Names of actions in other programs, in lower case. They are only used for suggestions."""


class Orchestrator(enum.StrEnum):
    """What runs jobs on the machines."""

    NONE = "none"
    RAY = "ray"
    SLURM = "slurm"
    GKE = "gke"


KIND: Final = "ORCHESTRATOR_TYPE"
"""The setting that asks for one."""

_CALLED: Final = {Orchestrator.RAY: "Ray cluster", Orchestrator.SLURM: "Slurm cluster"}


def called(kind: object, usual: str = "VM group") -> str:
    """What people call a cluster, by what a record has for its kind."""
    return next((words for it, words in _CALLED.items() if it == kind), usual)


def asking_for(kind: str) -> str:
    """How an env.list asks for one."""
    return f"{KIND}={kind}"


ORCHESTRATORS_BY_OTHER_NAMES: Final[Mapping[str, Orchestrator]] = {
    **dict.fromkeys(("k8s", "kubernetes", "kueue"), Orchestrator.GKE),
    **dict.fromkeys(("mig", "vm", "vms"), Orchestrator.NONE),
    **dict.fromkeys(("sbatch", "slurm-gcp", "slurm_gcp", "slurmctld"), Orchestrator.SLURM),
}
"""What others call them, in lower case. They are only used for suggestions."""


class Way(enum.StrEnum):
    """A way to get machines that CAPACITY names."""

    RESERVATION = "reservation"
    FLEX_START = "flex_start"
    SPOT = "spot"
    ON_DEMAND = "on_demand"

    @property
    def words(self) -> str:
        """It as people say it."""
        return self.value.replace("_", " ")


class NetworkConfig(enum.StrEnum):
    """Which VPC networks the VMs of a group use."""

    DEFAULT = "default_network"
    EXISTING = "existing"
    NEW = "new_network"
    MULTI_NIC = "multi_nic_network"

    @property
    def makes(self) -> bool:
        """Whether it makes networks."""
        return self in {NetworkConfig.NEW, NetworkConfig.MULTI_NIC}


class DiskType(enum.StrEnum):
    """A type of boot disk, by its name in the API."""

    PD_SSD = "pd-ssd"
    PD_STANDARD = "pd-standard"
    PD_BALANCED = "pd-balanced"
    PD_EXTREME = "pd-extreme"
    HYPERDISK_BALANCED = "hyperdisk-balanced"


class PriceList(enum.StrEnum):
    """Which prices a cost is estimated from."""

    LIST = "list"  # the dated list that comes with the program
    LIVE = "live"  # Google's Cloud Billing Catalog
    OFF = "off"  # none; nothing is said about cost


class Restart(enum.StrEnum):
    """When STARTUP_COMMAND is begun again."""

    NEVER = "never"  # it runs at most once in the life of a VM
    ON_FAILURE = "on-failure"  # after an attempt that failed, or that the end of a boot cut off
    ALWAYS = "always"  # after a success, too, and at each boot


class Priority(enum.StrEnum):
    """The priority of a job in its queue, by the name of its class in the cluster."""

    VERY_LOW = "very-low"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    VERY_HIGH = "very-high"


class RestartOn(enum.StrEnum):
    """After which failures of its own a job is begun again, beside those of a lost machine."""

    LOST = "lost"  # after none
    ANY = "any"  # after all; without a word, after those of a program that had run for a while


class ReleaseChannel(enum.StrEnum):
    """A GKE release channel, by its name in the API."""

    RAPID = "RAPID"
    REGULAR = "REGULAR"
    STABLE = "STABLE"
    EXTENDED = "EXTENDED"
    UNSPECIFIED = "UNSPECIFIED"


class DriverVersion(enum.StrEnum):
    """The GPU driver that GKE installs on nodes, by its name in the API."""

    DEFAULT = "DEFAULT"
    LATEST = "LATEST"


class OnlineCheck(enum.StrEnum):
    """The names of the online checks, as SKIP_CHECKS has them."""

    BILLING = "billing"
    APIS = "apis"
    PERMISSIONS = "permissions"
    POLICIES = "policies"
    ZONE = "zone"
    MACHINE_TYPE = "machine-type"
    ACCELERATOR = "accelerator"
    RESERVATION = "reservation"
    IMAGE = "image"
    DISK = "disk"
    QUOTA = "quota"
    NETWORK = "network"
    SUBNETWORK = "subnetwork"
    BUCKETS = "buckets"
    SECRETS = "secrets"
    KMS_KEY = "kms-key"
    NAMES = "names"
    GKE_VERSION = "gke-version"
