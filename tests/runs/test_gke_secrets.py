"""SECRETS on GKE: the account of the pods may read them, and jobs ask for them by name."""

import json

from tests.runs import cluster_side
from tests.runs.conftest import Rehearsal


def test_pods_may_read_the_secrets_that_their_jobs_ask_for(rehearsal: Rehearsal) -> None:
    rehearsal.settings |= {
        "ORCHESTRATOR_TYPE": "gke",
        "VM_TYPE": "g2-standard-4",
        "INSTANCE_COUNT": "2",
        "SECRETS": "HF_TOKEN=projects/my-project/secrets/hf-token:3",
    }
    rehearsal.presume()
    created = rehearsal.run("Create")
    assert created.code == 0, created.said[-2000:]

    written = [it for it in rehearsal.requests() if it["path"].endswith("/my-project:setIamPolicy")]
    bindings = written[-1]["body"]["policy"]["bindings"]
    (binding,) = (it for it in bindings if it["role"].endswith("secretAccessor"))
    assert binding["members"] == ["serviceAccount:np-workload@my-project.iam.gserviceaccount.com"]
    assert "/secrets/hf-token/" in binding["condition"]["expression"]

    job = cluster_side.job(rehearsal, created.document["connection"], "torchrun-np-nodepool-1.yaml")
    assert "read_secret HF_TOKEN my-project hf-token 3" in json.dumps(job)
