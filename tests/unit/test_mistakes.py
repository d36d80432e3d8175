"""Mistakes that people made when they tried the program as new users, and what each is answered.

The inputs are those that were once answered badly. Each is run as typed, without asking Google;
what Google's answers decide is in preflight/test_offers.py.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from provision import cli
from provision.settings import spelling
from tests.unit import table
from tests.unit.conftest import MANDATORY

GKE = "ORCHESTRATOR_TYPE=gke"


@dataclass(frozen=True)
class Answer:
    """What the program says."""

    code: int
    problems: list[str]  # the problems, each as one text
    notes: list[str]  # the notes, in the same form
    settings: dict[str, Any]


@pytest.fixture
def typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs a command line with an env file `env.list` of these lines and this environment."""

    def run(line: str, lines: str = "", environ: dict[str, str] | None = None) -> Answer:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "binary").write_bytes(b"\x7fELF\0\1\2")
        mandatory = "".join(f"{name}={value}\n" for name, value in MANDATORY.items())
        (tmp_path / "env.list").write_text(mandatory + lines.replace(" ", "\n") + "\n")
        code = cli.main([*line.split(), "--output=json"], environ or {})
        document = json.loads(capsys.readouterr().out)
        told = {
            kind: [
                " | ".join(filter(None, (it["setting"], it["what"], it["why"], it["fix"])))
                for it in document[kind]
            ]
            for kind in ("problems", "notes")
        }
        return Answer(code, told["problems"], told["notes"], document.get("settings", {}))

    return run


