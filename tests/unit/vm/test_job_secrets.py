"""Which secrets a program of a job gets, and that Ray is told no value."""

import json
import os
from typing import Any

import pytest
from aiinfra_vm import configuration, job, jobs, ray_secrets, secrets, storage

HELD = "projects/p/secrets/held/versions/latest"
OWN = "projects/p/secrets/own/versions/3"


@pytest.fixture(autouse=True)
def _manager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two secrets of the cluster, and a Secret Manager in which each has its path for a value."""
    known = {"secrets": [{"name": it, "resource": HELD} for it in ("A", "B")]}
    monkeypatch.setattr(configuration, "load", lambda: known)
    monkeypatch.setattr(secrets, "read", lambda resource: resource.encode())


def test_the_secrets_of_a_job_come_beside_those_of_its_cluster_and_go_before_them() -> None:
    assert secrets.of_all() == {"A": HELD.encode(), "B": HELD.encode()}
    found = secrets.of_all({"B": OWN, "C": OWN})
    assert found == {"A": HELD.encode(), "B": OWN.encode(), "C": OWN.encode()}


def test_a_task_of_ray_reads_those_whose_names_its_job_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment: dict[bytes, Any] = {}
    monkeypatch.setattr(os, "environb", environment)
    monkeypatch.setenv(ray_secrets.OWN, json.dumps({"C": OWN}))
    ray_secrets.take()
    assert environment == {b"A": HELD.encode(), b"B": HELD.encode(), b"C": OWN.encode()}


def test_ray_is_told_the_names_of_a_jobs_secrets_and_no_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(configuration, "load", lambda: {"ray": {"version": "2.52.0"}})
    asked = {"name": "t-1", "command": ["true"], "secrets": {"C": OWN}}
    spec = jobs.spec(json.dumps(asked).encode(), "t-1")
    node = jobs.Node(0, "vm-1", "1", "10.0.0.1")
    folder = storage.Folder("bucket", "folder")
    runner = job.Runner(jobs.Course("t-1", attempt=1, nodes=(node,)), node, folder, folder)
    found = runner._environment(spec, {"C": b"its-value"})
    variables = json.loads(found[b"AIINFRA_RAY_VARIABLES"])
    assert json.loads(variables[ray_secrets.OWN]) == {"C": OWN}
    assert found[b"AIINFRA_RAY_SECRETS"] == b"1"
    assert b"its-value" not in b"".join(found.values())
