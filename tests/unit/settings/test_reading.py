from pathlib import Path

import pytest

from provision.intake import load
from tests.unit.conftest import MANDATORY, Given, InFile


def test_the_command_line_beats_the_environment_beats_the_file_beats_the_default(
    in_file: InFile,
) -> None:
    lines = "INSTANCE_COUNT=2\nDISK_SIZE_GB=20\nGPU_COUNT=2\n"

    case = in_file(lines, {"INSTANCE_COUNT": "4"}, INSTANCE_COUNT="3", DISK_SIZE_GB="30")

    assert (case["INSTANCE_COUNT"], case["DISK_SIZE_GB"], case["GPU_COUNT"]) == (4, 30, 2)
    assert case["NETWORK_CONFIG"] == "default_network"


@pytest.mark.parametrize(
    "row",
    """PROJECT_ID other-project my-project
NAME_PREFIX theirs np
ZONE us-east1-b us-central1-a
REGION us-east1 us-central1
TERRAFORM_GCS_PATH gs://theirs gs://ours
ORCHESTRATOR_TYPE gke ray""".splitlines(),
)
def test_a_file_and_an_environment_that_mean_other_deployments_are_an_error_that_shows_both(
    in_file: InFile, row: str
) -> None:
    name, here, there = row.split()
    problem = in_file(f"{name}={here}\n", {}, **{name: there}).problem(name)

    assert problem.what == f"is '{here}' in the file and '{there}' in the environment"
    assert in_file(f"{name}='{there}'\n", {}, **{name: there}).refused == set()


def test_other_settings_of_the_file_that_the_environment_overrides_are_one_note(
    in_file: InFile,
) -> None:
    lines = "INSTANCE_COUNT=2\nENABLE_SPOT=yes\nDISK_TYPE=pd-ssd\nMETADATA=a=s3cr3t\n"
    case = in_file(
        lines, {"ACTION": "Plan"}, INSTANCE_COUNT="3", ENABLE_SPOT="true", METADATA="a=t0ps3cr3t"
    )

    assert not case.loaded.problems
    (note,) = case.loaded.notes
    assert note.what.startswith("The environment overrides the file: INSTANCE_COUNT ('2' in the")
    assert "METADATA" in note.what
    assert "ENABLE_SPOT" not in note.what
    assert "s3cr3t" not in note.what


def test_a_blank_value_is_none_and_leaves_the_weaker_source_in_force(in_file: InFile) -> None:
    case = in_file("INSTANCE_COUNT=2\nDISK_SIZE_GB=\n", INSTANCE_COUNT=" ", GPU_COUNT='""')

    assert not case.loaded.problems
    assert (case["INSTANCE_COUNT"], case["DISK_SIZE_GB"], case["GPU_COUNT"]) == (2, 2000, 2)


def test_other_variables_of_the_environment_are_ignored(given: Given) -> None:
    environ = {"PATH": "/bin", "HOME": "/root", "LANG": "C", "TZ": "UTC", "_": "x", "ZONES_X": "1"}

    case = given(**environ)

    assert not case.loaded.problems
    assert not case.noted


@pytest.mark.parametrize("quote", ["'", '"'])
def test_quotes_that_docker_hands_over_are_removed_with_a_note(given: Given, quote: str) -> None:
    case = given(ZONE=f"{quote}us-east1-b{quote}")

    assert case["ZONE"] == "us-east1-b"
    assert "quotes" in case.note("ZONE").what