# another tool's line, with more lines that it needs -> what it means here
TRIED = {
    line: meant
    for line, (meant,) in table.answers(
        """
MACHINE_TYPE=a3-highgpu-8g -> VM_TYPE=a3-highgpu-8g
MACHINETYPE=n1-standard-8 ACCELERATOR_TYPE=nvidia-tesla-t4 GPU_COUNT=1 -> VM_TYPE=n1-standard-8
INSTANCE_TYPE=a3-highgpu-8g -> VM_TYPE=a3-highgpu-8g
INSTANCE_TYPES=a3-highgpu-8g -> VM_TYPE=a3-highgpu-8g
DEVICE_TYPE=h100-80gb-8 -> VM_TYPE=a3-highgpu-8g
NODE_TYPE=g2-standard-8 -> VM_TYPE=g2-standard-8
GPU=H100:8 -> VM_TYPE=a3-highgpu-8g
GPUS=L4:1 -> VM_TYPE=g2-standard-4
GPU_TYPE=h200 -> VM_TYPE=a3-ultragpu-8g
GPU_NAME=t4 -> VM_TYPE=n1-standard-8 ACCELERATOR_TYPE=nvidia-tesla-t4 GPU_COUNT=1
ACCELERATOR=nvidia-tesla-t4 -> VM_TYPE=n1-standard-8 ACCELERATOR_TYPE=nvidia-tesla-t4
    GPU_COUNT=1
ACCELERATORS=H100:8 -> VM_TYPE=a3-highgpu-8g
GUEST_ACCELERATOR=nvidia-l4 -> VM_TYPE=g2-standard-4
GUEST_ACCELERATORS=nvidia-tesla-a100 -> VM_TYPE=a2-highgpu-1g
NUM_GPUS=8 VM_TYPE=a3-highgpu-8g -> GPU_COUNT=8
GPUS_PER_NODE=8 VM_TYPE=a3-highgpu-8g -> GPU_COUNT=8
NPROC_PER_NODE=8 VM_TYPE=a3-highgpu-8g -> GPU_COUNT=8
NUM_NODES=4 -> INSTANCE_COUNT=4
NUM_SLICES=4 -> INSTANCE_COUNT=4
NUM_INSTANCES=4 -> INSTANCE_COUNT=4
NUM_VMS=4 -> INSTANCE_COUNT=4
NODES=4 -> INSTANCE_COUNT=4
NNODES=4 -> INSTANCE_COUNT=4
SIZE=4 -> INSTANCE_COUNT=4
NODE_COUNT=4 -> INSTANCE_COUNT=4
VM_COUNT=4 -> INSTANCE_COUNT=4
STATIC_NODE_COUNT=4 -> INSTANCE_COUNT=4
NODE_COUNT_STATIC=4 -> INSTANCE_COUNT=4
INITIAL_NODE_COUNT=4 -> INSTANCE_COUNT=4
MAX_NODES=4 ORCHESTRATOR_TYPE=gke GKE_MIN_NODE_COUNT=0 -> GKE_MAX_NODE_COUNT=4
MAX_NODE_COUNT=4 ORCHESTRATOR_TYPE=gke GKE_MIN_NODE_COUNT=0 -> GKE_MAX_NODE_COUNT=4
TOTAL_MAX_NODES=4 ORCHESTRATOR_TYPE=gke GKE_MIN_NODE_COUNT=0 -> GKE_MAX_NODE_COUNT=4
MAX_WORKERS=4 ORCHESTRATOR_TYPE=gke GKE_MIN_NODE_COUNT=0 -> GKE_MAX_NODE_COUNT=4
AUTOSCALING_TOTAL_MAX_NODES=4 ORCHESTRATOR_TYPE=gke GKE_MIN_NODE_COUNT=0 -> GKE_MAX_NODE_COUNT=4
MIN_NODES=1 ORCHESTRATOR_TYPE=gke GKE_MAX_NODE_COUNT=4 -> GKE_MIN_NODE_COUNT=1
MIN_NODE_COUNT=1 ORCHESTRATOR_TYPE=gke GKE_MAX_NODE_COUNT=4 -> GKE_MIN_NODE_COUNT=1
TOTAL_MIN_NODES=1 ORCHESTRATOR_TYPE=gke GKE_MAX_NODE_COUNT=4 -> GKE_MIN_NODE_COUNT=1
MIN_WORKERS=1 ORCHESTRATOR_TYPE=gke GKE_MAX_NODE_COUNT=4 -> GKE_MIN_NODE_COUNT=1
AUTOSCALING_TOTAL_MIN_NODES=1 ORCHESTRATOR_TYPE=gke GKE_MAX_NODE_COUNT=4 -> GKE_MIN_NODE_COUNT=1
SPOT=yes -> ENABLE_SPOT=yes
USE_SPOT=true -> ENABLE_SPOT=yes
SPOT_POLICY=auto -> CAPACITY=spot,on_demand
ENABLE_SPOT_VM=true -> ENABLE_SPOT=yes
PREEMPTIBLE=true -> ENABLE_SPOT=yes
FLEX=yes VM_TYPE=a3-highgpu-8g -> ENABLE_FLEX_START=yes
FLEX_START=yes VM_TYPE=a3-highgpu-8g -> ENABLE_FLEX_START=yes
DWS_FLEX=true VM_TYPE=a3-highgpu-8g -> ENABLE_FLEX_START=yes
QUEUED_PROVISIONING=yes ORCHESTRATOR_TYPE=gke VM_TYPE=a3-highgpu-8g ->
    ENABLE_QUEUED_PROVISIONING=yes
RESERVATION=r-1 VM_TYPE=a3-highgpu-8g -> RESERVATION_NAME=r-1
MAX_DURATION=21600 -> MAX_RUN_DURATION=6h
AUTOSTOP=30 -> IDLE_TIMEOUT=30m
IDLE_MINUTES_TO_AUTOSTOP=30 -> IDLE_TIMEOUT=30m
IDLE_DURATION=3600 -> IDLE_TIMEOUT=1h
WALLTIME=12h -> JOB_OPTIONS=--time=12h
MAX_PRICE=100 -> MAX_HOURLY_COST=100
BUDGET=500 -> MAX_COST=500
MAX_BUDGET=500 -> MAX_COST=500
COMPACT_PLACEMENT=true -> ENABLE_COMPACT_PLACEMENT=yes
ENABLE_PLACEMENT=true -> ENABLE_COMPACT_PLACEMENT=yes
DISK_SIZE=500 -> DISK_SIZE_GB=500
BOOT_DISK_SIZE=500GB -> DISK_SIZE_GB=500
BOOT_DISK_SIZE_GB=500 -> DISK_SIZE_GB=500
BOOT_DISK_TYPE=pd-balanced -> DISK_TYPE=pd-balanced
DISK_TIER=pd-balanced -> DISK_TYPE=pd-balanced
IMAGE=my-image -> IMAGE_NAME=my-image
IMAGE_ID=my-image -> IMAGE_NAME=my-image
IMAGE_FAMILY=my-family -> IMAGE_FAMILY_NAME=my-family
VM_IMAGE=my-image -> IMAGE_NAME=my-image
BOOT_IMAGE=my-image -> IMAGE_NAME=my-image
SETUP=hostname -> STARTUP_COMMAND=hostname
SETUP_COMMANDS=hostname -> STARTUP_COMMAND=hostname
STARTUP_COMMANDS=hostname -> STARTUP_COMMAND=hostname
ENVS=A=b -> JOB_ENV=A=b
HF_TOKEN=x -> SECRETS=HF_TOKEN=projects/my-project/secrets/hf-token
HUGGING_FACE_HUB_TOKEN=x ->
    SECRETS=HUGGING_FACE_HUB_TOKEN=projects/my-project/secrets/hugging-face-hub-token
HUGGINGFACE_TOKEN=x -> SECRETS=HUGGINGFACE_TOKEN=projects/my-project/secrets/huggingface-token
WANDB_API_KEY=x -> SECRETS=WANDB_API_KEY=projects/my-project/secrets/wandb-api-key
OPENAI_API_KEY=x -> SECRETS=OPENAI_API_KEY=projects/my-project/secrets/openai-api-key
AWS_SECRET_ACCESS_KEY=x ->
    SECRETS=AWS_SECRET_ACCESS_KEY=projects/my-project/secrets/aws-secret-access-key
PROJECT=other-project -> PROJECT_ID=other-project
CLUSTER_NAME=other -> NAME_PREFIX=other
DEPLOYMENT_NAME=other -> NAME_PREFIX=other
AVAILABILITY_ZONE=us-central1-f -> ZONE=us-central1-f
LOCATION=us-central1-f -> ZONE=us-central1-f
SERVICE_ACCOUNT_EMAIL=a@p.iam.gserviceaccount.com -> SERVICE_ACCOUNT=a@p.iam.gserviceaccount.com
ORCHESTRATOR=gke -> ORCHESTRATOR_TYPE=gke
SCHEDULER=slurm -> ORCHESTRATOR_TYPE=slurm
SUBNET=gpus NETWORK_CONFIG=existing NETWORK=n -> SUBNETWORK=gpus
ENABLE_PUBLIC_IPS=false -> ENABLE_EXTERNAL_IP=no
DISABLE_PUBLIC_IPS=true -> ENABLE_EXTERNAL_IP=no
NO_ADDRESS=yes -> ENABLE_EXTERNAL_IP=no
USE_INTERNAL_IPS=true -> ENABLE_EXTERNAL_IP=no
NODE_POOLS=name=a,vm_type=a2-highgpu-1g ORCHESTRATOR_TYPE=gke ->
    GKE_NODE_POOLS=name=a,vm_type=a2-highgpu-1g
KUEUE=no ORCHESTRATOR_TYPE=gke -> ENABLE_KUEUE=no
CLUSTER_VERSION=1.35 ORCHESTRATOR_TYPE=gke -> GKE_VERSION=1.35
RELEASE_CHANNEL=rapid ORCHESTRATOR_TYPE=gke -> GKE_RELEASE_CHANNEL=RAPID
MASTER_AUTHORIZED_NETWORKS=10.0.0.0/8 ORCHESTRATOR_TYPE=gke -> AUTHORIZED_CIDR=10.0.0.0/8
"""
    ).items()
}


