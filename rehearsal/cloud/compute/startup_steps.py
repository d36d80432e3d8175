"""The steps of the start-up of VMs: which a configuration leaves out, and how long each takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.cloud.compute.resources import Resource

AGENT = "agent"

INSTALLING = frozenset({"local-ssd", "mounts", "gpu", "fabric", "ops-agent", "ray"})
"""The steps that install something, unless it is there already."""

_FOUND_SECONDS = 5.0
"""How long such a step takes where all is there; a guess."""

DRIVER_SECONDS = 480.0
"""How long Google's installer takes for a driver, its reboot with it; a guess."""


@dataclass(frozen=True)
class Step:
    """One step of the start-up."""

    name: str  # such as "mounts"
    seconds: float  # how long it takes, in cloud time
    # why a VM of this configuration leaves it out; "" when it doesn't
    why_not: Callable[[Resource], str]
    failure: str = ""  # its last lines, should it fail; "" for one that never does


def _unless(key: str, reason: str) -> Callable[[Resource], str]:
    return lambda config: "" if config.get(key) else reason


def _no_fabric(config: Resource) -> str:
    if not config.get("gpus"):
        return "this VM has no GPUs"
    return "" if config.get("fabric") else "NCCL uses the one network interface that there is"


def _no_notebook(config: Resource) -> str:
    if not config.get("notebook"):
        return "no notebook is wanted"
    return "" if config["_has_notebook"] else "the image has no notebook"


# In the order in which they run.
STEPS = (
    Step("way-out", 5.0, _unless("outbound", "no proxy, certificates or mirrors are set")),
    Step(
        "local-ssd", 10.0, lambda config: "" if config["_local_ssds"] else "no Local SSD is there"
    ),
    Step("mounts", 15.0, _unless("mounts", "nothing is to be mounted")),
    Step("files", 10.0, _unless("files", "no files were copied")),
    Step(
        "gpu",
        30.0,
        _unless("gpus", "no GPUs are expected"),
        "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.\n"
        "nvidia-smi shows fewer GPUs than the machine has",
    ),
    Step("fabric", 60.0, _no_fabric),
    Step("ops-agent", 40.0, _unless("ops_agent", "the Ops Agent is switched off")),
    Step(AGENT, 15.0, lambda _: ""),
    Step("ray", 45.0, _unless("ray", "no Ray is wanted")),
    Step("notebook", 10.0, _no_notebook),
    Step(
        "command",
        25.0,
        _unless("has_command", "no command was given"),
        "Traceback (most recent call last):\n"
        '  File "/usr/aiinfra/copy/train.py", line 3, in <module>\n'
        "ModuleNotFoundError: No module named 'transformers'\n"
        "the command ended with exit code 1",
    ),
)


def seconds(told: Resource, step: Step) -> float:
    """How long a step takes on a VM, in cloud time."""
    if told.get("baked") and step.name in INSTALLING:
        return _FOUND_SECONDS
    return step.seconds + (DRIVER_SECONDS if told.get("installs") and step.name == "gpu" else 0.0)


def length(skipped: Resource) -> float:
    """How long the steps that are not left out take together, in cloud time."""
    return sum(step.seconds for step in STEPS if step.name not in skipped)
