"""What a smoke test does, in order: settings, time limits, what is billed meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from smoke.costs import DISK_GIB, SHARE_GIB, Part

if TYPE_CHECKING:
    from collections.abc import Mapping

JOB: Final = "Job"
"""The action of a step that is not the program's: a sample job on the GKE cluster."""
PREEMPT: Final = "Preempt"
"""Another: Google takes the place of the Spot VM, as it does automatically."""

DEPLOYMENTS: Final = ("held", "compact", "vm", "ray", "slurm", "gke")
"""In their order: what settles most for least money first."""

_MINUTE: Final = 60.0


@dataclass(frozen=True)
class Place:
    """Where a smoke test works."""

    project: str
    zone: str
    other_zone: str  # where a cluster moves; of the same region
    prefix: str  # what all names begin with, and no others

    @property
    def region(self) -> str:
        """The zone's."""
        return self.zone.rpartition("-")[0]

    @property
    def state_bucket(self) -> str:
        """Keeps the states, and goes at the end."""
        return f"{self.prefix}-state-{self.project}"[:63].rstrip("-")

    @property
    def data_bucket(self) -> str:
        """Is mounted on the VM, and goes at the end."""
        return f"{self.prefix}-data-{self.project}"[:63].rstrip("-")


@dataclass(frozen=True)
class Step:
    """One run of the program, or a job."""

    deployment: str
    action: str  # the program's, `JOB` or `PREEMPT`
    about: str  # what it shows, for people
    settings: Mapping[str, str] = field(repr=False)  # the env.list
    minutes: float  # the time limit
    billed: Mapping[Part, int]  # what may be there meanwhile
    options: tuple[str, ...] = ()  # of the command line
    older: int = 0  # how many VMs are of older settings when a Create has ended

    @property
    def seconds(self) -> float:
        """The time limit."""
        return self.minutes * _MINUTE

    @property
    def name(self) -> str:
        """Deployment and action."""
        return f"{self.deployment}: {self.about}"


def plan(place: Place, only: frozenset[str] = frozenset()) -> list[Step]:
    """The steps in their order.

    `only`: deployments to try; none for all.
    """
    vms = [*_vm(place), *_ray(place), *_slurm(place)]
    every = [*_held(place), *_compact(place), *vms, *_gke(place)]
    return [step for step in every if not only or step.deployment in only]


def removal(step: Step) -> Step:
    """What removes a step's deployment, whatever has become of it."""
    return Step(
        step.deployment, "Destroy", "Destroy", step.settings, 45, step.billed, options=("--yes",)
    )


def _common(place: Place, deployment: str) -> dict[str, str]:
    return {
        "PROJECT_ID": place.project,
        "NAME_PREFIX": f"{place.prefix}-{deployment}",
        "ZONE": place.zone,
        "TERRAFORM_GCS_PATH": f"gs://{place.state_bucket}",
        "LABELS": f'{{ smoke = "{place.prefix}" }}',
        "CAPACITY_TIMEOUT": "20m",
    }


def _t4(place: Place, deployment: str) -> dict[str, str]:
    return {
        **_common(place, deployment),
        "VM_TYPE": "n1-standard-4",
        "ACCELERATOR_TYPE": "nvidia-tesla-t4",
        "GPU_COUNT": "1",
        "DISK_SIZE_GB": str(DISK_GIB),
        "DISK_TYPE": "pd-balanced",
    }


def _held(place: Place) -> list[Step]:
    """What a running VM holds while its settings change: most that is believed, for least money."""
    first = {**_t4(place, "held"), "ENABLE_SPOT": "yes", "STARTUP_COMMAND": "true"}
    # Another template, with all that went into the old one.
    then = {**first, "STARTUP_COMMAND": "date", "SERVICE_ACCOUNT": "default"}
    there = {**then, "NETWORK_CONFIG": "new_network"}
    one = {Part.GPU_VM: 1}
    create, yes = "Create", ("--yes",)
    return [
        Step("held", create, "Create of a Spot VM in the default network", first, 30, one),
        Step("held", create, "another template and account under it", then, 15, one, older=1),
        Step("held", PREEMPT, "its preemption", then, 30, one),
        Step("held", create, "the VM that came again is kept", then, 15, one, older=1),
        Step("held", create, "replace-vms", then, 30, one, options=("--replace-vms", *yes)),
        Step("held", create, "another network", there, 40, {Part.GPU_VM: 2}, options=yes),
        Step("held", "Destroy", "Destroy", there, 30, one, options=yes),
    ]


