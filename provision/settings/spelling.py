"""Which setting a variable means: by its own name, another spelling, a retired name, or a typo.

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

They are only used for suggestions.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from provision.catalogue import machines, suggestions
from provision.codes import Code
from provision.errors import Alternatives, Problem
from provision.settings import job_options, parsing
from provision.settings.gke import SystemPool
from provision.settings.masking import PRIVATE, mask
from provision.settings.model import BY_VARIABLES, OPTIONS, Settings, example_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

SETTINGS: Final[Mapping[str, str]] = {field.upper(): field for field in BY_VARIABLES}
"""Variable -> the field that it sets."""


@dataclass(frozen=True)
class Spelling:
    """Another name of a setting, from later versions of the predecessor."""

    setting: str  # the setting's own name
    opposite: bool = False  # whether yes means no
    gke_only: bool = False  # whether the name is only for GKE clusters, although the setting is not
    words: str = ""  # what else the name means, for the documentation


SPELLINGS: Final[Mapping[str, Spelling]] = {
    "NFS_FILESTORE_LIST": Spelling("NFS_FILESHARE_LIST"),
    "ENABLE_OPS_AGENT": Spelling("DISABLE_OPS_AGENT", opposite=True, words="the opposite"),
    "GKE_NODE_COUNT_PER_NODE_POOL": Spelling(
        "INSTANCE_COUNT", gke_only=True, words="pools of a fixed size"
    ),
    "GKE_ENABLE_COMPACT_PLACEMENT": Spelling("ENABLE_COMPACT_PLACEMENT", gke_only=True),
}
"""Other names of settings that are accepted."""

WITHOUT_EFFECT: Final = frozenset({"MINIMIZE_TERRAFORM_LOGGING"})
"""Settings of the predecessor that are accepted, and change nothing (ADR 22)."""

_OF_PREDECESSOR: Final = "it is a setting of this tool's predecessor"
_PURCHASE: Final = (
    "this program buys nothing that can't be given back; a person does, with gcloud",
    (
        "RESERVATION_NAME=my-reservation, for what is bought (with this setting, it was called"
        " NAME_PREFIX-calendar); where nothing is, Plan then shows the command for it"
    ),
)
_OF_TEST: Final = "it is an option of Test"
_OF_JOBS: Final = "the options of a job are one setting"
_RETIRED: Final[Mapping[str, tuple[str, str]]] = {
    **{
        name: (_OF_PREDECESSOR, f"use {instead}")
        for name, instead in (
            ("GCS_PATH", "TERRAFORM_GCS_PATH={}"),
            ("COPY_DIR_PATH", "VM_LOCALFILE_DEST_PATH={}"),
            ("STARTUP_SCRIPT", "STARTUP_COMMAND={}, or a script in the copied folder"),
            ("STARTUP_SCRIPT_PATH", "STARTUP_COMMAND, or a script in the copied folder"),
            ("SETUP_RAY", "ORCHESTRATOR_TYPE=ray"),
            ("SLURM_NODE_COUNT_STATIC", "INSTANCE_COUNT"),
            ("GKE_NODE_COUNT", "GKE_MIN_NODE_COUNT and GKE_MAX_NODE_COUNT"),
            ("CUSTOM_NODE_POOL", "GKE_NODE_POOLS"),
        )
    },
    **{
        f"SYSTEM_NODE_POOL_{key.upper()}": (
            "the node pool for system pods is one setting",
            f"SYSTEM_NODE_POOL={key}=<the same>, with its other keys behind commas",
        )
        for key in SystemPool.model_fields
    },
    **{
        f"JOB_{name.upper().replace('-', '_')}": (
            _OF_JOBS,
            f"JOB_OPTIONS=--{name} {{}}, beside its other options",
        )
        for name in job_options.NAMES
    },
    "TEST_NODES": (_OF_TEST, "remove it, and write Test --nodes {}"),
    "TEST_POOL": (_OF_TEST, "remove it, and write Test --pool {}"),
    "TEST_CORDON": (_OF_TEST, "remove it; Test --cordon cordons the nodes at fault"),
    "CALENDAR_DURATION": _PURCHASE,
    "CALENDAR_START": _PURCHASE,
    "GRANT_KMS": (
        "this program changes nobody's rights on a key that it has not made",
        "remove it: where a role is missing, Validate has the commands for whoever keeps the key",
    ),
    "KUEUE_MAX_WAIT": (
        "a job that Create writes waits 12 hours in Google's queue; then it asks again",
        (
            "remove it; a job of your own says another time in its annotation"
            " provreq.kueue.x-k8s.io/ValidUntilSeconds"
        ),
    ),
    "STOP_NOTICE": (
        "a program is told a tenth of MAX_RUN_DURATION before its end, 2 to 10 minutes",
        "remove it; STARTUP_COMMAND and jobs get SIGTERM then, to save a last checkpoint",
    ),
}
"""What was a setting -> why it is none now, and what to write, with {} for its value."""
_WITHOUT_SUCCESSOR: Final[Mapping[str, str]] = {
    "CLEANUP_ON_EXIT": "run Destroy instead: a cluster outlives the container",
    "KUBERNETES_SETUP_CONFIG": "remove it: what GKE needs is set up automatically",
}
_SLURM: Final = (
    "remove it: with ORCHESTRATOR_TYPE=slurm, the nodes are the VMs of INSTANCE_COUNT, all the time"
)

# Variables of other programs whose names look like settings: CI systems, OpenStack, images of
# language runtimes. Slurm sets many variables in its jobs.
_FOREIGN: Final = re.compile(
    "(CI|GOOGLE|OS|TF)_PROJECT_ID|GC[EP]_SERVICE_ACCOUNT|(GO|KEY|RUBY|R)_VERSION"
)
_SLURM_RUNTIME: Final = re.compile(
    "SLURM_(ARRAY|CLUSTER|CONF|CPU|CUDA|DISTRIBUTION|EXPORT|GPU|GTIDS|HET|HINT|JOB|LAUNCH|LOCALID"
    "|MEM|NNODES|NODEID|NODELIST|NODE_ALIASES|NPROCS|NTASKS|OVERCOMMIT|PARTITION|PRIO|PROCID|PTY"
    "|RESTART|SCRIPT|SHARDS|SPANK|SRUN|STEP|SUBMIT|TASK|THREADS|TOPOLOGY|TRES|UMASK|WORKING)"
)

_ALIKE: Final = 0.85
_LONGEST: Final = 2 * max(map(len, (*SETTINGS, *SPELLINGS)))


@dataclass(frozen=True)
class Synonym:
    """Another tool's name for something."""

    setting: str
    of: str = ""  # whose name it is; "" for nobody's in particular
    opposite: bool = False  # whether yes means no
    # whether it is so common a word that in a process environment it says nothing
    common: bool = False
    unit: str = ""  # of a duration: what a number alone counts there
    option: str = ""  # which of the setting's options it is, with the = behind it


