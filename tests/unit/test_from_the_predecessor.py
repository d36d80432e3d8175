"""Who comes from ai-infra-cluster-provisioning is recognised, and its page says what is true."""

import re
from pathlib import Path
from typing import Final

import pytest

from provision import cli
from provision.codes import Code
from provision.command_line import read
from provision.intake import Loaded, load

PAGE: Final = "docs/how-to/from-ai-infra-cluster-provisioning.md"
_TEXT: Final = (Path(__file__).parents[2] / PAGE).read_text(encoding="utf-8")
_TFVARS, _ENV_LIST = re.findall(r"```(?:terraform|sh)\n(.*?)```", _TEXT, re.DOTALL)
_ROWS: Final = [row.split(" | ") for row in re.findall(r"^\| `(.*) \|$", _TEXT, re.MULTILINE)]
_LINE: Final = re.compile(r"`(?P<line>[A-Z_]+=[^`]+)`")
_IDENTITY: Final = "PROJECT_ID=my-project\nNAME_PREFIX=my-cluster\nZONE=us-central1-a\n"
_BESIDE: Final = {
    "ACCELERATOR_TYPE": "VM_TYPE=n1-standard-8\nGPU_COUNT=1",
    "GPU_COUNT": "VM_TYPE=n1-standard-8\nACCELERATOR_TYPE=nvidia-tesla-t4",
    "GKE_": "ORCHESTRATOR_TYPE=gke",
    "IMAGE_PROJECT": "IMAGE_NAME=my-image",
    "NETWORK=": "NETWORK_CONFIG=existing\nSUBNETWORK=my-subnetwork",
    "NETWORK_CONFIG=existing": "NETWORK=my-network\nSUBNETWORK=my-subnetwork",
    "SUBNETWORK": "NETWORK_CONFIG=existing\nNETWORK=my-network",
    "GKE_MAX_NODE_COUNT": "ORCHESTRATOR_TYPE=gke\nGKE_MIN_NODE_COUNT=0",
    "GKE_MIN_NODE_COUNT": "ORCHESTRATOR_TYPE=gke\nGKE_MAX_NODE_COUNT=4",
}
"""What a line is of no use without; of several beginnings the last."""


def _loaded(folder: Path, text: str, name: str = "env.list") -> Loaded:
    (folder / name).write_text(text, encoding="utf-8")
    return load({"ACTION": "Validate"}, folder / name)


def _with(line: str) -> str:
    name = line.partition("=")[0]
    beside = [it for start, it in _BESIDE.items() if line.startswith(start)] or [""]
    identity = re.sub(rf"^{name}=.*\n", "", _IDENTITY, flags=re.MULTILINE)
    return f"{identity}{beside[-1]}\n{line}\n"


@pytest.mark.parametrize("line", sorted({it for row in _ROWS for it in _LINE.findall(row[1])}))
def test_each_line_that_takes_the_place_of_one_is_valid(tmp_path: Path, line: str) -> None:
    assert _loaded(tmp_path, _with(line)).problems == ()


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (it["line"], row[1])
        for row in _ROWS
        if (it := re.match(r"(?P<line>[A-Z_]+=[^`]+)`$", row[0]))
    ],
)
def test_a_line_that_has_become_another_is_told_of(tmp_path: Path, before: str, now: str) -> None:
    loaded = _loaded(tmp_path, _with(before))

    told = " ".join(f"{it.setting} {it.fix}" for it in loaded.problems)
    named = _LINE.search(now)
    if told:
        assert before.partition("=")[0] in told
        assert not named or named["line"].partition("=")[0] in told


def test_an_old_env_list_is_told_of_all_that_has_changed_at_once_as_the_page_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ("GCS_PATH=gs://my-bucket", "SETUP_RAY=yes", "CLEANUP_ON_EXIT=yes", "SHOW_PROXY_URL=no")
    (tmp_path / "env.list").write_text(_IDENTITY + "\n".join(lines))

    assert cli.main(["Validate", "--offline", f"--env-file={tmp_path / 'env.list'}"], {}) == 2

    said = iter(capsys.readouterr().err.splitlines())
    (shown,) = re.findall(r"(?:^    .*\n)+", _TEXT.partition("at once.\n")[2], re.MULTILINE)[:1]
    for line in shown.splitlines():
        assert line.strip() == "..." or line[4:] in said, line


def test_a_terraform_tfvars_is_told_of_as_such_with_the_lines_that_take_its_place(
    tmp_path: Path,
) -> None:
    (problem,) = _loaded(tmp_path, _TFVARS, "terraform.tfvars").problems

    assert problem.code is Code.INVALID_ENV_FILE
    assert "as ai-infra-cluster-provisioning had" in problem.what
    lines, _, rest = problem.fix.removeprefix("write ").partition(" to an env.list")
    assert set(lines.split()) == {
        *("PROJECT_ID=my-project", "NAME_PREFIX=my-cluster", "ZONE=us-central1-a"),
        *("INSTANCE_COUNT=4", "DISK_SIZE_GB=500"),
    }
    assert "VM_TYPE=a3-highgpu-8g for `create a3`" in rest
    assert PAGE in problem.fix
    assert _loaded(tmp_path, _TFVARS, "env.list").problems[0].code is Code.INVALID_ENV_FILE


def test_the_env_list_in_its_place_is_valid(tmp_path: Path) -> None:
    assert _loaded(tmp_path, _ENV_LIST).problems == ()


def test_what_a_tfvars_says_of_several_pools_is_in_no_fix(tmp_path: Path) -> None:
    # Two of four are no group of four.
    groups = '[{zone = "x-y1-a", target_size = 4}, {zone = "x-y1-b", target_size = 4}]'
    two = f'resource_prefix = "a" # project_id = "old"\ninstance_groups = {groups}'

    (problem,) = _loaded(tmp_path, two).problems

    assert problem.fix.startswith("write NAME_PREFIX=a to an env.list")


def test_node_pools_of_a_tfvars_are_gkes(tmp_path: Path) -> None:
    pools = 'resource_prefix = "a"\nnode_pools = [{ zone = "us-east5-a", node_count = 2 }]'

    (problem,) = _loaded(tmp_path, pools).problems

    told = "NAME_PREFIX=a ZONE=us-east5-a INSTANCE_COUNT=2 ORCHESTRATOR_TYPE=gke"
    assert told in problem.fix


@pytest.mark.parametrize(
    ("line", "in_fix"),
    [
        ("create mig", "write what it shall make to an env.list, and run Create"),
        ("create a3 gke /x/terraform.tfvars", "VM_TYPE=a3-highgpu-8g and ORCHESTRATOR_TYPE=gke"),
        ("-q create a3-mega mig-cos -b gs://b/f", "write VM_TYPE=a3-megagpu-8g to an env.list"),
        ("destroy a2 mig", "its own image"),
        ("create slurm", "write ORCHESTRATOR_TYPE=slurm to an env.list"),
    ],
)  # fmt: skip
def test_its_command_line_is_told_of_as_such_and_nothing_else_is(line: str, in_fix: str) -> None:
    found = read(line.split())

    (problem,) = found.problems
    assert "is a command line of ai-infra-cluster-provisioning" in problem.what
    assert in_fix in problem.fix
    assert PAGE in problem.fix
    assert not found.understood


@pytest.mark.parametrize("line", ["Logs mig", "Run -- create mig", "Create", "mig", "Jobs gke"])
def test_what_only_looks_like_it_is_not(line: str) -> None:
    assert not any("ai-infra" in it.what for it in read(line.split()).problems)