def _compact(place: Place) -> list[Step]:
    """Compact placement that ends under a VM; N1 takes none, so it is an L4."""
    off = {
        **_common(place, "compact"),
        "VM_TYPE": "g2-standard-4",
        "DISK_SIZE_GB": str(DISK_GIB),
        "DISK_TYPE": "pd-balanced",
        "NETWORK_CONFIG": "new_network",
    }
    on = {**off, "ENABLE_COMPACT_PLACEMENT": "yes"}
    one = {Part.L4_VM: 1}
    create, yes = "Create", ("--yes",)
    return [
        Step("compact", create, "Create with compact placement", on, 30, one),
        Step("compact", create, "without it, under the VM", off, 15, one, older=1),
        Step("compact", create, "replace-vms", off, 30, one, options=("--replace-vms", *yes)),
        Step("compact", "Destroy", "Destroy", off, 30, one, options=yes),
    ]


def _vm(place: Place) -> list[Step]:
    here = {
        **_t4(place, "vm"),
        "NETWORK_CONFIG": "new_network",
        "GCS_MOUNT_LIST": f"{place.data_bucket}:/mnt/bucket",
        "NFS_FILESHARE_LIST": f"/mnt/share:BASIC_HDD:{SHARE_GIB}",
        "STARTUP_COMMAND": "nvidia-smi && date >/mnt/bucket/smoke && date >/mnt/share/smoke",
    }
    there = {**here, "ZONE": place.other_zone}
    one = {Part.GPU_VM: 1, Part.SHARE: 1}
    # What moves may be there twice.
    both = {Part.GPU_VM: 2, Part.SHARE: 2}
    return [
        Step("vm", "Create", "Create with bucket, share, notebook and command", here, 45, one),
        Step("vm", "Status", "Status", here, 5, one),
        Step("vm", "Test", "Test", here, 15, one),
        Step("vm", "Create", "move to another zone", there, 50, both, options=("--yes",)),
        Step(
            "vm", "Plan", "Plan without changes", there, 10, one, options=("--detailed-exitcode",)
        ),
        Step("vm", "Destroy", "Destroy", there, 30, one, options=("--yes",)),
    ]


def _ray(place: Place) -> list[Step]:
    settings = {
        **_t4(place, "ray"),
        "NETWORK_CONFIG": "new_network",
        "ORCHESTRATOR_TYPE": "ray",
        "INSTANCE_COUNT": "2",
    }
    two = {Part.GPU_VM: 2}
    return [
        Step("ray", "Create", "Create of two VMs", settings, 40, two),
        Step("ray", "Test", "Test", settings, 15, two),
        Step("ray", "Destroy", "Destroy", settings, 30, two, options=("--yes",)),
    ]


def _slurm(place: Place) -> list[Step]:
    """Slurm of the default image, which is of Ubuntu 24.04."""
    # A step without a GPU is to see none, as far as cgroups hold; then NCCL over both VMs.
    asks = (
        "import subprocess as s, torch, torch.distributed as d",
        "none = 'srun --overlap --nodes=1 --ntasks=1 --gres=none'.split()",
        "s.run([*none, 'true'], check=True)",
        "assert s.run([*none, 'nvidia-smi', '-L']).returncode",
        "d.init_process_group('nccl')",
        "d.all_reduce(x := torch.ones(1).cuda())",
        "assert x.item() == 2",
    )
    settings = {
        **_t4(place, "slurm"),
        "NETWORK_CONFIG": "new_network",
        "ORCHESTRATOR_TYPE": "slurm",
        "INSTANCE_COUNT": "2",
        "JOB_OPTIONS": "--nodes 2 --time 15m",
        "JOB_COMMAND": f'torchrun --no-python python3 -c "{"; ".join(asks)}"',
    }
    two = {Part.GPU_VM: 2}
    return [
        Step("slurm", "Create", "Create of two VMs", settings, 40, two),
        Step("slurm", "Run", "devices of a step, and NCCL between both", settings, 25, two),
        Step("slurm", "Test", "Test", settings, 15, two),
        Step("slurm", "Destroy", "Destroy", settings, 30, two, options=("--yes",)),
    ]


def _gke(place: Place) -> list[Step]:
    settings = {
        **_common(place, "gke"),
        "ORCHESTRATOR_TYPE": "gke",
        "ENABLE_QUEUED_PROVISIONING": "yes",
        "GKE_NODE_POOLS": "name=t4,vm_type=n1-standard-4,accelerator_type=nvidia-tesla-t4,"
        "gpu_count=1,max=1",
        "DISK_SIZE_GB": str(DISK_GIB),
        "DISK_TYPE": "pd-balanced",
        "SYSTEM_NODE_POOL": f"max=1,disk_size_gb={DISK_GIB}",
    }
    idle = {Part.CLUSTER: 1, Part.SYSTEM_NODE: 1}
    busy = {**idle, Part.GPU_VM: 1}
    return [
        Step("gke", "Create", "Create with a queued pool", settings, 45, idle),
        Step("gke", "Status", "Status", settings, 5, idle),
        Step("gke", JOB, "a sample job", settings, 40, busy),
        Step("gke", "Destroy", "Destroy", settings, 40, busy, options=("--yes",)),
    ]
