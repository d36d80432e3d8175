import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal.cloud.server import Cloud

# The programs that VMs get, imported as they are there.
_PROGRAMS = str(Path(__file__).parents[4] / "terraform/modules/startup/payload/lib")
if _PROGRAMS not in sys.path:
    sys.path.append(_PROGRAMS)

with warnings.catch_warnings():
    # google-api-core warns, once, that grpcio-status is missing, which only gRPC's errors need.
    warnings.simplefilter("ignore", ImportWarning)
    importlib.import_module("google.api_core.exceptions")
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with Cloud(database=tmp_path / "cloud.sqlite", environ={"CLOUD_CLOCK_RATE": "0"}) as running:
        yield running


@pytest.fixture
def client(cloud: Cloud) -> Iterator[storage.Client]:
    made = storage.Client(
        project="proj-a1",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": cloud.base_url},
    )
    yield made
    made.close()


@pytest.fixture
def bucket(client: storage.Client) -> storage.Bucket:
    made = client.bucket("loom-state")
    made.iam_configuration.uniform_bucket_level_access_enabled = True
    made.iam_configuration.public_access_prevention = "enforced"
    made.versioning_enabled = True
    made.create(location="us-central1")
    return made
