"""Each setting either names something that a rehearsal presumes, or is known to name nothing."""

from provision.settings import spelling
from provision.settings.model import OF_PROGRAM
from rehearsal.presumption import named

NAMES_NOTHING = {
    # What the program makes, or how.
    *(name for name in map(str.upper, OF_PROGRAM) if name in spelling.SETTINGS),
    "APT_MIRROR",
    "AUTHORIZED_CIDR",
    "CA_BUNDLE",
    "HTTPS_PROXY",
    "IMAGE_MIRROR",
    "NO_PROXY",
    "PIP_INDEX",
    "CAPACITY",
    "DISABLE_OPS_AGENT",
    "DISK_SIZE_GB",
    "DISK_TYPE",
    "MAKE_FIREWALL",
    "ENABLE_COMPACT_PLACEMENT",
    "ENABLE_EXTERNAL_IP",
    "ENABLE_FLEX_START",
    "ENABLE_KUEUE",
    "ENABLE_NODE_SSH",
    "ENABLE_NOTEBOOK",
    "ENABLE_QUEUED_PROVISIONING",
    "ENABLE_RAY_OPERATOR",
    "ENABLE_SPOT",
    "GCS_CACHE_GB",
    "GCS_OPTIONS",
    "GKE_MAINTENANCE",
    "GKE_MAX_PODS_PER_NODE",
    "GKE_MIN_NODE_COUNT",
    "GKE_RELEASE_CHANNEL",
    "IDLE_TIMEOUT",
    "GKE_VERSION",
    "GPU_DRIVER_VERSION",
    "KUEUE_GPU_QUOTA",
    "KUEUE_QUEUES",
    "LABELS",
    "MAX_RUN_DURATION",
    "METADATA",
    "NAME_PREFIX",
    "NFS_FILESHARE_LIST",
    "ORCHESTRATOR_TYPE",
    "OS_UPDATES",
    "RAY_VERSION",
    "SECURE_BOOT",
    "STARTUP_COMMAND",
    "STARTUP_RESTART",
    "SYSTEM_NODE_POOL",
    "TEAM_DEFAULTS",
    "VM_LOCALFILE_DEST_PATH",
    # What it names is in each project from the start, or has settings of its own.
    "NETWORK_CONFIG",
    "NETWORK_RANGE",
}


def test_each_setting_is_presumed_or_names_nothing() -> None:
    every = set(spelling.SETTINGS)
    assert every - named.SETTINGS - NAMES_NOTHING == set()
    assert (named.SETTINGS | NAMES_NOTHING) - every == set()
    assert set() == named.SETTINGS & NAMES_NOTHING