def test_each_of_another_tool_s_names_was_tried() -> None:
    assert sorted(it.partition("=")[0] for it in TRIED) == sorted(spelling.SYNONYMS)


@pytest.mark.parametrize("lines", TRIED)
def test_the_fix_of_another_tool_s_name_passes_and_means_the_same(
    typed: Any, monkeypatch: pytest.MonkeyPatch, lines: str
) -> None:
    theirs, *others = lines.split()
    name, _, value = theirs.partition("=")
    ours = TRIED[lines]
    monkeypatch.delitem(MANDATORY, ours.partition("=")[0], raising=False)

    told = typed("Validate --offline --env-file env.list", lines)
    (problem,) = told.problems
    assert told.code == 2
    fix = problem.rpartition(" | ")[2]

    # As somebody does what it says: "A=x, B=y"; "A=x, once ..."; "write A in place of B, ...".
    written = fix.partition(", once")[0].replace("<project>", "my-project").split(", ")
    if fix.startswith("write "):
        written = [f"{fix.split()[1]}={value}"]
    answer = typed("Validate --offline --env-file env.list", " ".join([*written, *others]))
    meant = typed("Validate --offline --env-file env.list", " ".join([ours, *others]))
    assert (answer.code, answer.problems) == (0, [])
    assert answer.settings == meant.settings
    assert name not in answer.settings


