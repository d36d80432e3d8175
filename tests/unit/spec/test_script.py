"""What a command can't begin without is looked for in the folder that travels."""

import shlex
from collections.abc import Mapping, Sequence

import pytest

from provision.codes import Code
from provision.errors import Problem, SettingsError
from provision.settings.model import Settings
from provision.spec import job, script
from tests.unit.kinds.cases import problem_of

FILE, PROGRAM, FOLDER, LINK = 0o100644, 0o100755, 0o040755, 0o120777
ENTRIES = {
    "train.py": FILE,
    "train.sh": FILE,
    "run.sh": PROGRAM,
    "my script.sh": PROGRAM,
    "src": FOLDER,
    "src/eval.py": FILE,
    "pkg": FOLDER,
    "pkg/__init__.py": FILE,
    "pkg/main.py": FILE,
    "namespace": FOLDER,
    "namespace/a.py": FILE,
    "linked": LINK,
}
MANDATORY = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
STAYS = {"left.py": (".gitignore leaves it out", "do this")}


def look(*command: str, **settings: str) -> list[Problem]:
    return _look(command, ENTRIES, settings)


def _look(
    command: Sequence[str], entries: Mapping[str, int], settings: Mapping[str, str]
) -> list[Problem]:
    asked = Settings({**MANDATORY, **settings})
    spec = job.of(asked, command, {})
    return script.require_there(spec, asked, entries, lambda name: STAYS.get(name, ("", "")))


def refused(*command: str, **settings: str) -> Problem:
    problem = problem_of(SettingsError, look, *command, **settings)
    assert problem.why
    assert problem.fix
    return problem


@pytest.mark.parametrize(
    "line",
    [
        "python trian.py",
        "python3.11 -u ./trian.py --epochs 3",
        "python -W ignore -X dev trian.py",
        "/usr/bin/python3 trian.py",
        "env A=1 B=2 python trian.py",
        "/usr/bin/env python3 trian.py",
        "nohup torchrun --standalone trian.py",
        "torchrun --nproc-per-node 8 --nnodes=2 --rdzv_backend c10d trian.py train.py",
        "python -m torch.distributed.run --nproc_per_node 8 trian.py",
        "accelerate launch --multi_gpu --config_file a.yaml trian.py",
        "deepspeed --num_gpus 8 trian.py",
        "uv run trian.py",
        "uv run python trian.py",
        "bash -c 'A=1 exec python trian.py > log 2>&1; python other.py'",
        "sh -lc 'python trian.py && echo hi'",
    ],
)
def test_a_script_that_is_not_there_is_refused_with_the_nearest_name(line: str) -> None:
    problem = refused(*shlex.split(line))

    assert problem.code is Code.INVALID_COMMAND_LINE
    assert problem.what.startswith("trian.py, which ")
    assert problem.fix.startswith("did you mean train.py? ")


def test_a_script_without_an_interpreter_is_not_found_in_the_folder() -> None:
    problem = refused("train.sh", "--epochs", "3")
    assert problem.what == "train.sh, the job's program, is in the folder, and not looked for there"
    assert problem.fix == "Run -- bash train.sh"
    assert refused("bash", "-c", "train.py && echo hi").fix == "Run -- python train.py"
    (note,) = look("train.sh", job_image="ghcr.io/a/b:1")
    assert note.code is Code.NOT_CHECKED


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("python eval.py", "src/eval.py"),
        ("python src/evla.py", "src/eval.py"),
        ("bash -euo pipefail trian.sh", "train.sh"),
        ("./trian.sh", "./train.sh"),
        ("src/../rn.sh", "./run.sh"),
        ("python -m pkg.mian", "pkg.main"),
        ("torchrun --nproc-per-node 8 -m pkg.mian", "pkg.main"),
    ],
)
def test_names_are_looked_for_in_the_whole_folder(line: str, near: str) -> None:
    assert refused(*line.split()).fix.startswith(f"did you mean {near}? ")


@pytest.mark.parametrize(
    "line",
    [
        "python train.py",
        "python ./src/../train.py",
        "python src/eval.py missing.py",
        "python /opt/missing.py",
        "python ~/missing.py",
        "missing.py",
        "nvidia-smi missing.py",
        "/opt/missing.sh",
        "./run.sh missing.py",
        "bash train.sh",
        "torchrun --no-python missing.py",
        "torchrun --of-tomorrow missing.py",
        "torchrun --of-tomorrow tool missing.py",
        "accelerate config missing.py",
        "python -c 'x' missing.py",
        "python -m pytest missing.py",
        "python -mpytest missing.py",
        "python -m pkg",
        "python -m pkg.main",
        "python -m namespace.missing",
        "python -Pm pkg.missing",
        "python - missing.py",
        "python tool missing.py",
        "python linked/missing.py",
        "uv run --directory src missing.py",
        "uv run pytest missing.py",
        "mpirun -n 8 python missing.py",
        "env -C src python missing.py",
        "bash -s missing.sh",
        "bash -c",
        "bash -c 'echo >missing.py; python missing.py'",
        "bash -c 'cd src && python missing.py'",
        "bash -c 'python $HERE/missing.py'",
        "bash -c 'python $OPTIONS missing.py'",
        "bash -c 'for i in 1; do python missing.py; done'",
        "bash -c '{ python missing.py; }'",
        "bash -c 'python \"missing.py'",
        "'./my script.sh' missing.py",
        "python",
        "''",
    ],
)
def test_nothing_is_said_of_what_may_be_there(line: str) -> None:
    assert look(*shlex.split(line)) == []


