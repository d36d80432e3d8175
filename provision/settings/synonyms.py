"""What other tools call the things that settings of this tool set.

People who come from another tool write its names, and a name that nobody reads is a cluster that
nobody asked for. The names are those of the tools' own references, read on 2026-11-22, but for some
of gcloud's and Ray's that are known by use, and those of what is idle on 2026-11-28:

* gcloud: `compute instances create`, `compute instance-groups managed create` and `container
  node-pools create` of the gcloud reference, seen in excerpts;
* Cluster Toolkit: `modules/compute/vm-instance`, `modules/compute/gke-node-pool` (01df6b26),
  `community/modules/compute/schedmd-slurm-gcp-v6-nodeset` (00f17675);
* SkyPilot: "SkyPilot YAML" of its documentation (latest), and `sky/resources.py`;
* dstack: `core/models/fleets.py` (01528849) and `core/models/profiles.py` (230b6bf7);
* xpk: `src/xpk/parser/common.py` (03465e26), and its documentation in excerpts;
* Ray: "Cluster YAML Configuration Options" of its documentation, and its examples for GCP;
* torchrun, Slurm, and the tokens of Hugging Face and the like: known by use.

They are only used for suggestions. Names of this tool's predecessor are in `spelling`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from provision.catalogue import machines, suggestions
from provision.codes import Code
from provision.errors import Alternatives, Problem
from provision.settings import parsing
from provision.settings.masking import PRIVATE, mask
from provision.settings.model import Settings, example_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True)
class Synonym:
    """Another tool's name for something."""

    setting: str
    of: str = ""  # whose name it is; "" for nobody's in particular
    opposite: bool = False  # whether yes means no
    # whether it is so common a word that in a process environment it says nothing
    common: bool = False
    unit: str = ""  # of a duration: what a number alone counts there


_VM_TYPE: Final = "VM_TYPE"
_SECRETS: Final = "SECRETS"
_SWITCHES: Final = frozenset(
    {
        "ENABLE_COMPACT_PLACEMENT",
        "ENABLE_EXTERNAL_IP",
        "ENABLE_FLEX_START",
        "ENABLE_QUEUED_PROVISIONING",
        "ENABLE_SPOT",
    }
)
_NEVER: Final = frozenset({"-1", "false", "no", "off"})  # of autostop and dstack's durations
_POLICIES: Final = {"spot": "yes", "on-demand": "no"}  # dstack's spot_policy
_TOOLKIT: Final = "Cluster Toolkit"