@pytest.mark.parametrize(
    ("lines", "read", "noted"),
    [
        ("LABELS=\"a=b\"\nINSTANCE_COUNT='3'\n", {"LABELS": {"a": "b"}, "INSTANCE_COUNT": 3}, ""),
        (b"\xef\xbb\xbfINSTANCE_COUNT=3\r\nREGION=us-central1\r\n", {"INSTANCE_COUNT": 3}, ""),
        ("# a comment\n\nexport INSTANCE_COUNT=3 # as many\n", {"INSTANCE_COUNT": 3}, ""),
        ("INSTANCE_COUNT=2\n# between\nINSTANCE_COUNT=3\n", {"INSTANCE_COUNT": 3}, "lines 1 and 3"),
        ("INSTANCE_COUNT=2\nINSTANCE_COUNT=2\n", {"INSTANCE_COUNT": 2}, ""),
        ("INSTANCE_COUNT\n", {"INSTANCE_COUNT": 1}, "line 1"),
    ],
    ids=["quotes", "windows", "comments-and-export", "two-lines", "same-line-twice", "bare-name"],
)  # fmt: skip
def test_lines_are_read_as_meant_and_noted_where_that_may_be_otherwise(
    in_file: InFile, lines: str | bytes, read: dict[str, object], noted: str
) -> None:
    case = in_file(lines)

    assert {name: case[name] for name in read} == read
    assert not case.loaded.problems
    assert case.noted == ({"INSTANCE_COUNT"} if noted else set())
    assert not noted or noted in case.note("INSTANCE_COUNT").what


def test_a_command_is_never_touched_but_for_the_end_of_a_windows_line(
    in_file: InFile, given: Given
) -> None:
    for command in (
        "echo \"hi\" && echo 'there' # not a comment to us",
        '"quoted as a whole"',
        "echo $HOME ${HOME} `date` \\n = , { }",
        'echo "unclosed',
        "  spaces around  ",
    ):
        found = in_file(f"STARTUP_COMMAND={command}\nINSTANCE_COUNT=3\n")
        assert found.private("STARTUP_COMMAND") == command
        assert given(STARTUP_COMMAND=command).private("STARTUP_COMMAND") == command
    assert in_file(b"STARTUP_COMMAND=a b\r\n").private("STARTUP_COMMAND") == "a b"
    assert given(STARTUP_COMMAND="a b\r").private("STARTUP_COMMAND") == "a b"


def test_values_are_not_interpolated(in_file: InFile) -> None:
    assert in_file("METADATA=a=$HOME${PATH}\n").private("METADATA") == {"a": "$HOME${PATH}"}


def test_a_command_in_quotes_gets_a_note_as_the_shell_sees_one_word(given: Given) -> None:
    assert "one quoted word" in given(STARTUP_COMMAND='"a b"').note("STARTUP_COMMAND").why


@pytest.mark.parametrize(
    ("lines", "what", "fix"),
    [
        ("INSTANCE_COUNT=2\nzone: 'us-east1-b\n", "line 2 is not NAME=value", ""),
        ("zone: us-east1-b\n", "line 1", "write ZONE= before the value"),
        ("export ZONE us-east1-b\n", "line 1", "write ZONE= before the value"),
        ("ZONE : 'a\n", "line 1", "write ZONE= before the value"),
        ("export MY PASSWORD=hunter2 'x\n", "line 1", ""),
        ('LABELS="a=b\nINSTANCE_COUNT=2"\n', "line 1", ""),
    ],
)
def test_a_line_that_is_no_assignment_is_a_problem_with_its_number_and_no_credential(
    in_file: InFile, lines: str, what: str, fix: str
) -> None:
    case = in_file(lines)

    assert what in case.problem("").what
    assert "hunter2" not in case.problem("").what
    assert not fix or case.problem("").fix == fix
    assert case["INSTANCE_COUNT"] == (2 if lines.startswith("INSTANCE_COUNT=2") else 1)


@pytest.mark.parametrize("name", ["FAVOURITE_COLOUR", "AUTODOWN", "TIME_LIMIT", "RUN"])
def test_a_name_in_the_file_that_is_no_setting_is_an_error(in_file: InFile, name: str) -> None:
    case = in_file(f"{name}=500\n", AIINFRA_IMAGE="yes", CI="true")

    assert case.refused == {name}
    assert case.problem(name).what == "is not a setting: it would be ignored"
    assert case.problem(name).fix == "remove it, or put # before it"


@pytest.mark.parametrize("name", ["PYTHONUNBUFFERED", "TZ", "all_proxy", "TF_LOG", "HOME"])
def test_what_other_programs_have_in_an_environment_is_ignored_in_a_file_with_a_note(
    in_file: InFile, name: str
) -> None:
    case = in_file(f"{name}=1\n")

    assert not case.loaded.problems
    assert case.note(name).why == "it is ignored"


