"""Each way to give credentials, against the simulated metadata and token servers."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.google import auth
from rehearsal import session
from rehearsal.cloud.server import Cloud
from tests.image.conftest import Image
from tests.unit.google.auth import token_server
from tests.unit.google.auth.token_server import Google

SETTINGS = ("PROJECT_ID=my-project", "NAME_PREFIX=np", "ZONE=us-central1-a")
_IDENTITY = ("GCE_METADATA", "GOOGLE_OAUTH", "CLOUDSDK", "TF_", "PYTHONPATH", "AIINFRA")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    """A simulated cloud on this machine's loopback, as the containers see it too."""
    with Cloud(database=tmp_path / "cloud.sqlite", environ={"CLOUD_CLOCK_RATE": "0.02"}) as found:
        yield found


@pytest.fixture
def reachable(cloud: Cloud, tmp_path: Path) -> tuple[str, ...]:
    """Options that lead a container to the cloud, but for whose credentials it has."""
    (tmp_path / "rehearsal").mkdir()
    wanted = session.environment(cloud.base_url, tmp_path / "rehearsal", {})
    endpoints = {n: v for n, v in wanted.items() if not n.startswith(_IDENTITY)}
    del endpoints["PATH"]  # with this machine's stand-ins of gcloud and kubectl
    # The stand-in for the provider is in the image under the real one's name.
    endpoints |= {"REHEARSAL_PYTHON": "/opt/venv/bin/python", "PYTHONPATH": "/opt/aiinfra"}
    # It knows tokens and the metadata server, but no files; those come before the server for all
    # others: google-auth, google-cloud-storage, and the backend of the real Terraform.
    endpoints |= {"GCE_METADATA_HOST": cloud.base_url.removeprefix("http://")}
    endpoints |= {"GCE_METADATA_MTLS_MODE": "none"}
    entries = (*SETTINGS, *(f"{name}={value}" for name, value in endpoints.items()))
    return ("--network=host", *(f"--env={entry}" for entry in entries))


@pytest.fixture
def key(cloud: Cloud) -> str:
    """The key of a service account whose token endpoint is the cloud's."""
    return token_server.key(f"{cloud.base_url}/token")


@pytest.fixture
def google() -> Iterator[Google]:
    """A token endpoint and a metadata server that say what a test wants them to."""
    with token_server.serving() as found:
        yield found


def test_the_vms_own_account_is_enough(image: Image, reachable: tuple[str, ...]) -> None:
    done = image.run("Create", options=reachable)

    assert done.code == 0, done.err


@pytest.fixture
def ways(cloud: Cloud, key: str, tmp_path: Path) -> dict[str, tuple[str, ...]]:
    """Options that give credentials, by the way that it is."""
    given = tmp_path / "given"
    given.mkdir()
    (given / "file.json").write_text(
        token_server.federation(f"{cloud.base_url}/token", "/given/file.json")
    )
    (given / "application_default_credentials.json").write_text(key)
    mount = ("-v", f"{given}:/given:ro")
    return {
        "key": (*mount, f"--env={auth.FILE}=/given/application_default_credentials.json"),
        "federation": (*mount, f"--env={auth.FILE}=/given/file.json"),
        "gcloud": ("-v", f"{given}:/root/.config/gcloud"),
        "token": (f"--env={auth.TOKEN}=ya29.given",),
    }


@pytest.mark.parametrize("way", ["key", "federation", "gcloud", "token"])
def test_other_ways_are_enough_for_the_checks_and_a_plan(
    image: Image, reachable: tuple[str, ...], ways: dict[str, tuple[str, ...]], way: str
) -> None:
    done = image.run("Plan", options=(*reachable, *ways[way]))

    assert done.code == 0, done.err


def test_what_terraform_would_prefer_does_not_reach_it(
    image: Image, reachable: tuple[str, ...]
) -> None:
    done = image.run("Plan", options=(*reachable, "--env=GOOGLE_BACKEND_CREDENTIALS=/none.json"))

    assert done.code == 0, done.err
    assert "Credentials: this VM, as " in done.err


def test_gclouds_folder_is_read_by_whoever_owns_it(
    image: Image, reachable: tuple[str, ...], key: str, tmp_path: Path
) -> None:
    folder = tmp_path / "gcloud"
    folder.mkdir(mode=0o700)
    (folder / "application_default_credentials.json").write_text(key)
    for path in (folder, *folder.iterdir()):
        os.chown(path, 12345, 12345)
    mount = ("-v", f"{folder}:/root/.config/gcloud", "--user", "12345:12345")

    done = image.run("Plan", options=(*reachable, *mount))

    assert done.code == 0, done.err


def test_without_credentials_a_pipeline_is_told_the_three_ways(image: Image) -> None:
    options = ("--network=none", *(f"--env={entry}" for entry in SETTINGS))

    done = image.run("Create", "--output=json", options=options)

    (problem,) = json.loads(done.out)["problems"]
    assert done.code == 3
    assert problem["what"] == "No Google credentials were found"
    for way in ("gcloud auth application-default login", "GOOGLE_APPLICATION_CREDENTIALS", "VM"):
        assert way in problem["fix"]


def test_cloud_shells_person_is_enough(
    image: Image, reachable: tuple[str, ...], google: Google
) -> None:
    machine = google.is_a_machine("ann@example.com", [])
    given = (f"--env={name}={value}" for name, value in machine.items())

    done = image.run("Plan", options=(*reachable, *given))

    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        ((200, {"email": "vm@x.gserviceaccount.com", "scopes": []}), "access to Google's APIs is"),
        ((404, "Not Found"), "This VM has no service account"),
    ],
    ids=["scopes", "account"],
)
def test_a_vm_that_was_made_without_access_is_told_how_to_get_it(
    image: Image, google: Google, answer: tuple[int, object], what: str
) -> None:
    google.answers[token_server.ACCOUNT] = answer
    given = (f"--env={entry}" for entry in (*SETTINGS, f"GCE_METADATA_HOST={google.host}"))

    done = image.run("Create", options=("--network=host", *given))

    assert done.code == 3
    assert what in done.err
    assert "set-service-account" in done.err


def test_a_login_that_was_revoked_is_told_before_anything_is_made(
    image: Image, google: Google, tmp_path: Path
) -> None:
    google.answers["/token"] = (
        400,
        {"error": "invalid_grant", "error_description": "Token has been expired or revoked."},
    )
    (tmp_path / "application_default_credentials.json").write_text(
        token_server.key(google.token_uri)
    )
    given = (f"--env={entry}" for entry in SETTINGS)
    mount = ("-v", f"{tmp_path}:/root/.config/gcloud")

    done = image.run("Create", options=("--network=host", *mount, *given))

    assert done.code == 3
    assert "has expired or was revoked" in done.err
    assert "gcloud auth application-default login" in done.err


@pytest.mark.parametrize(
    ("content", "what"),
    [(None, "can't be used as credentials"), ("{}", "can't be used as credentials")],
    ids=["missing", "empty"],
)
def test_a_file_that_was_not_mounted_or_is_none_is_named(
    image: Image, tmp_path: Path, content: str | None, what: str
) -> None:
    if content is not None:
        (tmp_path / "key.json").write_text(content)
    given = ("-v", f"{tmp_path}:/given:ro", f"--env={auth.FILE}=/given/key.json")
    settings = (f"--env={entry}" for entry in SETTINGS)

    done = image.run("Plan", options=("--network=none", *given, *settings))

    assert done.code == 3
    assert "/given/key.json" in done.err
    assert what in done.err