SYNONYMS: Final[Mapping[str, Synonym]] = MappingProxyType(
    {
        # Machines and their GPUs: here, the machine type determines the GPUs.
        "MACHINE_TYPE": Synonym(_VM_TYPE, f"gcloud and {_TOOLKIT}"),
        "MACHINETYPE": Synonym(_VM_TYPE, "Ray"),
        "INSTANCE_TYPE": Synonym(_VM_TYPE, "SkyPilot"),
        "INSTANCE_TYPES": Synonym(_VM_TYPE, "dstack"),
        "DEVICE_TYPE": Synonym(_VM_TYPE, "xpk"),
        "NODE_TYPE": Synonym(_VM_TYPE),
        "GPU": Synonym(_VM_TYPE, "dstack", common=True),
        "GPUS": Synonym(_VM_TYPE, "SkyPilot", common=True),
        "GPU_TYPE": Synonym(_VM_TYPE),
        "GPU_NAME": Synonym(_VM_TYPE),
        "ACCELERATOR": Synonym(_VM_TYPE, "gcloud"),
        "ACCELERATORS": Synonym(_VM_TYPE, "SkyPilot"),
        "GUEST_ACCELERATOR": Synonym(_VM_TYPE, _TOOLKIT),
        "GUEST_ACCELERATORS": Synonym(_VM_TYPE, "Ray"),
        "NUM_GPUS": Synonym("GPU_COUNT"),
        "GPUS_PER_NODE": Synonym("GPU_COUNT", "Slurm"),
        "NPROC_PER_NODE": Synonym("GPU_COUNT", "torchrun", common=True),
        # How many of them.
        "NUM_NODES": Synonym("INSTANCE_COUNT", "SkyPilot, xpk and gcloud"),
        "NUM_SLICES": Synonym("INSTANCE_COUNT", "xpk"),
        "NUM_INSTANCES": Synonym("INSTANCE_COUNT"),
        "NUM_VMS": Synonym("INSTANCE_COUNT"),
        "NODES": Synonym("INSTANCE_COUNT", "dstack", common=True),
        "NNODES": Synonym("INSTANCE_COUNT", "torchrun", common=True),
        "NODE_COUNT": Synonym("INSTANCE_COUNT"),
        "VM_COUNT": Synonym("INSTANCE_COUNT"),
        "STATIC_NODE_COUNT": Synonym("INSTANCE_COUNT", _TOOLKIT),
        "NODE_COUNT_STATIC": Synonym("INSTANCE_COUNT", _TOOLKIT),
        "INITIAL_NODE_COUNT": Synonym("INSTANCE_COUNT", _TOOLKIT),
        "SIZE": Synonym("INSTANCE_COUNT", "gcloud", common=True),
        "MAX_NODES": Synonym("GKE_MAX_NODE_COUNT", "gcloud"),
        "MAX_NODE_COUNT": Synonym("GKE_MAX_NODE_COUNT"),
        "TOTAL_MAX_NODES": Synonym("GKE_MAX_NODE_COUNT", "gcloud"),
        "AUTOSCALING_TOTAL_MAX_NODES": Synonym("GKE_MAX_NODE_COUNT", _TOOLKIT),
        "MAX_WORKERS": Synonym("GKE_MAX_NODE_COUNT", "Ray", common=True),
        "MIN_NODES": Synonym("GKE_MIN_NODE_COUNT", "gcloud"),
        "MIN_NODE_COUNT": Synonym("GKE_MIN_NODE_COUNT"),
        "TOTAL_MIN_NODES": Synonym("GKE_MIN_NODE_COUNT", "gcloud"),
        "AUTOSCALING_TOTAL_MIN_NODES": Synonym("GKE_MIN_NODE_COUNT", _TOOLKIT),
        "MIN_WORKERS": Synonym("GKE_MIN_NODE_COUNT", "Ray", common=True),
        # How they are got, and for how long.
        "SPOT": Synonym("ENABLE_SPOT", f"gcloud, xpk and {_TOOLKIT}"),
        "USE_SPOT": Synonym("ENABLE_SPOT", "SkyPilot"),
        "SPOT_POLICY": Synonym("ENABLE_SPOT", "dstack"),
        "ENABLE_SPOT_VM": Synonym("ENABLE_SPOT", _TOOLKIT),
        "PREEMPTIBLE": Synonym("ENABLE_SPOT", "gcloud and Ray"),
        "FLEX": Synonym("ENABLE_FLEX_START", "xpk"),
        "FLEX_START": Synonym("ENABLE_FLEX_START", "gcloud"),
        "DWS_FLEX": Synonym("ENABLE_FLEX_START", _TOOLKIT),
        "QUEUED_PROVISIONING": Synonym("ENABLE_QUEUED_PROVISIONING"),
        "RESERVATION": Synonym("RESERVATION_NAME", "gcloud, xpk and dstack"),
        "MAX_DURATION": Synonym("MAX_RUN_DURATION", "dstack", unit="s"),
        "AUTOSTOP": Synonym("IDLE_TIMEOUT", "SkyPilot", unit="m"),
        "IDLE_MINUTES_TO_AUTOSTOP": Synonym("IDLE_TIMEOUT", "SkyPilot", unit="m"),
        "IDLE_DURATION": Synonym("IDLE_TIMEOUT", "dstack", unit="s"),
        "WALLTIME": Synonym("JOB_TIME", common=True),
        "MAX_PRICE": Synonym("MAX_HOURLY_COST", "dstack"),
        "COMPACT_PLACEMENT": Synonym("ENABLE_COMPACT_PLACEMENT", _TOOLKIT),
        "ENABLE_PLACEMENT": Synonym("ENABLE_COMPACT_PLACEMENT", _TOOLKIT),
        # Disk and image.
        "DISK_SIZE": Synonym("DISK_SIZE_GB", "SkyPilot and gcloud"),
        "BOOT_DISK_SIZE": Synonym("DISK_SIZE_GB", "gcloud"),
        "BOOT_DISK_SIZE_GB": Synonym("DISK_SIZE_GB"),
        "BOOT_DISK_TYPE": Synonym("DISK_TYPE", "gcloud"),
        "DISK_TIER": Synonym("DISK_TYPE", "SkyPilot"),
        "IMAGE": Synonym("IMAGE_NAME", "gcloud", common=True),
        "IMAGE_ID": Synonym("IMAGE_NAME", "SkyPilot", common=True),
        "IMAGE_FAMILY": Synonym("IMAGE_FAMILY_NAME", "gcloud"),
        "VM_IMAGE": Synonym("IMAGE_NAME"),
        "BOOT_IMAGE": Synonym("IMAGE_NAME"),
        # What runs on it, and what that is not to have from an env.list.
        "SETUP": Synonym("STARTUP_COMMAND", "SkyPilot", common=True),
        "SETUP_COMMANDS": Synonym("STARTUP_COMMAND", "Ray"),
        "STARTUP_COMMANDS": Synonym("STARTUP_COMMAND"),
        "ENVS": Synonym("JOB_ENV", "SkyPilot", common=True),
        "HF_TOKEN": Synonym(_SECRETS, "Hugging Face", common=True),
        "HUGGING_FACE_HUB_TOKEN": Synonym(_SECRETS, "Hugging Face", common=True),
        "HUGGINGFACE_TOKEN": Synonym(_SECRETS, "Hugging Face", common=True),
        "WANDB_API_KEY": Synonym(_SECRETS, "Weights & Biases", common=True),
        "OPENAI_API_KEY": Synonym(_SECRETS, "OpenAI", common=True),
        "AWS_SECRET_ACCESS_KEY": Synonym(_SECRETS, "AWS", common=True),
        # Where it is, and whose it is.
        "PROJECT": Synonym("PROJECT_ID", "gcloud", common=True),
        "CLUSTER_NAME": Synonym("NAME_PREFIX", "Ray", common=True),
        "DEPLOYMENT_NAME": Synonym("NAME_PREFIX", _TOOLKIT, common=True),
        "AVAILABILITY_ZONE": Synonym("ZONE", "Ray", common=True),
        "LOCATION": Synonym("ZONE", "gcloud", common=True),
        "SERVICE_ACCOUNT_EMAIL": Synonym("SERVICE_ACCOUNT", _TOOLKIT, common=True),
        "ORCHESTRATOR": Synonym("ORCHESTRATOR_TYPE", common=True),
        "SUBNET": Synonym("SUBNETWORK", "gcloud", common=True),
        "ENABLE_PUBLIC_IPS": Synonym("ENABLE_EXTERNAL_IP", _TOOLKIT),
        "DISABLE_PUBLIC_IPS": Synonym("ENABLE_EXTERNAL_IP", _TOOLKIT, opposite=True),
        "NO_ADDRESS": Synonym("ENABLE_EXTERNAL_IP", "gcloud", opposite=True),
        "USE_INTERNAL_IPS": Synonym("ENABLE_EXTERNAL_IP", "SkyPilot and Ray", opposite=True),
        # GKE's own.
        "NODE_POOLS": Synonym("GKE_NODE_POOLS"),
        "KUEUE": Synonym("ENABLE_KUEUE", common=True),
        "CLUSTER_VERSION": Synonym("GKE_VERSION", "gcloud"),
        "RELEASE_CHANNEL": Synonym("GKE_RELEASE_CHANNEL", "gcloud"),
        "MASTER_AUTHORIZED_NETWORKS": Synonym("AUTHORIZED_CIDR", "gcloud"),
    }
)
"""Another tool's name, in upper case with underscores -> what is meant."""