@pytest.mark.parametrize(
    "line",
    [
        "STARTUP_COMMAND=ls",
        "METADATA=a=b",
        "IMAGE_NAME=my-image",
        "VM_LOCALFILE_DEST_PATH=/data",
        "ENABLE_NOTEBOOK=yes",
    ],
)
def test_settings_of_vms_on_gke_get_the_error_that_gke_s_get_on_vms(typed: Any, line: str) -> None:
    answer = typed("Validate --offline --env-file env.list", f"{GKE} {line}")

    assert answer.code == 2
    (problem,) = answer.problems
    assert "has no effect with ORCHESTRATOR_TYPE=gke" in problem
    assert f"remove {line.partition('=')[0]}" in problem


# A line of the env.list, or a command line with @ for that file, and then a line of it ->
# what the one problem says, in this order.
ONE_PROBLEM = table.answers(
    """
Delete @ -> 'Delete' | did you mean Destroy?
@ & ACTION=Delete -> ACTION | ACTION=Destroy
Down @ -> did you mean Destroy?
Up @ -> did you mean Create?
Apply @ -> did you mean Create?
Launch @ -> did you mean Create?
--env-file nowhere.list -> can't be read | No such file
--env-file folder -> can't be read | Is a directory
--env-file binary -> can't be read | not a text file
--evn-file env.list Create -> did you mean --env-file?
--rehearse stockout Create @ -> did you mean --rehearse=stockout?
Plan @ --copy nowhere -> no folder nowhere | check the path after --copy
Bake My_Image @ -> can't be the name of an image | Bake my-image
Logs -n 9 @ -> '-n' | --tail LINES
Jobs --num-nodes 2 @ -> --nodes NUMBER
Plan --out plan @ -> did you mean --output
Create Destroy @ -> only one action
--json Create @ -> did you mean --output json?
Create --dry-run @ -> did you mean Plan?
VM_TYPE=H100 -> is a GPU | a3-highgpu-8g | VM_TYPE=a3-highgpu-8g
VM_TYPE=A100 -> is a GPU | a2-highgpu-2g, a2-highgpu-4g | VM_TYPE=a2-highgpu-1g
ACCELERATOR_TYPE=T4 -> 'T4' | ACCELERATOR_TYPE=nvidia-tesla-t4
ACCELERATOR_TYPE=A100 -> 'A100' | ACCELERATOR_TYPE=nvidia-tesla-a100
INSTANCE_COUNT=0 -> at least 1 | INSTANCE_COUNT=1
MAX_RUN_DURATION=14d -> at most 7d | MAX_RUN_DURATION=7d
MAX_RUN_DURATION=4 -> '4' has no unit: 4h or 4m? | at least 600 | MAX_RUN_DURATION=<4h or 4m>
ORCHESTRATOR_TYPE=kubernetes -> ORCHESTRATOR_TYPE=gke
ORCHESTRATOR_TYPE=slurm-gcp -> none, ray, slurm, gke | ORCHESTRATOR_TYPE=slurm
SPOT_POLICY=auto -> its name is CAPACITY here | CAPACITY=spot,on_demand
BUDGET=500 -> its name is MAX_COST here | MAX_COST=500
FROBNICATE=500 -> is not a setting | --help settings | remove it, or put # before it
GPUS=8 -> SkyPilot | VM_TYPE=a2-highgpu-8g
GCS_MOUNT_LIST=gs://my-bucket:/mnt -> without gs:// | GCS_MOUNT_LIST=my-bucket:/mnt
GKE_MAX_NODE_COUNT=4 -> has no effect with ORCHESTRATOR_TYPE=none
"""
)


