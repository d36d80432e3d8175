import subprocess
from pathlib import Path

import pytest

from rehearsal import session
from rehearsal.__main__ import main
from rehearsal.cloud.server import Cloud
from rehearsal.errors import UnknownScenario

_URL = "http://127.0.0.1:4711"

_LEADS_AWAY = (
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_CREDENTIALS",
    "GOOGLE_IMPERSONATE_SERVICE_ACCOUNT",
    "GOOGLE_BACKEND_CREDENTIALS",
    "GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT",
    "GOOGLE_PROJECT",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_QUOTA_PROJECT",
    "GOOGLE_PUBSUB_CUSTOM_ENDPOINT",
    "GCLOUD_PROJECT",
    "CLOUDSDK_CORE_PROJECT",
    "DEVSHELL_PROJECT_ID",
    "STORAGE_EMULATOR_HOST",
    "NO_GCE_CHECK",
    "KUBECONFIG",
    "TF_PLUGIN_CACHE_DIR",
    "TF_REATTACH_PROVIDERS",
)


def test_nothing_that_leads_to_the_real_cloud_is_left(tmp_path: Path) -> None:
    made = session.environment(_URL, tmp_path, dict.fromkeys(_LEADS_AWAY, "real"))
    assert made.keys().isdisjoint(_LEADS_AWAY)


def test_what_the_rehearsal_sets_is_not_the_callers_and_others_are_passed_on(
    tmp_path: Path,
) -> None:
    others = {"PATH": "/bin", "HOME": "/root", "PROJECT_ID": "p", "TF_LOG": "debug"}
    own = (
        "GOOGLE_OAUTH_ACCESS_TOKEN",
        "GOOGLE_COMPUTE_CUSTOM_ENDPOINT",
        "GCE_METADATA_HOST",
        "CLOUDSDK_CONFIG",
        "TF_CLI_CONFIG_FILE",
        "API_ENDPOINT_OVERRIDE",
    )
    caller = {**others, **dict.fromkeys(own, "real"), "no_proxy": "example.com"}
    made = session.environment(_URL, tmp_path, caller | {"PYTHONPATH": "/elsewhere"})
    programs = str(tmp_path / "bin")
    assert {name: made[name] for name in others} == others | {"PATH": f"{programs}:/bin"}
    assert [made[name] for name in own if made[name] == "real"] == []
    assert made["GOOGLE_COMPUTE_CUSTOM_ENDPOINT"] == f"{_URL}/compute/v1/"
    assert made["GOOGLE_BACKEND_STORAGE_CUSTOM_ENDPOINT"] == f"{_URL}/storage/v1/"
    assert made["GCE_METADATA_HOST"] == "127.0.0.1:4711"
    assert made["NO_PROXY"] == made["no_proxy"] == "example.com,127.0.0.1,localhost"
    assert Path(made["TF_CLI_CONFIG_FILE"]).is_file()
    assert made["PYTHONPATH"].split(":")[1] == "/elsewhere"
    assert (Path(made["PYTHONPATH"].split(":")[0]) / "provision").is_dir()


def test_an_environment_can_be_made_of_one_that_was_made(tmp_path: Path) -> None:
    once = session.environment(_URL, tmp_path, {"PATH": "/bin"})
    twice = session.environment(_URL, tmp_path, once)
    assert {**twice, "NO_PROXY": "", "no_proxy": ""} == {**once, "NO_PROXY": "", "no_proxy": ""}


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("gcloud compute instances list", 1, "gcloud compute instances list was not run"),
        ("kubectl get pods", 1, "kubectl get pods was not run"),
    ],
)
def test_googles_own_programs_do_not_go_to_google(
    tmp_path: Path, line: str, code: int, said: str
) -> None:
    made = session.environment(_URL, tmp_path, {"PATH": "/usr/bin:/bin"})
    ended = subprocess.run(  # noqa: S602 - a line of the case
        line, shell=True, env=made, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, said in ended.stderr, ended.stdout) == (code, True, "")


def test_a_first_rehearsal_says_how_fast_time_goes() -> None:
    for environ, words in (
        ({}, ", an hour of it in 72 seconds"),
        ({"CLOUD_CLOCK_RATE": "1"}, ", an hour of it in 3600 seconds"),
        ({"CLOUD_CLOCK_RATE": "0"}, ""),
    ):
        assert session._pace(session.with_clock(environ)) == words


def test_the_clock_runs_fast_unless_the_caller_says_so(tmp_path: Path) -> None:
    for rate, kept in ((None, "0.02"), ("", "0.02"), ("0", "0"), ("1", "1")):
        caller = {} if rate is None else {"CLOUD_CLOCK_RATE": rate}
        assert session.environment(_URL, tmp_path, caller)["CLOUD_CLOCK_RATE"] == kept


def test_the_folder_is_where_it_is_wanted_and_for_its_owner_alone(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted"
    assert session.folder({"AIINFRA_REHEARSAL_FOLDER": str(wanted)}) == wanted
    assert wanted.stat().st_mode & 0o777 == 0o700
    usual = session.folder({"XDG_STATE_HOME": str(tmp_path)})
    assert usual == tmp_path / "aiinfra-cluster" / "rehearsal"
    assert session.folder({"HOME": str(tmp_path)}).is_relative_to(tmp_path)


def test_an_unknown_scenario_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    environ = {"AIINFRA_REHEARSAL_FOLDER": str(tmp_path / "none")}
    with pytest.raises(UnknownScenario) as refused:
        session.run(["Plan"], environ, "tsunami")
    assert "flaky" in refused.value.fix
    assert not (tmp_path / "none").exists()


@pytest.mark.loopback
def test_what_google_would_refuse_is_said_to_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = "every zone has every machine type, in every way: Google may refuse what passes here."
    assert words in session.not_as_google("slow,everywhere")
    assert session.not_as_google("slow,ai-zones") == ""

    monkeypatch.setenv("AIINFRA_REHEARSAL_FOLDER", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["rehearsal", "show"])
    for scenario, told in [("slow", False), ("everywhere", True), ("", True)]:
        with Cloud(database=tmp_path / session.DATABASE, scenario=scenario):
            main()
        assert (words in capsys.readouterr().out) is told


def test_manifests_that_the_caller_has_are_kept_and_others_are_given(tmp_path: Path) -> None:
    given = session.environment(_URL, tmp_path, {})[session.MANIFESTS_VARIABLE]
    assert sorted(path.name for path in Path(given).iterdir()) == [
        "SHA256SUMS",
        "jobset-v0.12.0.yaml",
        "kueue-v0.19.2.yaml",
    ]
    own = {session.MANIFESTS_VARIABLE: "/opt/aiinfra/manifests"}
    assert session.environment(_URL, tmp_path, own)[session.MANIFESTS_VARIABLE] == own.popitem()[1]


def test_a_job_that_nobody_follows_is_said_to_end_with_the_command_that_runs_its_programs() -> None:
    detached = ["Run", "--detach", "--", "true"]
    assert "leave it out" in session.cut_off(detached, "slow,run-programs")
    assert session.cut_off(detached, "slow") == ""
    assert session.cut_off(["Run", "--", "true", "--detach"], "run-programs") == ""