def problem(name: str, in_file: str, in_environ: str, given: Collection[str]) -> Problem | None:
    """The problem of a variable with another tool's name; None if it was not meant for this tool.

    In an env file it always was. The process environment belongs to many programs: there, a name
    counts if its value would be one of the setting's, and if the setting is not given itself.
    """
    found = SYNONYMS.get(_plain(name))
    if found is None:
        return None
    value = (in_file or in_environ).strip()
    meant_settings = {} if found.setting in given else _meant_by(found, value)
    is_foreign = found.common or found.setting in given or not meant_settings
    if not in_file.strip() and is_foreign:
        return None
    if found.setting == _SECRETS:
        secret = name.lower().replace("_", "-")
        return Problem(
            code=Code.UNKNOWN_SETTING,
            setting=name,
            what="is not a setting: it would be ignored",
            why=f"a secret is kept in Secret Manager, where each VM reads it, and {_SECRETS} names"
            " it; its value belongs in no env.list",
            fix=f"{_SECRETS}={name}=projects/<project>/secrets/{secret}, once it is there: gcloud"
            f" secrets create {secret} --data-file=-",
        )
    verb = "call" if " and " in found.of else "calls"
    elsewhere = f"{found.of} {verb} it so; " if found.of else ""
    return Problem(
        code=Code.UNKNOWN_SETTING,
        setting=name,
        what="is not a setting: it would be ignored",
        why=f"{elsewhere}its name is {next(iter(meant_settings), found.setting)} here",
        fix=", ".join(f"{setting}={text}" for setting, text in meant_settings.items())
        or _words(name, found, value, is_set=found.setting in given),
        alternatives=Alternatives(settings=meant_settings),
    )


