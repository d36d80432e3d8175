"""An account that may run jobs runs them, and changes neither a cluster nor its state."""

import pytest
import requests

from tests.runs import rights
from tests.runs.conftest import Rehearse

TWO = {"INSTANCE_COUNT": "2"}
GKE = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", **TWO}
# What the roles on the bucket have of which tests/unit/preflight/test_submitters.py knows.
OF_BUCKET = {
    *("storage.buckets.get", "storage.objects.list"),  # legacyBucketReader
    "storage.objects.get",  # objectViewer
    *("storage.objects.create", "storage.objects.delete"),  # objectUser, below jobs/
}
OF_STATE = ("deployment.json", "terraform/state/default.tfstate", "vms/group.json", "logs/a.log")


@pytest.mark.parametrize(
    "settings",
    [
        TWO,
        pytest.param(
            GKE,
            marks=pytest.mark.slow(
                sibling="::test_whoever_has_the_submitters_role_runs_jobs_and_changes_nothing_else"
                "[vms]"
            ),
        ),
    ],
    ids=["vms", "gke"],
)
def test_whoever_has_the_submitters_role_runs_jobs_and_changes_nothing_else(
    standing: Rehearse, settings: dict[str, str]
) -> None:
    rehearsal = standing(settings, scenario="submitter", rate=0.01)
    rehearsal.settings |= settings
    since = len(rehearsal.requests())
    empty = rehearsal.folder / "empty"
    empty.mkdir()
    line = (f"--copy={empty}", "--detach")
    command = ("--", "sleep", "90000")
    for name in ("a", "b"):  # the second one waits for the first
        begun = rehearsal.finish(rehearsal.start("Run", *line, f"--name={name}", behind=command))
        assert begun.code == 0, begun.said
    for looks in (rehearsal.run("Jobs"), rehearsal.run("Jobs", behind=("b-1",))):
        assert looks.code == 0, looks.said
    assert rehearsal.run("Logs", behind=("a-1",)).code == 0
    cancelled = rehearsal.run("Cancel", behind=("b-1", "a-1"))
    assert cancelled.code == 0, cancelled.said
    asked = rehearsal.requests()[since:]
    assert not [it for it in asked if it["status"] == requests.codes.forbidden]

    told = rehearsal.run("Jobs", "--role")
    of_project = set(told.document["role"])
    of_kubernetes = "/kubernetes/"
    taken = rights.of(it for it in asked if not it["path"].startswith(of_kubernetes))
    assert taken <= of_project | OF_BUCKET
    has_kubernetes = any(it["path"].startswith(of_kubernetes) for it in asked)
    assert ("container.clusters.connect" in of_project) == has_kubernetes

    before = rehearsal.object("deployment.json")
    for action, *more in (("Create",), ("Destroy", "--yes")):
        assert rehearsal.run(action, *more).code != 0
    for name in OF_STATE:
        with pytest.raises(requests.HTTPError, match="403"):
            rehearsal.google(
                "POST",
                "upload/storage/v1/b/aiinfra-terraform-my-project/o?uploadType=media"
                f"&name=np-deployment/{name}",
                {},
            )
    assert rehearsal.object("deployment.json") == before
