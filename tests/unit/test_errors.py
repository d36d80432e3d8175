import signal

from provision.codes import Code
from provision.errors import CapacityError, CheckError, Interrupted, Problem, assignments


def test_a_fix_begins_with_what_is_to_be_written() -> None:
    for fix, found in {
        "GPU_COUNT=8, and more machines": "GPU_COUNT=8",
        "VM_TYPE=a3-highgpu-8g, or remove ENABLE_FLEX_START": "VM_TYPE=a3-highgpu-8g",
        "GPU_COUNT=0 and GKE_MAX_NODE_COUNT=4": "GPU_COUNT=0 GKE_MAX_NODE_COUNT=4",
        "ACCELERATOR_TYPE=nvidia-b200, GPU_COUNT=8": "ACCELERATOR_TYPE=nvidia-b200 GPU_COUNT=8",
        "DISK_SIZE_GB=200 or more": "DISK_SIZE_GB=200",
        "NETWORK_CONFIG=new_network, or VM_TYPE=n1-standard-4": "NETWORK_CONFIG=new_network",
        "GPU_COUNT=8 and a reservation that has them": "",
        "VM_TYPE=a4x-highgpu-4g and RESERVATION_NAME=<yours>": "",
        "VM_TYPE=a4x-highgpu-4g, RESERVATION_NAME=<yours>; or another": "",
        "IMAGE_NAME=<an image with the vGPU driver>, or another": "",
        "TERRAFORM_GCS_PATH=gs://<an existing bucket>": "",
        "SKIP_CHECKS=quota skips these checks": "",
        "zone=us-central1-b for that pool": "",
        "remove REGION": "",
        "": "",
    }.items():
        assert assignments(fix) == dict(it.split("=") for it in found.split())


def test_a_problem_has_the_usual_code_of_its_error_unless_it_has_one() -> None:
    (own,) = CapacityError("w", code=Code.STOCK_OUT).problems
    assert own.code is Code.STOCK_OUT
    (usual,) = CapacityError("w").problems
    assert usual.code is Code.CAPACITY_REFUSED
    several = CheckError.of([Problem(what="a"), Problem(what="b", code=Code.API_OFF)]).problems
    assert [problem.code for problem in several] == [Code.GOOGLE_REFUSED, Code.API_OFF]


def test_an_interrupt_says_by_its_code_what_it_is() -> None:
    (problem,) = Interrupted(signal.SIGTERM, "stopped").problems
    assert problem.code is Code.INTERRUPTED
