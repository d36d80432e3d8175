"""What runs on machines: images, drivers, commands, notebooks, Ray, and the ways out."""

from tests.unit.conftest import Given
from tests.unit.table import Row, rows

TABLE = """
-- *
IMAGE_NAME=a IMAGE_FAMILY_NAME=b -> IMAGE_FAMILY_NAME: can't be combined with IMAGE_NAME
IMAGE_NAME=common-cu129-ubuntu-2204-nvidia-580-stage -> IMAGE_NAME: is no image
IMAGE_PROJECT=my-images IMAGE_NAME=my-image-stage --

# GPUs that the current drivers have dropped, and images with the open kernel module.
@V100 IMAGE_PROJECT=ml-images
    -> IMAGE_NAME: is required for nvidia-tesla-v100, or IMAGE_FAMILY_NAME is
    | open kernel module | ACCELERATOR_TYPE=nvidia-tesla-t4
@V100 ACCELERATOR_TYPE=nvidia-tesla-p4 GPU_COUNT=4
    -> IMAGE_NAME: is required for nvidia-tesla-p4, or IMAGE_FAMILY_NAME is
@V100 IMAGE_PROJECT=my-images IMAGE_NAME=with-driver-580-closed --
@V100 ORCHESTRATOR_TYPE=gke --
@V100 IMAGE_FAMILY_NAME=common-cu129-ubuntu-2404-nvidia-580 ~> IMAGE_FAMILY_NAME: no driver
@V100 IMAGE_FAMILY_NAME=common-cu128-ubuntu-2204-nvidia-570 ~> IMAGE_FAMILY_NAME: no driver
@V100 IMAGE_NAME=ubuntu-accelerator-2404-amd64-with-nvidia-580-v20260418 ~> IMAGE_NAME: no driver
@V100 IMAGE_NAME=pytorch-latest-cu124-v20250327-ubuntu-2204 -- *
@V100 IMAGE_FAMILY_NAME=common-cu124-ubuntu-2204-nvidia-550 -- *
IMAGE_FAMILY_NAME=common-(cu129-ubuntu-2404-nvidia-580|cu128-ubuntu-2204-nvidia-570) -- *
IMAGE_FAMILY_NAME=common-cu124-ubuntu-2204-nvidia-550 -- *
IMAGE_NAME=ubuntu-accelerator-2404-amd64-with-nvidia-580-v20260418 -- *
IMAGE_NAME=pytorch-latest-cu124-v20250327-ubuntu-2204 -- *

SECURE_BOOT=yes -> SECURE_BOOT: asks for an image whose drivers are signed
SECURE_BOOT=yes IMAGE_PROJECT=ubuntu-os-cloud IMAGE_NAME=u
    -> SECURE_BOOT: asks for an image whose drivers are signed
SECURE_BOOT=yes NETWORK_CONFIG=multi_nic_network @MEGA
    -> SECURE_BOOT: asks for an image whose drivers are signed
SECURE_BOOT=yes @MEGA -- SECURE_BOOT
SECURE_BOOT=yes IMAGE_PROJECT=mine IMAGE_NAME=signed -- SECURE_BOOT
SECURE_BOOT=no -- SECURE_BOOT

@OWN ENABLE_NOTEBOOK=yes ~> ENABLE_NOTEBOOK: images of my-images | ENABLE_NOTEBOOK=no
@OWN ENABLE_NOTEBOOK=no -- *
@OWN -- *
ENABLE_NOTEBOOK=no SHOW_PROXY_URL=yes ~> SHOW_PROXY_URL: ENABLE_NOTEBOOK
ENABLE_NOTEBOOK=no -- *

@RAY RAY_VERSION=2.51.2 -> RAY_VERSION: older than 2.52
@RAY RAY_VERSION=2.52.0 --
@RAY SERVICE_ACCOUNT=default
    ~> SERVICE_ACCOUNT: its token alone | SERVICE_ACCOUNT=dedicated
@RAY -- *
SERVICE_ACCOUNT=default -- *

# Slurm: the first systems with 23.11, and ports that a firewall can close.
@SLURM -- *
@SLURM SERVICE_ACCOUNT=default -> SERVICE_ACCOUNT: leaves Slurm's ports open
    | SERVICE_ACCOUNT=dedicated
@SLURM IMAGE_FAMILY_NAME=common-cu124-ubuntu-2204-nvidia-550
    -> IMAGE_FAMILY_NAME: has a Slurm that is too old | Slurm there is 21.08; 23.11 is needed
    | remove IMAGE_FAMILY_NAME for the newest supported image
@SLURM IMAGE_PROJECT=debian-cloud IMAGE_NAME=debian-12-bookworm-v20260609
    -> IMAGE_NAME: is 22.05; 23.11 is needed | remove IMAGE_NAME and IMAGE_PROJECT
@SLURM IMAGE_PROJECT=debian-cloud IMAGE_FAMILY_NAME=debian-11 -> IMAGE_FAMILY_NAME: older still
@SLURM @V100 IMAGE_PROJECT=ubuntu-os-cloud IMAGE_FAMILY_NAME=ubuntu-2204-lts
    -> IMAGE_FAMILY_NAME: is 21.08 | IMAGE_FAMILY_NAME=ubuntu-2404-lts-amd64
@SLURM IMAGE_PROJECT=debian-cloud IMAGE_FAMILY_NAME=debian-13 -- *
@SLURM IMAGE_PROJECT=ubuntu-os-cloud IMAGE_FAMILY_NAME=ubuntu-2604-lts-amd64 -- *
@SLURM IMAGE_NAME=my-cluster-2204 -- *
@SLURM RAY_VERSION=2.60.0 -> RAY_VERSION: no effect with ORCHESTRATOR_TYPE=slurm
@SLURM JOB_OPTIONS=--image=a/b:1 -> JOB_OPTIONS: no effect | a user who is not root
@SLURM JOB_OPTIONS=(--queue=a|--priority=high) -> JOB_OPTIONS: no effect | one queue

IDLE_TIMEOUT=2h ENABLE_FLEX_START=yes -> IDLE_TIMEOUT: can't be combined with ENABLE_FLEX_START

@PROXY ORCHESTRATOR_TYPE=gke ~> HTTPS_PROXY: alone
HTTPS_PROXY=http://127.0.0.1:8080 ~> HTTPS_PROXY: this machine
@PROXY -- *
NO_PROXY=10.0.0.0/8 ~> NO_PROXY: no effect

# Settings of other kinds of cluster.
GKE_VERSION=1.33. -> GKE_VERSION: no effect with ORCHESTRATOR_TYPE=none
ENABLE_QUEUED_PROVISIONING=yes -> ENABLE_QUEUED_PROVISIONING: no effect
GKE_NODE_COUNT_PER_NODE_POOL=2 -> GKE_NODE_COUNT_PER_NODE_POOL: no effect
RAY_VERSION=2.60.0 -> RAY_VERSION: no effect
ENABLE_QUEUED_PROVISIONING=no ENABLE_RAY_OPERATOR=off --
"""


@rows(
    TABLE,
    MEGA="VM_TYPE=a3-megagpu-8g IMAGE_PROJECT=ubuntu-os-accelerator-images"
    " IMAGE_FAMILY_NAME=ubuntu-accelerator-2404-amd64-with-nvidia-580",
    OWN="IMAGE_PROJECT=my-images IMAGE_NAME=my-image",
    PROXY="HTTPS_PROXY=http://proxy:3128",
    RAY="ORCHESTRATOR_TYPE=ray",
    SLURM="ORCHESTRATOR_TYPE=slurm",
    V100="VM_TYPE=n1-standard-8 ACCELERATOR_TYPE=nvidia-tesla-v100 GPU_COUNT=8",
)
def test_what_is_to_run_is_said_to_run_or_not(given: Given, row: Row) -> None:
    row.holds(given)
