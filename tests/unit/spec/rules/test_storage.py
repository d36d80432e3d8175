"""Where storage may be mounted on the VMs, where the state may be, and which key fits both."""

from provision.catalogue import filestores
from provision.catalogue.filestores import Tier
from tests.unit.conftest import Given
from tests.unit.table import Row, rows

TABLE = """
GCS_MOUNT_LIST=a-b:/x,c-d:/x -> GCS_MOUNT_LIST: mounts /x twice
GCS_MOUNT_LIST=data:/a,more:/b NFS_FILESHARE_LIST=/b:BASIC_SSD
    -> NFS_FILESHARE_LIST: mounts /b twice, in GCS_MOUNT_LIST
GCS_MOUNT_LIST=a-b:/x/y,c-d:/x -> GCS_MOUNT_LIST: has /x/y inside /x
GCS_MOUNT_LIST=a-b:/x NFS_FILESHARE_LIST=/x/y:BASIC_SSD
    -> NFS_FILESHARE_LIST: has /x/y inside /x, in GCS_MOUNT_LIST
GCS_MOUNT_LIST=a-b:/usr -> GCS_MOUNT_LIST: mounts /usr
GCS_MOUNT_LIST=a-b:/etc/x -> GCS_MOUNT_LIST: mounts /etc/x
GCS_MOUNT_LIST=a-b:/(usr/local/lib|usr/local|usr/share/x|bin/x|var/lib/aiinfra|var/spool/cron|snap)
    -> GCS_MOUNT_LIST: the VMs need /
NFS_FILESHARE_LIST=/home/ann/.ssh:BASIC_SSD -> NFS_FILESHARE_LIST: mounts /home/ann/.ssh
VM_LOCALFILE_DEST_PATH=/(etc|etc/cron.d|root/.ssh|home/ann/.ssh|usr|usr/local/bin|var/spool/cron|boot)
    -> VM_LOCALFILE_DEST_PATH: rest on
VM_LOCALFILE_DEST_PATH=/(root/train|home/jupyter|srv/files|usr/aiinfra/copy|usr/x|etc-2|data/etc) --
GCS_MOUNT_LIST=a-b:/opt/aiinfra -> GCS_MOUNT_LIST: mounts /opt/aiinfra
NFS_FILESHARE_LIST=/home:BASIC_SSD -> NFS_FILESHARE_LIST: mounts /home
# A path that only begins like another is fine.
GCS_MOUNT_LIST=a-b:/mnt/x,c-d:/mnt/x-2,e-f:/usr/trainfiles,g-h:/home/jupyter/data
    NFS_FILESHARE_LIST=/usr/nfsshare1:BASIC_SSD -- *

VM_TYPE=a3-highgpu-8g GCS_MOUNT_LIST=a-b:/mnt(|/localssd|/localssd/data)
    -> GCS_MOUNT_LIST: the VMs need /mnt/localssd
VM_TYPE=a2-highgpu-1g GCS_MOUNT_LIST=a-b:/mnt(|/localssd|/localssd/data) --
VM_TYPE=a3-highgpu-8g GCS_MOUNT_LIST=a-b:/mnt(|/localssd|/localssd/data) ORCHESTRATOR_TYPE=gke
    GKE_MAX_NODE_COUNT=1 GKE_MIN_NODE_COUNT=0 -- GCS_MOUNT_LIST

@CACHE VM_TYPE=a2-highgpu-8g -> GCS_CACHE_GB: needs Local SSDs, which a2-highgpu-8g does not have
@CACHE VM_TYPE=a3-highgpu-8g GCS_CACHE_GB=3001 -> GCS_CACHE_GB: is more than the Local SSDs of
@CACHE ORCHESTRATOR_TYPE=gke
    GKE_NODE_POOLS=name=a,vm_type=a3-highgpu-8g,max=1;name=b,vm_type=a2-highgpu-1g,max=1
    -> GCS_CACHE_GB: needs Local SSDs, which a2-highgpu-1g does not have
@CACHE VM_TYPE=(a3-highgpu-8g|a9-highgpu-8g) GCS_CACHE_GB=3000 -- GCS_CACHE_GB
GCS_CACHE_GB=100 GCS_OPTIONS=ro ~> GCS_CACHE_GB: no effect
GCS_CACHE_GB=100 GCS_OPTIONS=ro ~> GCS_OPTIONS: no effect
GCS_MOUNT_LIST=a-b:/mnt/x VM_LOCALFILE_DEST_PATH=/mnt/x/code
    ~> VM_LOCALFILE_DEST_PATH: is inside the mount /mnt/x

@KEY/europe-west4/@K -> KMS_KEY: is in europe-west4
@KEY/global/@K ORCHESTRATOR_TYPE=gke -> KMS_KEY: is in global
@KEY/us-central1/@K NFS_FILESHARE_LIST=/s:BASIC_SSD
    -> NFS_FILESHARE_LIST: has a share of tier BASIC_SSD, which takes no key
@KEY/us-central1/@K NFS_FILESHARE_LIST=/s:ZONAL ORCHESTRATOR_TYPE=gke
    -- KMS_KEY, NFS_FILESHARE_LIST
@KEY/(us|global)/@K -- KMS_KEY
@KEY/europe-west4/@K ZONE=us-central1-a,europe-west4-b -- KMS_KEY

PROJECT_ID=example.com:project-1 -> TERRAFORM_GCS_PATH: is required
PROJECT_ID=example.com:project-1 TERRAFORM_GCS_PATH=gs://bucket --
"""


@rows(
    TABLE,
    CACHE="GCS_MOUNT_LIST=a-b:/mnt/x,c-d:/mnt/y GCS_CACHE_GB=100",
    K="keyRings/r/cryptoKeys/k",
    KEY="KMS_KEY=projects/my-keys/locations",
)
def test_what_keeps_data_hides_nothing_and_has_its_place(given: Given, row: Row) -> None:
    row.holds(given)


def test_shares_of_regional_tiers_alone_are_made_in_a_region() -> None:
    regional = {tier for tier in Tier if filestores.is_regional(tier)}

    assert regional == {Tier.ENTERPRISE, Tier.REGIONAL}
