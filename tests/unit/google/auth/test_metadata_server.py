import contextlib
import socket
import time

import pytest

from provision.google import auth
from tests.unit.google.auth.conftest import refused
from tests.unit.google.auth.token_server import ACCOUNT, Google

VM = "1-compute@developer.gserviceaccount.com"
PERSON = "ann@example.com"
ALL = ["https://www.googleapis.com/auth/cloud-platform"]
NARROW = ["https://www.googleapis.com/auth/devstorage.read_only"]


@pytest.mark.parametrize(
    ("email", "scopes", "place"),
    [(VM, ALL, "this VM"), (PERSON, ALL, "Cloud Shell"), (PERSON, [], "Cloud Shell")],
    ids=["vm", "person", "person-of-whom-no-scopes-are-told"],
)
def test_the_machines_own_account_is_named(
    google: Google, email: str, scopes: list[str], place: str
) -> None:
    said: list[str] = []
    found = auth.credentials(google.is_a_machine(email, scopes), said.append)

    assert found.token == "ya29.machine"  # noqa: S105 - the server's
    assert said == [f"Credentials: {place}, as {email}"]


def test_a_vm_whose_scopes_are_too_narrow_is_told_so(google: Google) -> None:
    problem = refused(google.is_a_machine(VM, NARROW))

    assert "the scope https://www.googleapis.com/auth/cloud-platform is missing" in problem.what
    assert "devstorage.read_only" in problem.why
    assert "set-service-account" in problem.fix


def test_a_vm_without_an_account_and_a_server_that_names_nobody_are_told(google: Google) -> None:
    assert refused({"GCE_METADATA_HOST": google.host}).what == "This VM has no service account"
    answers: list[tuple[int, object]] = [(403, "not authorized"), (200, "no JSON")]
    for answer in (*answers, (200, {"aliases": []})):
        google.answers[ACCOUNT] = answer
        problem = refused({"GCE_METADATA_HOST": google.host})
        assert "does not name an account" in problem.what
        assert str(answer[0]) in problem.why
        assert "Cloud Shell" in problem.fix


def test_another_server_at_its_address_is_not_taken_for_it(google: Google) -> None:
    environ = google.is_a_machine(VM, ALL)
    google.flavor = "Somebody else"

    assert refused(environ | {"PATH": ""}).what == "No Google credentials were found"


@pytest.mark.loopback
def test_without_credentials_and_terminal_three_ways_are_named_at_once() -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as nobody:
        host = f"127.0.0.1:{nobody.getsockname()[1]}"
    began = time.monotonic()
    problem = refused({"GCE_METADATA_HOST": host, "PATH": ""})

    assert time.monotonic() - began < 3
    assert problem.what == "No Google credentials were found"
    numbered = [line[:2] for line in problem.fix.splitlines() if line[0].isdigit()]
    assert numbered == ["1.", "2.", "3."]


def test_nobody_is_asked_where_it_is_said_that_there_is_no_metadata_server(google: Google) -> None:
    environ = google.is_a_machine(VM, ALL) | {"NO_GCE_CHECK": "true", "PATH": ""}

    assert refused(environ).what == "No Google credentials were found"
    assert google.asked == []