_VM_TYPE: Final = "VM_TYPE"
_SECRETS: Final = "SECRETS"
_SWITCHES: Final = frozenset(
    f"ENABLE_{name}"
    for name in ("COMPACT_PLACEMENT", "EXTERNAL_IP", "FLEX_START", "QUEUED_PROVISIONING", "SPOT")
)
_NEVER: Final = frozenset({"-1", "false", "no", "off"})  # of autostop and dstack's durations
_POLICIES: Final = {"spot": "yes", "on-demand": "no"}  # dstack's spot_policy

# Setting, whose names they are, the names: with ? a common word, with ! the opposite, with a unit.
_NAMES: Final = """
VM_TYPE | gcloud and Cluster Toolkit | MACHINE_TYPE
VM_TYPE | Ray | MACHINETYPE GUEST_ACCELERATORS
VM_TYPE | SkyPilot | INSTANCE_TYPE ACCELERATORS GPUS?
VM_TYPE | dstack | INSTANCE_TYPES GPU?
VM_TYPE | xpk | DEVICE_TYPE
VM_TYPE | gcloud | ACCELERATOR
VM_TYPE | Cluster Toolkit | GUEST_ACCELERATOR
VM_TYPE | | NODE_TYPE GPU_TYPE GPU_NAME
GPU_COUNT | Slurm | GPUS_PER_NODE
GPU_COUNT | torchrun | NPROC_PER_NODE?
GPU_COUNT | | NUM_GPUS
INSTANCE_COUNT | SkyPilot, xpk and gcloud | NUM_NODES
INSTANCE_COUNT | xpk | NUM_SLICES
INSTANCE_COUNT | dstack | NODES?
INSTANCE_COUNT | torchrun | NNODES?
INSTANCE_COUNT | gcloud | SIZE?
INSTANCE_COUNT | Cluster Toolkit | STATIC_NODE_COUNT NODE_COUNT_STATIC INITIAL_NODE_COUNT
INSTANCE_COUNT | | NUM_INSTANCES NUM_VMS NODE_COUNT VM_COUNT
GKE_MAX_NODE_COUNT | gcloud | MAX_NODES TOTAL_MAX_NODES
GKE_MAX_NODE_COUNT | Cluster Toolkit | AUTOSCALING_TOTAL_MAX_NODES
GKE_MAX_NODE_COUNT | Ray | MAX_WORKERS?
GKE_MAX_NODE_COUNT | | MAX_NODE_COUNT
GKE_MIN_NODE_COUNT | gcloud | MIN_NODES TOTAL_MIN_NODES
GKE_MIN_NODE_COUNT | Cluster Toolkit | AUTOSCALING_TOTAL_MIN_NODES
GKE_MIN_NODE_COUNT | Ray | MIN_WORKERS?
GKE_MIN_NODE_COUNT | | MIN_NODE_COUNT
ENABLE_SPOT | gcloud, xpk and Cluster Toolkit | SPOT
ENABLE_SPOT | SkyPilot | USE_SPOT
ENABLE_SPOT | dstack | SPOT_POLICY
ENABLE_SPOT | Cluster Toolkit | ENABLE_SPOT_VM
ENABLE_SPOT | gcloud and Ray | PREEMPTIBLE
ENABLE_FLEX_START | xpk | FLEX
ENABLE_FLEX_START | gcloud | FLEX_START
ENABLE_FLEX_START | Cluster Toolkit | DWS_FLEX
ENABLE_QUEUED_PROVISIONING | | QUEUED_PROVISIONING
RESERVATION_NAME | gcloud, xpk and dstack | RESERVATION
MAX_RUN_DURATION | dstack | MAX_DURATION:s
IDLE_TIMEOUT | SkyPilot | AUTOSTOP:m IDLE_MINUTES_TO_AUTOSTOP:m
IDLE_TIMEOUT | dstack | IDLE_DURATION:s
JOB_OPTIONS --time= | | WALLTIME?
MAX_HOURLY_COST | dstack | MAX_PRICE
MAX_COST | | BUDGET MAX_BUDGET
ENABLE_COMPACT_PLACEMENT | Cluster Toolkit | COMPACT_PLACEMENT ENABLE_PLACEMENT
DISK_SIZE_GB | SkyPilot and gcloud | DISK_SIZE
DISK_SIZE_GB | gcloud | BOOT_DISK_SIZE
DISK_SIZE_GB | | BOOT_DISK_SIZE_GB
DISK_TYPE | gcloud | BOOT_DISK_TYPE
DISK_TYPE | SkyPilot | DISK_TIER
IMAGE_NAME | gcloud | IMAGE?
IMAGE_NAME | SkyPilot | IMAGE_ID?
IMAGE_NAME | | VM_IMAGE BOOT_IMAGE
IMAGE_FAMILY_NAME | gcloud | IMAGE_FAMILY
STARTUP_COMMAND | SkyPilot | SETUP?
STARTUP_COMMAND | Ray | SETUP_COMMANDS
STARTUP_COMMAND | | STARTUP_COMMANDS
JOB_ENV | SkyPilot | ENVS?
SECRETS | Hugging Face | HF_TOKEN? HUGGING_FACE_HUB_TOKEN? HUGGINGFACE_TOKEN?
SECRETS | Weights & Biases | WANDB_API_KEY?
SECRETS | OpenAI | OPENAI_API_KEY?
SECRETS | AWS | AWS_SECRET_ACCESS_KEY?
PROJECT_ID | gcloud | PROJECT?
NAME_PREFIX | Ray | CLUSTER_NAME?
NAME_PREFIX | Cluster Toolkit | DEPLOYMENT_NAME?
ZONE | Ray | AVAILABILITY_ZONE?
ZONE | gcloud | LOCATION?
SERVICE_ACCOUNT | Cluster Toolkit | SERVICE_ACCOUNT_EMAIL?
ORCHESTRATOR_TYPE | | ORCHESTRATOR? SCHEDULER?
SUBNETWORK | gcloud | SUBNET?
ENABLE_EXTERNAL_IP | Cluster Toolkit | ENABLE_PUBLIC_IPS DISABLE_PUBLIC_IPS!
ENABLE_EXTERNAL_IP | gcloud | NO_ADDRESS!
ENABLE_EXTERNAL_IP | SkyPilot and Ray | USE_INTERNAL_IPS!
GKE_NODE_POOLS | | NODE_POOLS
ENABLE_KUEUE | | KUEUE?
GKE_VERSION | gcloud | CLUSTER_VERSION
GKE_RELEASE_CHANNEL | gcloud | RELEASE_CHANNEL
AUTHORIZED_CIDR | gcloud | MASTER_AUTHORIZED_NETWORKS
"""


