"""Ways to get machines, and what goes with them.

M and its number is a rule of Google's of flex start for groups of VMs, as far as settings can break
it. What the Terraform keeps by construction (M1, M2, M4, M5, M6, M13) is tested beside it.
"""

from provision.catalogue import machines
from tests.unit.conftest import Given
from tests.unit.table import Row, rows

# M11: machines with GPUs and H4D.
TAKEN = [name for name in machines.MACHINE_TYPES if "a4x" not in name and "n1-" not in name]

TABLE = """
ENABLE_SPOT=1 RESERVATION_NAME=r -> ENABLE_SPOT: RESERVATION_NAME
ENABLE_SPOT=1 ENABLE_FLEX_START=1 -> ENABLE_SPOT: ENABLE_FLEX_START
RESERVATION_NAME=r ENABLE_FLEX_START=1 -> RESERVATION_NAME: ENABLE_FLEX_START
RESERVATION_NAME=r VM_TYPE=a3-ultragpu-8g MAX_RUN_DURATION=1d
    -> MAX_RUN_DURATION: can't be combined with a reservation of a3-ultragpu-8g
RESERVATION_NAME=r ENABLE_COMPACT_PLACEMENT=1
    -> ENABLE_COMPACT_PLACEMENT: can't be combined with RESERVATION_NAME
VM_TYPE=n1-standard-8 @T4 ENABLE_COMPACT_PLACEMENT=1
    -> ENABLE_COMPACT_PLACEMENT: is not available for n1-standard-8
VM_TYPE=a4x-highgpu-4g RESERVATION_NAME=r INSTANCE_COUNT=19
    -> INSTANCE_COUNT: is more than one group of A4X can have
ENABLE_COMPACT_PLACEMENT=1 ENABLE_FLEX_START=1
    -> ENABLE_COMPACT_PLACEMENT: flex start for a2-highgpu-2g
MAX_RUN_DURATION=9m -> MAX_RUN_DURATION: too short for a group of VMs

# M3: ten minutes to seven days
@FLEX MAX_RUN_DURATION=(10m|600|7d|604800s) --
@FLEX MAX_RUN_DURATION=599s -> MAX_RUN_DURATION: 10m to 7d
@FLEX MAX_RUN_DURATION=(604801|8d) -> MAX_RUN_DURATION: at most 7d
# M6: a policy that keeps machines close; of groups of A4 and A3 Ultra Google's pages say both
@FLEX VM_TYPE=(a2-highgpu-8g|g2-standard-24|a3-megagpu-8g) ENABLE_COMPACT_PLACEMENT=yes
    -> ENABLE_COMPACT_PLACEMENT: A3 Ultra, A4 and H4D
@FLEX VM_TYPE=(a3-ultragpu-8g|a4-highgpu-8g|h4d-standard-192) ENABLE_COMPACT_PLACEMENT=yes --
@FLEX VM_TYPE=a4-highgpu-8g ENABLE_COMPACT_PLACEMENT=yes
    ~> ENABLE_COMPACT_PLACEMENT: forbids it
@FLEX VM_TYPE=a4-highgpu-8g ENABLE_COMPACT_PLACEMENT=no -- ENABLE_COMPACT_PLACEMENT
@FLEX VM_TYPE=a4-highgpu-8g ENABLE_COMPACT_PLACEMENT=yes ORCHESTRATOR_TYPE=gke ZONE=us-central1-b
    -- ENABLE_COMPACT_PLACEMENT
# M9: a thousand at once, and in a group
(@FLEX|ENABLE_SPOT=no) INSTANCE_COUNT=1000 --
INSTANCE_COUNT=1001 -> INSTANCE_COUNT: a group in a zone | INSTANCE_COUNT=1000
@FLEX INSTANCE_COUNT=1001 -> INSTANCE_COUNT: at most 1000 VMs | INSTANCE_COUNT=1000
# M11: machines that flex start does not have
@FLEX VM_TYPE=a4x-highgpu-4g -> ENABLE_FLEX_START: a4x-highgpu-4g
@FLEX VM_TYPE=a4x-maxgpu-4g-metal -> ENABLE_FLEX_START: a4x-maxgpu-4g-metal
@FLEX VM_TYPE=c3-standard-4 -> ENABLE_FLEX_START: c3-standard-4
@FLEX VM_TYPE=e2-standard-4 -> ENABLE_FLEX_START: e2-standard-4
@FLEX VM_TYPE=(@TAKEN|h4d-x|a9-x) --
@FLEX VM_TYPE=n1-standard-8 @T4 --
# M12: neither reservation nor Spot
@FLEX RESERVATION_NAME=my-reservation -> RESERVATION_NAME: ENABLE_FLEX_START
@FLEX ENABLE_SPOT=yes -> ENABLE_SPOT: ENABLE_FLEX_START
# M17: parts of an A3 High come by Spot or flex start alone
VM_TYPE=@FRACTION (ENABLE_FLEX_START|ENABLE_SPOT)=yes --
VM_TYPE=@FRACTION -> VM_TYPE: is not available on demand | ENABLE_SPOT=yes or ENABLE_FLEX_START=yes
VM_TYPE=@FRACTION RESERVATION_NAME=r
    -> RESERVATION_NAME: is not available for a3-highgpu- | spot or flex start
"""


@rows(
    TABLE,
    FLEX="ENABLE_FLEX_START=yes VM_TYPE=a3-highgpu-8g",
    FRACTION="a3-highgpu-(1g|2g|4g)",
    T4="ACCELERATOR_TYPE=nvidia-tesla-t4 GPU_COUNT=1",
    TAKEN="|".join(TAKEN),
)
def test_machines_are_asked_for_in_a_way_that_google_has(given: Given, row: Row) -> None:
    row.holds(given)


def test_flex_start_runs_a_week(given: Given) -> None:
    case = given(ENABLE_FLEX_START="yes", VM_TYPE="a3-highgpu-8g")

    assert not case.loaded.problems
    assert case["MAX_RUN_DURATION"] == 604_800
