"""What a run needs around it: the state's bucket (row 15), the network, its own folders."""

import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs import state_file
from tests.runs.conftest import Rehearsal, Rehearse

ROW_15 = pytest.mark.slow(
    sibling="::test_row_15_no_state_is_written_where_everybody_reads_or_nobody_can_remove_it"
)
DEFAULT = "developer.gserviceaccount.com"
OWN = {"TERRAFORM_GCS_PATH": "gs://my-own-state"}


@pytest.fixture
def bucket(rehearsal: Rehearsal) -> Rehearse:
    """Make a rehearsal with a bucket of somebody's own making."""

    def make(*, uniform: bool = False, unfit: bool = False) -> Rehearsal:
        with state_file.client(rehearsal) as client:
            made = client.bucket("my-own-state")
            made.iam_configuration.uniform_bucket_level_access_enabled = uniform
            if unfit:
                made.retention_period = 3600
                made.default_event_based_hold = True
                made.add_lifecycle_delete_rule(age=30)
            client.create_bucket(made)
            if unfit:
                policy = made.get_iam_policy(requested_policy_version=3)
                number = made.project_number
                members = {"allUsers", f"serviceAccount:{number}-compute@{DEFAULT}"}
                policy.bindings.append({"role": "roles/storage.objectViewer", "members": members})
                made.set_iam_policy(policy)
        return rehearsal

    return make


def test_row_15_a_bucket_that_keeps_no_versions_is_noted_with_what_mends_it(
    bucket: Rehearse,
) -> None:
    ended = bucket(uniform=True).run("Plan", ORCHESTRATOR_TYPE="gke", **OWN)

    assert ended.code == 0, ended.said
    fixes = " ".join(note["fix"] for note in ended.document["notes"])
    assert "gcloud storage buckets update gs://my-own-state --versioning" in fixes


@ROW_15
@pytest.mark.parametrize("kind", ["none", "gke"])
def test_row_15_a_bucket_without_uniform_access_is_refused_before_the_apply(
    bucket: Rehearse, kind: str
) -> None:
    rehearsal = bucket()

    ended = rehearsal.run("Create", ORCHESTRATOR_TYPE=kind, **OWN)

    assert ended.code == 5, ended.said
    assert "uniform" in ended.problem["what"]
    fix = "gcloud storage buckets update gs://my-own-state --uniform-bucket-level-access"
    assert fix in ended.problem["fix"]
    assert not any(name in line for line in rehearsal.resources() for name in ("np-mig", "np-gke"))


def test_row_15_no_state_is_written_where_everybody_reads_or_nobody_can_remove_it(
    bucket: Rehearse,
) -> None:
    rehearsal = bucket(uniform=True, unfit=True)

    ended = rehearsal.run("Create", **OWN)

    assert ended.code == 5, ended.said
    problems = ended.document["problems"]
    assert {(it["code"], it["setting"]) for it in problems} == {
        ("bucket-unsafe", "TERRAFORM_GCS_PATH")
    }
    assert "allUsers" in problems[0]["what"]
    assert "--public-access-prevention" in problems[0]["fix"]
    assert "compute@" in problems[1]["what"]
    fixes = " ".join(it["fix"] for it in problems)
    for flag in ("--clear-retention-period", "--no-default-event-based-hold", "--lifecycle-file"):
        assert flag in fixes
    assert not any("np-" in line for line in rehearsal.resources())


def test_a_network_that_is_down_is_called_that(rehearsal: Rehearsal) -> None:
    rehearsal.environ["GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT"] = "http://127.0.0.1:9/v1/"

    ended = rehearsal.run("Status")

    assert ended.code == 4, ended.said
    assert "could not be reached" in ended.problem["what"]
    assert "PROJECT_ID" not in ended.problem["fix"]


@pytest.mark.slow(
    sibling="::test_row_15_a_bucket_that_keeps_no_versions_is_noted_with_what_mends_it"
)
def test_the_next_run_deletes_what_a_killed_one_left_on_this_machine(
    rehearse: Rehearse, short: Path
) -> None:
    rehearsal = rehearse(rate=0.05, real=True)
    place = short
    rehearsal.environ["TMPDIR"] = str(place)
    killed = rehearsal.start("Create", METADATA='{ token = "secret-value" }')
    rehearsal.when_asked("POST", "/instanceGroupManagers")
    killed.send_signal(signal.SIGKILL)
    killed.ended(60)
    assert _readable(place)

    for _ in range(3):  # Terraform may outlive the kill for a moment
        rehearsal.run("Plan")
        if not _readable(place):
            break

    assert _readable(place) == []


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name: a plugin's socket lies in it, whose path has a limit."""
    with tempfile.TemporaryDirectory(prefix="t-") as name:
        yield Path(name)


def _readable(place: Path) -> list[Path]:
    return [file for file in place.rglob("*") if file.name == "deployment.tfvars.json"]
