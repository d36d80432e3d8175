from typing import Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resources import operations
from tests.rehearsal.provider.resources.conftest import Google
from tests.table import cases

RUNNING = {"name": "o", "status": "RUNNING"}
DONE = {"name": "o", "status": "DONE"}
GLOBAL = "GET /compute/v1/projects/p/global/operations/o"


def wait(api: Api, operation: dict[str, Any], limit: float = 1200) -> dict[str, Any]:
    return operations.compute(api, operation, "p", "Creating Network", limit)


@cases(
    """
operation | path
@done | null
{name: o, status: RUNNING, zone: "https://x/projects/p/zones/z"} | zones/z
{name: o, status: RUNNING, region: "https://x/projects/p/regions/r"} | regions/r
""",
    done=DONE,
)
def test_an_operation_is_read_where_it_says_it_is_until_it_is_done(
    operation: dict[str, Any], path: str | None, google: Google, api: Api
) -> None:
    google.on(".*", DONE)
    assert wait(api, operation) == DONE
    asked = [f"GET /compute/v1/projects/p/{path}/operations/o"] if path else []
    assert google.lines == asked


def test_an_operation_that_takes_too_long_is_given_up(google: Google, api: Api) -> None:
    google.on(GLOBAL, RUNNING)
    with pytest.raises(ProviderError, match=r"last state: 'RUNNING', timeout: 30s"):
        wait(api, RUNNING, limit=30)
    assert len(google.asked) == 4


def test_an_interrupted_wait_says_so_in_the_providers_words(google: Google, api: Api) -> None:
    google.on(GLOBAL, RUNNING)
    api.cancel.set()
    with pytest.raises(ProviderError) as caught:
        wait(api, RUNNING)
    assert str(caught.value) == (
        "Error waiting for Creating Network: error while retrieving operation: unable to finish"
        " polling, context has been cancelled"
    )


def test_an_interrupt_does_not_end_the_wait_for_a_newer_operation(google: Google, api: Api) -> None:
    google.on("GET .*", {"name": "o"}, {"name": "o"}, {"name": "o", "done": True})
    api.cancel.set()
    operations.named(api, "file", {"name": "o"}, "Creating Instance", 60)
    assert len(google.asked) == 3


def test_the_configuration_may_limit_an_action_and_the_type_does_else() -> None:
    given = {"timeouts": {"create": "30m", "delete": None}}
    assert operations.timeout(given, "create", "google_compute_network") == 1800
    assert operations.timeout(given, "delete", "google_compute_network") == 1200
    assert operations.timeout({}, "create", "google_compute_instance_template") == 240
    assert operations.timeout({}, "create", "google_container_cluster") == 5400
