import pytest

from provision.settings import spelling
from tests.unit.conftest import Given, InFile
from tests.unit.test_mistakes import TRIED

CASES = [
    ("MACHINE_TYPE", "a2-highgpu-1g", "VM_TYPE=a2-highgpu-1g"),
    ("MACHINE_TYPE", "n1-standard-8", "VM_TYPE=n1-standard-8"),
    ("INSTANCE_TYPE", "e2-standard-4", "VM_TYPE=e2-standard-4"),
    ("DEVICE_TYPE", "h100-80gb-8", "VM_TYPE=a3-highgpu-8g"),
    ("GPU_TYPE", "a100", "VM_TYPE=a2-highgpu-1g"),
    ("GPU_TYPE", "t4", "VM_TYPE=n1-standard-8, ACCELERATOR_TYPE=nvidia-tesla-t4, GPU_COUNT=1"),
    ("ACCELERATOR", "nvidia-tesla-t4", "VM_TYPE=n1-standard-8, ACCELERATOR_TYPE=nvidia-tesla-t4"),
    ("ACCELERATORS", "H100:8", "VM_TYPE=a3-highgpu-8g"),
    ("NUM_NODES", "4", "INSTANCE_COUNT=4"),
    ("NODE_COUNT", "8", "INSTANCE_COUNT=8"),
    ("NUM_SLICES", "2", "INSTANCE_COUNT=2"),
    ("MAX_NODES", "16", "GKE_MAX_NODE_COUNT=16"),
    ("SPOT", "yes", "ENABLE_SPOT=yes"),
    ("USE_SPOT", "true", "ENABLE_SPOT=yes"),
    ("SPOT_POLICY", "spot", "ENABLE_SPOT=yes"),
    ("SPOT_POLICY", "on-demand", "ENABLE_SPOT=no"),
    ("SPOT_POLICY", "auto", "CAPACITY=spot,on_demand"),
    ("FLEX_START", "1", "ENABLE_FLEX_START=yes"),
    ("RESERVATION", "r-1", "RESERVATION_NAME=r-1"),
    ("MAX_DURATION", "6h", "MAX_RUN_DURATION=6h"),
    ("MAX_DURATION", "7200", "MAX_RUN_DURATION=7200s"),
    ("AUTOSTOP", "30m", "IDLE_TIMEOUT=30m"),
    ("AUTOSTOP", "30", "IDLE_TIMEOUT=30m"),
    ("IDLE_DURATION", "3600", "IDLE_TIMEOUT=3600s"),
    ("MAX_PRICE", "100", "MAX_HOURLY_COST=100"),
    ("DISK_SIZE", "500", "DISK_SIZE_GB=500"),
    ("BOOT_DISK_SIZE", "500GB", "DISK_SIZE_GB=500GB"),
    ("USE_INTERNAL_IPS", "true", "ENABLE_EXTERNAL_IP=no"),
    ("DISABLE_PUBLIC_IPS", "no", "ENABLE_EXTERNAL_IP=yes"),
    ("machine-type", "a2-highgpu-1g", "VM_TYPE=a2-highgpu-1g"),
]


@pytest.mark.parametrize(("name", "value", "fix"), CASES)
def test_another_tool_s_name_is_an_error_that_says_which_setting_is_meant(
    in_file: InFile, given: Given, name: str, value: str, fix: str
) -> None:
    problem = in_file(f"{name}={value}\n").problem(name)

    assert "is not a setting" in problem.what
    assert problem.fix.startswith(fix)
    told = [f"{setting}={text}" for setting, text in problem.alternatives.settings.items()]
    assert problem.fix == ", ".join(told)
    # In the environment only where its value fits, as these do.
    assert given(**{name: value}).problem(name).fix == problem.fix