def _synonyms() -> Iterator[tuple[str, Synonym]]:
    for line in _NAMES.strip().splitlines():
        asked, of, names = (part.strip() for part in line.split("|"))
        setting, _, option = asked.partition(" ")
        for name in names.split():
            bare, _, unit = name.rstrip("?!").partition(":")
            signs = {"opposite": name.endswith("!"), "common": name.endswith("?")}
            yield bare, Synonym(setting, of, **signs, unit=unit, option=option)


SYNONYMS: Final[Mapping[str, Synonym]] = dict(_synonyms())
"""Another tool's name -> what it means here."""


def is_known(name: str) -> bool:
    """Whether the variable sets something, by its own name or another spelling."""
    return name in SETTINGS or name in SPELLINGS


def setting_of(name: str) -> str:
    """The setting that a variable sets, by its own name; the variable itself if it sets none."""
    other = SPELLINGS.get(name)
    return other.setting if other else name


def meant_by(name: str) -> str:
    """The setting that somebody who writes an unknown name would miss; "" for none."""
    found = SYNONYMS.get(_plain(name))
    if found:
        return found.setting
    return "JOB_OPTIONS" if _RETIRED.get(name, ("",))[0] is _OF_JOBS else ""


def misnomer(
    name: str, in_file: str, in_environment: str, given: Collection[str]
) -> Problem | None:
    """The problem of an unknown variable; None if it has nothing to do with this tool.

    Of another tool's name in an env file it always has. The process environment belongs to many
    programs: there, a name counts if its value would be one of the setting's, and if the setting is
    not given itself.
    """
    synonym = SYNONYMS.get(_plain(name))
    value = (in_file or in_environment).strip()
    if synonym is not None:
        is_ours = bool(in_file.strip())
        return _of_synonym(name, synonym, value, is_ours=is_ours, is_set=synonym.setting in given)
    what, (why, fix) = "is no longer supported: it would be ignored", _RETIRED.get(name, ("", ""))
    gone = _WITHOUT_SUCCESSOR.get(name)
    if not fix and name.startswith("SLURM_") and not _SLURM_RUNTIME.match(name):
        gone = _SLURM
    if gone:
        what = "is no longer supported and has no replacement: it would be ignored"
        why, fix = _OF_PREDECESSOR, gone
    if fix:
        return Problem(
            code=Code.RETIRED_SETTING,
            setting=name,
            what=what,
            why=why,
            fix=fix.format(mask(value)),
        )
    if _FOREIGN.fullmatch(name) or len(name) > _LONGEST:
        return None
    found = difflib.get_close_matches(name.upper(), (*SETTINGS, *SPELLINGS), n=1, cutoff=_ALIKE)
    for close in found:
        # Nothing is written where the value is not for everybody's eyes.
        is_shown = SETTINGS[setting_of(close)] not in PRIVATE
        return _unknown(
            name,
            f"it looks like {close}",
            f"did you mean {close}?",
            {close: mask(value)} if is_shown else {},
        )
    return None


