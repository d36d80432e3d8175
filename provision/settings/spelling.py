"""The names of variables: settings, other spellings, retired names, and typos."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import Alternatives, Problem
from provision.settings.masking import PRIVATE, mask
from provision.settings.model import Settings
from provision.settings.pools import SystemPool

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {field.upper(): field for field in Settings.model_fields}
)
"""Variable -> the field that it sets."""


@dataclass(frozen=True)
class Spelling:
    """Another name of a setting, from later versions of the predecessor."""

    setting: str  # the setting's own name
    opposite: bool = False  # whether yes means no
    gke_only: bool = False  # whether the name is only for GKE clusters, although the setting is not
    words: str = ""  # what else the name means, for the documentation


SPELLINGS: Final[Mapping[str, Spelling]] = MappingProxyType(
    {
        "NFS_FILESTORE_LIST": Spelling("NFS_FILESHARE_LIST"),
        "ENABLE_OPS_AGENT": Spelling("DISABLE_OPS_AGENT", opposite=True, words="the opposite"),
        "GKE_NODE_COUNT_PER_NODE_POOL": Spelling(
            "INSTANCE_COUNT", gke_only=True, words="pools of a fixed size"
        ),
        "GKE_ENABLE_COMPACT_PLACEMENT": Spelling("ENABLE_COMPACT_PLACEMENT", gke_only=True),
    }
)
"""Other names of settings that are accepted."""

_RETIRED: Final[Mapping[str, str]] = {
    "GCS_PATH": "TERRAFORM_GCS_PATH",
    "COPY_DIR_PATH": "VM_LOCALFILE_DEST_PATH",
    "STARTUP_SCRIPT": "STARTUP_COMMAND, or a script in the copied folder",
    "STARTUP_SCRIPT_PATH": "STARTUP_COMMAND, or a script in the copied folder",
    "SETUP_RAY": "ORCHESTRATOR_TYPE=ray",
    "GKE_NODE_COUNT": "GKE_MIN_NODE_COUNT and GKE_MAX_NODE_COUNT",
    "CUSTOM_NODE_POOL": "GKE_NODE_POOLS",
}
_WITHOUT_SUCCESSOR: Final[Mapping[str, str]] = {
    "CLEANUP_ON_EXIT": "run Destroy instead: a cluster outlives the container",
    "KUBERNETES_SETUP_CONFIG": "remove it: what GKE needs is set up automatically",
}
_PURCHASE: Final = (
    "this program buys nothing that can't be given back; a person does, with gcloud",
    (
        "RESERVATION_NAME=my-reservation, for what is bought (with this setting, it was called"
        " NAME_PREFIX-calendar); where nothing is, Plan then shows the command for it"
    ),
)
_DROPPED: Final[Mapping[str, tuple[str, str]]] = {
    **{
        f"SYSTEM_NODE_POOL_{key.upper()}": (
            "the node pool for system pods is one setting",
            f"SYSTEM_NODE_POOL={key}=<the same>, with its other keys behind commas",
        )
        for key in SystemPool.model_fields
    },
    "CALENDAR_DURATION": _PURCHASE,
    "CALENDAR_START": _PURCHASE,
    "GRANT_KMS": (
        "this program changes nobody's rights on a key that it has not made",
        "remove it: where a role is missing, Validate has the commands for whoever keeps the key",
    ),
    "KUEUE_MAX_WAIT": (
        "a job that Create writes waits 12 hours in Google's queue; then it asks again",
        "remove it; in a job of your own, provreq.kueue.x-k8s.io/ValidUntilSeconds says another",
    ),
    "STOP_NOTICE": (
        "a program is told a tenth of MAX_RUN_DURATION before its end, 2 to 10 minutes",
        "remove it; STARTUP_COMMAND and jobs get SIGTERM then, to save a last checkpoint",
    ),
}
"""What was a setting of this program -> why it is none now, and what to write."""
_SLURM: Final = "remove it: Slurm is not supported"

# Variables of other programs whose names look like settings: CI systems, OpenStack, images of
# language runtimes. Slurm sets many variables in its jobs.
_FOREIGN: Final = frozenset(
    {
        "CI_PROJECT_ID",
        "GCE_SERVICE_ACCOUNT",
        "GCP_SERVICE_ACCOUNT",
        "GOOGLE_PROJECT_ID",
        "GO_VERSION",
        "KEY_VERSION",
        "OS_PROJECT_ID",
        "RUBY_VERSION",
        "R_VERSION",
        "TF_PROJECT_ID",
    }
)
_SLURM_RUNTIME: Final = (
    "SLURM_ARRAY", "SLURM_CLUSTER", "SLURM_CONF", "SLURM_CPU", "SLURM_CUDA", "SLURM_DISTRIBUTION",
    "SLURM_EXPORT", "SLURM_GPU", "SLURM_GTIDS", "SLURM_HET", "SLURM_HINT", "SLURM_JOB",
    "SLURM_JOBID", "SLURM_LAUNCH", "SLURM_LOCALID", "SLURM_MEM", "SLURM_NNODES", "SLURM_NODEID",
    "SLURM_NODELIST", "SLURM_NODE_ALIASES", "SLURM_NPROCS", "SLURM_NTASKS", "SLURM_OVERCOMMIT",
    "SLURM_PARTITION", "SLURM_PRIO", "SLURM_PROCID", "SLURM_PTY", "SLURM_RESTART", "SLURM_SCRIPT",
    "SLURM_SHARDS", "SLURM_SPANK", "SLURM_SRUN", "SLURM_STEP", "SLURM_SUBMIT", "SLURM_TASK",
    "SLURM_THREADS", "SLURM_TOPOLOGY", "SLURM_TRES", "SLURM_UMASK", "SLURM_WORKING",
)  # fmt: skip

_ALIKE: Final = 0.85
_LONGEST: Final = 2 * max(map(len, (*SETTINGS, *SPELLINGS)))


def is_known(name: str) -> bool:
    """Whether the variable sets something, by its own name or another spelling."""
    return name in SETTINGS or name in SPELLINGS


def setting_of(name: str) -> str:
    """The setting that a variable sets, by its own name; the variable itself if it sets none."""
    other = SPELLINGS.get(name)
    return other.setting if other else name


def misnomer(name: str, text: str) -> Problem | None:
    """The problem of an unknown variable; None if it has nothing to do with this tool."""
    if name in _RETIRED:
        return Problem(
            code=Code.RETIRED_SETTING,
            setting=name,
            what="is no longer supported: it would be ignored",
            why="it is a setting of this tool's predecessor",
            fix=f"use {_RETIRED[name]}",
        )
    if name in _DROPPED:
        why, fix = _DROPPED[name]
        return Problem(
            code=Code.RETIRED_SETTING,
            setting=name,
            what="is no longer supported: it would be ignored",
            why=why,
            fix=fix,
        )
    gone = _WITHOUT_SUCCESSOR.get(name)
    if name.startswith("SLURM_") and not name.startswith(_SLURM_RUNTIME):
        gone = _SLURM
    if gone:
        return Problem(
            code=Code.RETIRED_SETTING,
            setting=name,
            what="is no longer supported and has no replacement: it would be ignored",
            why="it is a setting of this tool's predecessor",
            fix=gone,
        )
    close = _closest(name)
    if close is None:
        return None
    return Problem(
        code=Code.UNKNOWN_SETTING,
        setting=name,
        what="is not a setting: it would be ignored",
        why=f"it looks like {close}",
        fix=f"did you mean {close}?",
        alternatives=_written(close, text),
    )


def _written(name: str, text: str) -> Alternatives:
    """The same value under a name that is known; nothing where it is not for everybody's eyes."""
    is_shown = is_known(name) and SETTINGS[setting_of(name)] not in PRIVATE
    return Alternatives(settings={name: mask(text)} if is_shown else {})


def _closest(name: str) -> str | None:
    if name in _FOREIGN or len(name) > _LONGEST:
        return None
    found = difflib.get_close_matches(name.upper(), (*SETTINGS, *SPELLINGS), n=1, cutoff=_ALIKE)
    return found[0] if found else None
