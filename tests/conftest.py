"""What all layers of tests share: goldens, and unit tests that reach no network."""

import difflib
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from provision.signals import SIGNALS

# How long an example takes says how busy the machine is, and nothing else.
settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile("usual", max_examples=150, deadline=None)
settings.register_profile("long", max_examples=10_000, deadline=None)
settings.load_profile("usual")


pytest_plugins = ["tests.plugin"]

_HERE = Path(__file__).parent
_SOCKETLESS = [_HERE / "unit", _HERE / "rehearsal" / "cloud", _HERE / "rehearsal" / "provider"]
_LOOPBACK = ["127.0.0.1", "::1", "localhost"]
_SERVERS = {"gke_of", "google"}  # fixtures that serve on loopback


@pytest.fixture(autouse=True)
def _signals_as_on_a_terminal() -> Iterator[None]:
    """What is ignored here (nohup, a shell's background) is ignored by all that a test starts.

    The program ignores signals at its end, so a test that calls it would leave that to the next.
    """
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler in before.items():
        if handler is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-goldens", action="store_true", help="write what is made over the golden files"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "loopback: a unit test that talks to a server of its own on loopback"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Unit tests open no sockets, but to loopback where they say so or have a server."""
    for item in items:
        if not set(_SOCKETLESS).intersection(item.path.parents):
            continue
        has_server = _SERVERS.intersection(getattr(item, "fixturenames", ()))
        if has_server or item.get_closest_marker("loopback"):
            item.add_marker(pytest.mark.allow_hosts(_LOOPBACK))
        else:
            item.add_marker(pytest.mark.disable_socket)


@dataclass(frozen=True)
class Golden:
    """Compares what is made with what is kept in a file."""

    update: bool  # whether to write the file instead
    test: str  # the test that asks, for the command that renews its goldens

    def check(self, path: Path, made: str) -> None:
        """Fail unless the file holds exactly this text; say how to renew it."""
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(made, encoding="utf-8")
            return
        kept = path.read_text(encoding="utf-8") if path.exists() else ""
        if made == kept:
            return
        diff = difflib.unified_diff(
            kept.splitlines(), made.splitlines(), path.name, "made now", lineterm=""
        )
        command = f"python -m pytest --update-goldens '{self.test}'"
        pytest.fail("\n".join([*diff, "", f"If that is right: {command}"]), pytrace=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Goldens of this test."""
    return Golden(request.config.getoption("--update-goldens"), request.node.nodeid)