def _unknown(name: str, why: str, fix: str, meant_settings: Mapping[str, str]) -> Problem:
    return Problem(
        code=Code.UNKNOWN_SETTING,
        setting=name,
        what="is not a setting: it would be ignored",
        why=why,
        fix=fix,
        alternatives=Alternatives(settings=meant_settings),
    )


def _of_synonym(
    name: str, found: Synonym, value: str, *, is_ours: bool, is_set: bool
) -> Problem | None:
    """The problem of a variable with another tool's name; None if it was not meant for us."""
    meant_settings = {} if is_set else _meant_by(found, value)
    if not is_ours and (found.common or is_set or not meant_settings):
        return None
    if found.setting == _SECRETS:
        secret = name.lower().replace("_", "-")
        return _unknown(
            name,
            f"a secret is kept in Secret Manager, where each VM reads it, and {_SECRETS} names"
            " it; its value belongs in no env.list",
            f"{_SECRETS}={name}=projects/<project>/secrets/{secret}, once it is there: gcloud"
            f" secrets create {secret} --data-file=-",
            {},
        )
    verb = "call" if " and " in found.of else "calls"
    elsewhere = f"{found.of} {verb} it so; " if found.of else ""
    own = next(iter(meant_settings), found.setting)
    if found.option:
        own += f"={found.option.rstrip('=')}"
    written = ", ".join(f"{setting}={text}" for setting, text in meant_settings.items())
    return _unknown(
        name,
        f"{elsewhere}its name is {own} here",
        written or _words(name, found, value, is_set=is_set),
        meant_settings,
    )


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
    text = found.option + text + (found.unit if text.isdecimal() else "")
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
        wrong = {str(details["loc"][0]) for details in error.errors(include_url=False)}
        return wrong.isdisjoint({field, *OPTIONS.values()})
    return bool(text)


def _plain(name: str) -> str:
    return name.upper().replace("-", "_")
