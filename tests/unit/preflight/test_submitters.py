import re
import shlex

import pytest
import yaml

from provision.kinds import registry
from provision.preflight import permissions
from provision.settings.model import Settings
from provision.state import location

ASKED = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}


@pytest.mark.parametrize("kind", ["none", "ray", "gke"])
def test_objects_are_written_below_jobs_alone_and_the_role_changes_nothing(kind: str) -> None:
    asked = {**ASKED, "orchestrator_type": kind, "terraform_gcs_path": "gs://mine/team"}
    settings = Settings(asked)
    spec = registry.of(settings).spec(settings)
    text = permissions.submitters_role(spec, location.locate(settings))

    role = yaml.safe_load(text)
    assert role["includedPermissions"] == permissions.of_submitter(spec)
    assert not [
        it for it in permissions.of_submitter(spec) if not it.endswith((".get", ".list", "connect"))
    ]
    grants = [shlex.split(it[4:]) for it in text.splitlines() if it.startswith("#   gcloud")]
    given = {
        word.rpartition("/")[2]: grant[-1].rpartition("=")[2]
        for grant in grants
        for word in grant
        if word.startswith("--role=")
    }
    start = "projects/_/buckets/mine/objects/team/np-deployment/"
    assert given == {
        "aiinfra_jobs": "None",
        **({"container.developer": "None"} if kind == "gke" else {}),
        "storage.legacyBucketReader": "None",
        "storage.objectViewer": f'resource.name.startsWith("{start}")',
        "storage.objectUser": f'resource.name.startsWith("{start}jobs/")',
    }
    assert re.search("reads the state", text)