def test_no_unknown_name_keeps_a_cluster_from_being_destroyed(tmp_path: Path) -> None:
    path = tmp_path / "env.list"
    path.write_text("AUTODOWN=500\n")

    loaded = load(MANDATORY, path, only=["PROJECT_ID", "NAME_PREFIX", "ZONE"])

    assert not loaded.problems
    assert [note.setting for note in loaded.notes] == ["AUTODOWN"]


@pytest.mark.parametrize(
    "content",
    [b"\x00\x01", "ZONE=us-central1-a\nÄ".encode("latin-1"), b"#" * (4 * 1024 * 1024 + 1)],
    ids=["binary", "latin-1", "huge"],
)
def test_a_file_that_is_no_text_is_the_one_problem(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "env.list"
    path.write_bytes(content)

    loaded = load({}, path)

    (problem,) = loaded.problems
    assert "can't be read" in problem.what
    assert (loaded.settings, loaded.effective) == (None, {})


def test_a_missing_file_and_a_folder_are_problems_and_no_tracebacks(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none", "No such file"), (tmp_path, "directory")):
        (problem,) = load({}, path).problems
        assert why in problem.why


@pytest.mark.parametrize(
    "row",
    """INSTANCE_COUNTS INSTANCE_COUNT
PROJECTID PROJECT_ID
zone ZONE
GKE_NODE_POOL GKE_NODE_POOLS
NFS_FILESTORE_LISTS NFS_FILESTORE_LIST""".splitlines(),
)
def test_a_name_that_is_close_to_a_setting_is_an_error(given: Given, row: str) -> None:
    name, meant = row.split()
    assert given(**{name: "3"}).problem(name).fix == f"did you mean {meant}?"


@pytest.mark.parametrize(
    "name",
    [
        *("CI_PROJECT_ID", "CLOUDSDK_CORE_PROJECT", "DEVSHELL_PROJECT_ID", "GITHUB_ACTION"),
        *("GOOGLE_CLOUD_PROJECT", "GO_VERSION", "JAVA_VERSION", "NODE_VERSION", "OS_PROJECT_ID"),
        *("PYTHON_VERSION", "RUBY_VERSION", "R_VERSION", "SLURM_JOB_ID", "SLURM_NODELIST"),
        "TF_VAR_zone",
    ],
)
def test_a_variable_of_another_program_is_no_typo(given: Given, name: str) -> None:
    assert not given(**{name: "x"}).loaded.problems


@pytest.mark.parametrize(
    "row",
    """GCS_PATH TERRAFORM_GCS_PATH
COPY_DIR_PATH VM_LOCALFILE_DEST_PATH
STARTUP_SCRIPT STARTUP_COMMAND
STARTUP_SCRIPT_PATH STARTUP_COMMAND
SETUP_RAY ORCHESTRATOR_TYPE=ray
GKE_NODE_COUNT GKE_MIN_NODE_COUNT
CUSTOM_NODE_POOL GKE_NODE_POOLS
CLEANUP_ON_EXIT Destroy
KUBERNETES_SETUP_CONFIG remove it
SLURM_NODE_COUNT_STATIC INSTANCE_COUNT
SLURM_NODE_COUNT_DYNAMIC_MAX remove it
CALENDAR_DURATION RESERVATION_NAME
GRANT_KMS Validate has the commands
KUEUE_MAX_WAIT ValidUntilSeconds
JOB_NODES JOB_OPTIONS=--nodes yes
TEST_NODES Test --nodes yes
TEST_CORDON Test --cordon
STOP_NOTICE remove it
SYSTEM_NODE_POOL_MIN SYSTEM_NODE_POOL=min=
CALENDAR_START RESERVATION_NAME""".splitlines(),
)
def test_a_retired_name_is_an_error_that_says_what_to_do(given: Given, row: str) -> None:
    name, successor = row.split(" ", 1)
    problem = given(**{name: "yes"}).problem(name)
    assert "no longer supported" in problem.what
    assert successor in problem.fix
    # Without a value it asks for nothing.
    assert not given(**{name: ""}).loaded.problems


def test_another_spelling_sets_the_setting_and_problems_use_it(given: Given) -> None:
    case = given(NFS_FILESTORE_LIST="/a:BASIC_SSD,/a:BASIC_HDD")

    assert [share["path"] for share in case["NFS_FILESHARE_LIST"]] == ["/a", "/a"]
    assert "mounts /a twice" in case.problem("NFS_FILESTORE_LIST").what


def test_enable_ops_agent_is_the_opposite_of_disable_ops_agent(given: Given) -> None:
    assert given(ENABLE_OPS_AGENT="no")["DISABLE_OPS_AGENT"] is True
    assert given(ENABLE_OPS_AGENT="true")["DISABLE_OPS_AGENT"] is False
    assert "neither yes nor no" in given(ENABLE_OPS_AGENT="maybe").problem("ENABLE_OPS_AGENT").what


def test_both_spellings_are_an_error_where_their_values_differ_alone(given: Given) -> None:
    case = given(ENABLE_OPS_AGENT="no", DISABLE_OPS_AGENT="off")
    assert {"ENABLE_OPS_AGENT", "DISABLE_OPS_AGENT"} & case.refused
    assert "contradicts" in next(iter(case.loaded.problems)).what
    assert not given(ENABLE_OPS_AGENT="no", DISABLE_OPS_AGENT="1").loaded.problems


def test_the_command_line_settles_what_two_spellings_say(in_file: InFile) -> None:
    lines = "DISABLE_OPS_AGENT=yes\nENABLE_OPS_AGENT=yes\n"

    case = in_file(lines, {"DISABLE_OPS_AGENT": "true"})

    assert case["DISABLE_OPS_AGENT"] is True
    assert not case.loaded.problems


MINE = "http://proxy.example.com:3128"
_LOGIN = "http://me:s3cret@localhost:1"


@pytest.mark.parametrize(
    ("environ", "counts"),
    [
        ({}, True),
        ({"AIINFRA_IMAGE": "it"}, True),
        ({"CI": "true"}, False),
        ({"https_proxy": MINE}, False),
        ({"https_proxy": "http://other:1"}, True),
    ],
    ids=["env-file", "image", "CI", "dockers-own", "two"],
)
def test_a_proxy_of_the_environment_is_a_setting_where_all_others_came_so(
    given: Given, environ: dict[str, str], *, counts: bool
) -> None:
    assert given(HTTPS_PROXY=MINE, **environ)["HTTPS_PROXY"] == (MINE if counts else None)


def test_a_shells_own_proxy_is_no_setting_and_may_have_a_password(tmp_path: Path) -> None:
    file = tmp_path / "env.list"
    file.write_text("PROJECT_ID=my-project\nNAME_PREFIX=np\nZONE=us-central1-a\n")

    loaded = load({"HTTPS_PROXY": _LOGIN, "NO_PROXY": "*"}, file)
    assert (loaded.problems, loaded.notes, loaded.effective["HTTPS_PROXY"]) == ((), (), None)

    file.write_text(file.read_text() + f"HTTPS_PROXY={_LOGIN}\n")
    (problem,) = load({}, file).problems
    assert "https_proxy, in lower case" in problem.why
    assert "s3cret" not in str(problem)


@pytest.mark.parametrize("coding", ["utf-16", "utf-16-be"])
def test_a_file_that_powershell_wrote_is_read_with_the_line_that_makes_it_utf_8(
    coding: str, tmp_path: Path
) -> None:
    path = tmp_path / "env.list"
    mark = "\ufeff" if coding == "utf-16-be" else ""
    lines = "".join(f"{name}={value}\r\n" for name, value in MANDATORY.items())
    path.write_bytes(f"{mark}{lines}INSTANCE_COUNT=3\r\n".encode(coding))

    found = load({}, path)

    assert found.settings is not None
    assert found.settings.instance_count == 3
    (note,) = found.notes
    assert note.what == "env.list is UTF-16, as PowerShell's > writes it; it was read as that"
    assert note.fix.endswith("(Get-Content env.list) | Set-Content -Encoding utf8 env.list")

    path.write_bytes(b"\xff\xfeA\x00=\x00\x00\x00")
    (problem,) = load({}, path).problems
    assert problem.why == "it is not a text file"
    path.write_bytes(b"LABELS=team=caf\xe9")
    (problem,) = load({}, path).problems
    assert problem.why == "line 1 is not UTF-8"
    assert problem.fix.endswith("in UTF-8")