@pytest.mark.parametrize("case", ONE_PROBLEM)
def test_a_mistake_is_one_problem_that_says_what_was_meant(typed: Any, case: str) -> None:
    line, _, lines = case.partition(" & ")
    if "=" in line.partition(" ")[0]:
        line, lines = "Validate --offline @", line
    answer = typed(line.replace("@", "--env-file env.list"), lines)

    assert answer.code == 2
    (problem,) = answer.problems
    at = [problem.find(word) for word in ONE_PROBLEM[case][0].split(" | ")]
    assert -1 not in at, problem
    assert at == sorted(at)


@pytest.mark.parametrize(
    ("lines", "fix"),
    [
        ("ORCHESTRATOR=gke ENABLE_KUEUE=yes GKE_MAX_NODE_COUNT=4 GKE_MIN_NODE_COUNT=0", "gke"),
        ("VM_TYP=a3-highgpu-8g GPU_COUNT=8", "did you mean VM_TYPE?"),
        ("MACHINE_TYPE=a3-ultragpu-8g GPU_COUNT=8", "VM_TYPE=a3-ultragpu-8g"),
        ("ACCELERATORS=whatever GPU_COUNT=8", "VM_TYPE=<value>, such as a2-highgpu-2g"),
        ("RESERVATION=r CAPACITY=reservation", "RESERVATION_NAME=r"),
        ("NODE_POOLS=whatever", "GKE_NODE_POOLS="),
    ],
)
def test_what_would_not_go_with_the_default_of_a_misnamed_setting_is_no_problem_too(
    typed: Any, lines: str, fix: str
) -> None:
    answer = typed("Validate --offline --env-file env.list", lines)

    (problem,) = answer.problems
    assert fix in problem


def test_a_misnamed_mandatory_setting_is_one_problem_and_counts_for_every_action(
    typed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(MANDATORY, "NAME_PREFIX")
    for action in ("Validate --offline", "Destroy --yes"):
        answer = typed(f"{action} --env-file env.list", "CLUSTER_NAME=np")

        (problem,) = answer.problems
        assert problem.endswith("NAME_PREFIX=np")
        assert answer.settings["NAME_PREFIX"] is None


def test_what_goes_wrong_by_the_right_name_is_told_with_the_wrong_one(typed: Any) -> None:
    answer = typed("Validate --offline --env-file env.list", "NUM_GPUS=3 VM_TYP=H100")

    assert [it.partition(" | ")[0] for it in answer.problems] == ["VM_TYP", "VM_TYPE", "NUM_GPUS"]
    assert answer.settings["VM_TYPE"] is None


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("VM_TYPE=a2-highgpu-3g", "did you mean a2-highgpu-2g or a2-highgpu-4g?"),
        ("VM_TYPE=a3-high-8g", "did you mean a3-highgpu-8g?"),
        ("VM_TYPE=e2-standard-4", "has no GPU: is that meant?"),
        ("ZONE=us-central1-z", "us-central1-a, us-central1-b"),
    ],
)
def test_what_only_google_can_decide_is_a_note_that_says_what_may_be_meant(
    typed: Any, line: str, note: str
) -> None:
    answer = typed("Validate --offline --env-file env.list", line)

    assert answer.code == 0
    assert sum(note in told for told in answer.notes) == 1


def test_a_size_with_its_unit_is_read(typed: Any) -> None:
    answer = typed("Validate --offline --env-file env.list", "DISK_SIZE_GB=500GB")

    assert answer.code == 0
    assert answer.settings["DISK_SIZE_GB"] == 500
    assert not answer.notes


def test_the_smallest_env_list_has_no_note_at_all(typed: Any) -> None:
    assert typed("Validate --offline --env-file env.list").notes == []
