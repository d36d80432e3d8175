"""A VM's access token: a metadata server that hangs keeps nobody from Cloud Storage."""

import io
import json
from types import SimpleNamespace
from typing import Any

import pytest
from aiinfra_vm import metadata


class Server:
    """A metadata server, and the clock of its VM."""

    def __init__(self) -> None:
        self.now = 5000.0
        self.hangs = False
        self.asked = 0

    def open(self, _request: object, timeout: float) -> Any:
        self.asked += 1
        if self.hangs:
            self.now += timeout
            raise TimeoutError
        token = {"access_token": f"token-{self.asked}", "expires_in": 3000}
        return io.BytesIO(json.dumps(token).encode())

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    clock = SimpleNamespace(
        CLOCK_BOOTTIME=7, clock_gettime=lambda _number: made.now, sleep=made.sleep
    )
    monkeypatch.setattr(metadata, "_opener", made)
    monkeypatch.setattr(metadata, "time", clock)
    monkeypatch.setattr(metadata._Kept, "ends", 0.0)
    return made


def test_a_token_is_kept_until_shortly_before_its_end(server: Server) -> None:
    assert metadata.token() == "token-1"
    server.now += 2700
    assert (metadata.token(), server.asked) == ("token-1", 1)
    server.now += 100
    assert (metadata.token(), server.asked) == ("token-2", 2)


def test_while_the_server_hangs_nobody_waits_for_it_as_long_as_the_token_is_good(
    server: Server,
) -> None:
    assert metadata.token() == "token-1"
    server.hangs = True
    server.now += 2990
    began = server.now
    assert metadata.token() == "token-1"
    assert server.now - began <= 2
    server.now += 100
    with pytest.raises(TimeoutError):
        metadata.token()


def test_a_token_of_no_known_end_is_asked_for_each_time(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "open", lambda *_, **__: io.BytesIO(b'{"access_token": "a"}'))
    assert metadata.token() == "a"
    monkeypatch.setattr(server, "open", lambda *_, **__: io.BytesIO(b'{"access_token": "b"}'))
    assert metadata.token() == "b"