@pytest.mark.parametrize(
    "environ",
    """MACHINE_TYPE=x86_64
NODE_TYPE=worker
DEVICE_TYPE=cuda
GPU_TYPE=mps
SPOT=https://spot.example.com
NUM_NODES=auto
DISK_SIZE=large
IMAGE=my-image
PROJECT=my-project
GPUS=0,1
SIZE=4
CLUSTER_NAME=prod
NUM_NODES=2 INSTANCE_COUNT=4
NUM_NODES=2 ORCHESTRATOR_TYPE=gke GKE_NODE_COUNT_PER_NODE_POOL=4
SPOT=
AIINFRA_IMAGE=yes CI=true GPUS=8 DEPLOYMENT_NAME=web OTHER=x
AIINFRA_IMAGE=yes HOSTNAME=c https_proxy=http://p WEB_PORT_80_TCP=x GOOGLE_X=y
AIINFRA_IMAGE=yes HTTP_PROXY=http://p all_proxy=socks5://p""".splitlines(),
)
def test_in_the_environment_and_the_image_s_what_is_another_program_s_is_left_alone(
    given: Given, environ: str
) -> None:
    case = given(**dict(it.split("=", 1) for it in environ.split()))
    assert not case.loaded.problems
    assert not case.noted


def test_in_a_file_even_a_value_that_does_not_fit_is_an_error(in_file: InFile) -> None:
    problem = in_file("NUM_NODES=auto\n").problem("NUM_NODES")

    assert problem.fix == "INSTANCE_COUNT=<value>, such as 4"
    assert "SkyPilot, xpk and gcloud call it so" in problem.why


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("AUTOSTOP=false", "remove AUTOSTOP: IDLE_TIMEOUT is off unless you set it"),
        ("IDLE_DURATION=-1", "remove IDLE_DURATION: IDLE_TIMEOUT is off unless you set it"),
        ("AUTOSTOP=true", "IDLE_TIMEOUT=<value>, such as 2h"),
        ("AUTOSTOP=5", "IDLE_TIMEOUT=<value>, such as 2h"),
        ("WALLTIME=24:00:00", "JOB_OPTIONS=<value>, such as --nodes 4 --time 2h"),
        ("PROJECT=another-project", "remove PROJECT: PROJECT_ID is set"),
        (
            "SETUP=pip install x",
            "write STARTUP_COMMAND in place of SETUP, and leave the value as it is",
        ),
    ],
)
def test_what_another_tool_s_value_would_be_here_is_never_guessed(
    in_file: InFile, line: str, fix: str
) -> None:
    name = line.partition("=")[0]
    case = in_file(f"{line}\n")

    assert case.problem(name).fix == fix
    assert not case.problem(name).alternatives.settings
    assert case.refused == {name}


def test_a_value_that_may_be_a_secret_is_not_told(in_file: InFile) -> None:
    token = "ghp_" + 36 * "a"

    assert token not in str(in_file(f"RESERVATION={token}\n").loaded.problems)


def test_each_name_means_a_setting_and_is_none_itself() -> None:
    known = set(spelling.SETTINGS)

    assert {it.setting for it in spelling.SYNONYMS.values()} <= known
    assert not [name for name in spelling.SYNONYMS if spelling.is_known(name)]


@pytest.mark.parametrize("lines", TRIED)
def test_what_was_given_to_the_image_is_answered_as_what_stands_in_a_file(
    given: Given, in_file: InFile, lines: str
) -> None:
    name, _, value = lines.split(maxsplit=1)[0].partition("=")
    there = in_file(f"{name}={value}\n").problem(name)
    assert given(AIINFRA_IMAGE="yes", **{name: value}).problem(name) == there
    setting = TRIED[lines].partition("=")[0]
    assert setting in there.fix or f"its name is {setting}" in there.why, there
    assert "would be ignored" in there.what


def test_the_image_says_which_names_it_does_not_know(given: Given) -> None:
    assert given(AIINFRA_IMAGE="yes", FROBNICATE="1").note("FROBNICATE").why == "it is ignored"


def test_a_token_leads_to_secret_manager_and_is_not_told(in_file: InFile) -> None:
    problem = in_file("WANDB_API_KEY=s3cr3tv4lue\n").problem("WANDB_API_KEY")

    assert problem.fix.startswith("SECRETS=WANDB_API_KEY=projects/<project>/secrets/wandb-api-key")
    assert "s3cr3tv4lue" not in str(problem)