def test_a_program_without_the_permission_is_refused_with_the_commands_that_help() -> None:
    problem = refused("./train.sh", "--epochs", "3")

    assert "train.sh, the job's program, may not be executed" in problem.what
    assert problem.fix == "chmod +x train.sh; or run it as: bash train.sh"
    assert refused("./src/eval.py").fix.endswith("python src/eval.py")


@pytest.mark.parametrize("word", ["python train.py && echo hi", "a;b", "A=1", "echo $HOME"])
def test_words_for_a_shell_are_refused_with_the_command_that_has_one(word: str) -> None:
    problem = refused(word)

    assert shlex.split(problem.fix)[2:] == ["bash", "-c", word]
    assert look(*shlex.split(problem.fix)[2:]) == []


def test_a_value_before_the_program_is_one_for_a_shell_and_a_secret_is_hidden() -> None:
    assert refused("A=1", "python", "train.py").fix == "Run -- bash -c 'A=1 python train.py'"
    assert "hf_0123456789abcdef01" not in refused("T=hf_0123456789abcdef01", "train").fix


def test_what_stays_behind_is_said_with_what_takes_it_along() -> None:
    problem = refused("python", "left.py")

    assert (problem.setting, problem.why, problem.fix) == ("", *STAYS["left.py"])


def test_the_setting_is_named_where_the_command_is_its() -> None:
    assert refused(job_command="torchrun trian.py > log").setting == "JOB_COMMAND"
    assert not look(job_command="torchrun train.py > log")


def test_without_a_folder_the_fix_is_one() -> None:
    problem = problem_of(SettingsError, _look, ("python", "train.py"), {}, {})

    assert problem.why.startswith("the folder is empty")
    assert "--copy FOLDER" in problem.fix
    assert refused("python", "../train.py").why == "it is outside of the folder"


@pytest.mark.parametrize(
    "settings", [{"job_image": "ghcr.io/a/b:1"}, {"orchestrator_type": "gke"}], ids=["vms", "gke"]
)
def test_a_shell_may_find_its_script_among_the_programs_of_an_image(
    settings: dict[str, str],
) -> None:
    (note,) = look("bash", "trian.sh", **settings)

    assert note.code is Code.NOT_CHECKED
    assert "did you mean train.sh?" in note.fix
    assert refused("bash", "./trian.sh", **settings)
    assert refused("python", "trian.py", **settings)


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("accelerate launch train.py --num_machines 4", "accelerate launch"),
        ("bash -c 'pip install -r requirements.txt && accelerate launch train.py'", "accelerate"),
        ("deepspeed train.py --deepspeed ds.json", "deepspeed"),
        ("tune run full_finetune_distributed --config a.yaml", "tune run"),
        ("tune run --nnodes 2 --nproc_per_node 8 full_finetune_distributed", "tune run"),
        ("torchrun --standalone --nproc-per-node=8 train.py", "torchrun"),
        ("sbatch --nodes 2 train.sh", "sbatch"),
    ],
)
def test_a_launcher_that_looks_for_no_other_machine_is_told_before_it_trains_alone(
    line: str, program: str
) -> None:
    spec = job.of(Settings(MANDATORY), shlex.split(line), {})
    (note,) = script.alone(spec, 2)
    assert note.what.startswith(program)
    assert note.fix
    assert script.alone(spec, 1) == []


@pytest.mark.parametrize(
    "line",
    [
        "torchrun train.py --standalone",
        "accelerate launch --num_machines 2 --machine_rank 0 train.py",
        "accelerate launch --config_file=all.yaml train.py",
        "tune run --nnodes 2 --rdzv_endpoint 10.0.0.2:29500 full_finetune_distributed",
        "python train.py",
        "bash -c 'accelerate launch --num_machines $NNODES --num_processes $((NNODES * 8)) t.py'",
        "bash -c 'unclosed",
    ],
)
def test_nothing_is_said_of_programs_that_meet_or_of_which_nothing_is_known(line: str) -> None:
    words = shlex.split(line) if line.count("'") != 1 else ["bash", "-c", "'unclosed"]
    assert script.alone(job.of(Settings(MANDATORY), words, {}), 2) == []


def test_what_is_to_be_written_for_a_launcher_says_nothing_more() -> None:
    for words in ("accelerate launch t.py", "deepspeed t.py", "tune run t"):
        spec = job.of(Settings(MANDATORY), words.split(), {})
        fix = script.alone(spec, 2)[0].fix
        for line in fix.split("; or "):
            command, _, _ = line.partition(", ")
            again = job.of(Settings(MANDATORY), shlex.split(command), {})
            assert script.alone(again, 2) == []