def setting_of(name: str) -> str:
    """The setting that another tool has this name for; "" if none has."""
    found = SYNONYMS.get(_plain(name))
    return found.setting if found else ""


def _words(name: str, found: Synonym, value: str, *, is_set: bool) -> str:
    """The fix where there is no value to show; it guesses none."""
    if is_set or (found.unit and value.lower() in _NEVER):
        return f"remove {name}: {found.setting} is {'set' if is_set else 'off unless you set it'}"
    if found.setting.lower() in PRIVATE and _fits(found.setting, value):
        return f"write {found.setting} in place of {name}, and leave the value as it is"
    return f"{found.setting}=<value>, such as {example_of(found.setting.lower())}"


def _meant_by(found: Synonym, value: str) -> dict[str, str]:
    """Setting -> the value that is meant; empty if the setting could not have it."""
    if found.setting == _VM_TYPE:
        return _machines(value)
    if (found.setting, value.lower()) == ("ENABLE_SPOT", "auto"):  # dstack's spot_policy
        return {"CAPACITY": "spot,on_demand"}
    text = _switched(value, opposite=found.opposite) if found.setting in _SWITCHES else value
    text += found.unit if text.isdecimal() else ""
    is_shown = found.setting.lower() not in PRIVATE and _fits(found.setting, text)
    return {found.setting: mask(text)} if is_shown else {}


def _machines(value: str) -> dict[str, str]:
    """The machines that a name of machines or of GPUs asks for."""
    if value.isdecimal():
        many = {it.name for it in machines.MACHINE_TYPES.values() if str(it.gpus) == value}
        types = [it for it in suggestions.machine_types("a100") if it in many]
    else:
        types = list(suggestions.machine_types(value))
    if types:
        return {_VM_TYPE: types[0]}
    gpu = (
        value
        if value in machines.ATTACHMENTS
        else next((it.name for it in suggestions.gpus(value)), "")
    )
    if gpu:
        attached = {"ACCELERATOR_TYPE": gpu, "GPU_COUNT": "1"}
        return {_VM_TYPE: suggestions.USUAL_WITHOUT_GPUS, **attached}
    is_plain = machines.plain_series(value) is not None and _fits(_VM_TYPE, value)
    return {_VM_TYPE: value} if is_plain else {}


def _switched(value: str, *, opposite: bool) -> str:
    """A switch's value, with the words of other tools: `spot` and `on-demand`."""
    word = _POLICIES.get(value.lower(), value)
    try:
        is_on = parsing.boolean(word)
    except parsing.InvalidValueError:
        return value
    return "yes" if is_on is not opposite else "no"


def _fits(variable: str, text: str) -> bool:
    """Whether a text is a valid value of a setting, as far as that can be told of it alone."""
    field = variable.lower()
    mandatory = {
        it: example_of(it) for it, about in Settings.model_fields.items() if about.is_required()
    }
    try:
        Settings(mandatory | {field: text})
    except ValidationError as error:
        return all(details["loc"][0] != field for details in error.errors(include_url=False))
    return bool(text)


def _plain(name: str) -> str:
    return name.upper().replace("-", "_")
