from pathlib import Path

import pytest

from provision.errors import CredentialsError
from provision.google import auth
from tests.unit.google.auth.conftest import refused


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody is there."""
    monkeypatch.setattr(auth, "_has_terminal", lambda: True)


def _gcloud(tmp_path: Path, script: str) -> dict[str, str]:
    """The environment in which gcloud does this."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gcloud").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "bin" / "gcloud").chmod(0o755)
    home = str(tmp_path / "home")
    return {"HOME": home, "PATH": str(tmp_path / "bin"), "NO_GCE_CHECK": "true"}


def test_a_person_at_a_terminal_logs_in_with_gcloud(tmp_path: Path, key: Path) -> None:
    environ = _gcloud(
        tmp_path,
        '[ "$*" = "auth application-default login --no-launch-browser" ] || exit 2\n'
        '/bin/mkdir -p "$HOME/.config/gcloud"\n'
        f'/bin/cp {key} "$HOME/.config/gcloud/application_default_credentials.json"',
    )

    assert auth.credentials(environ).token == "ya29.key"  # noqa: S105 - the server's
    assert auth.for_terraform(environ)["GOOGLE_APPLICATION_CREDENTIALS"].startswith(environ["HOME"])


def test_a_login_that_gives_nothing_is_an_error(tmp_path: Path) -> None:
    for script, what in {
        "exit 1": "The login was not completed",
        "exit 0": "The interactive login left no credentials",
    }.items():
        (tmp_path / script).mkdir()
        assert refused(_gcloud(tmp_path / script, script)).what == what


def test_a_pipeline_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "_has_terminal", lambda: False)
    environ = _gcloud(tmp_path, 'echo >"$0.asked"')

    assert refused(environ).what == "No Google credentials were found"
    assert list((tmp_path / "bin").iterdir()) == [tmp_path / "bin" / "gcloud"]


def test_who_only_looks_at_prices_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "_has_terminal", lambda: True)
    environ = _gcloud(tmp_path, 'echo >"$0.asked"')

    with pytest.raises(CredentialsError, match="No Google credentials"):
        auth.credentials(environ, offers_login=False)
    assert list((tmp_path / "bin").iterdir()) == [tmp_path / "bin" / "gcloud"]
