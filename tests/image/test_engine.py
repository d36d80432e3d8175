"""Where there is no container engine."""

from pathlib import Path

import pytest

from tests.image import engine


@pytest.mark.parametrize(
    ("user", "present"), [(1000, "/usr/bin/apt-get"), (0, None)], ids=["not-root", "not-debian"]
)
def test_who_can_neither_find_nor_install_an_engine_is_told_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, present: str | None
) -> None:
    monkeypatch.setattr(engine, "_CLIENT", str(tmp_path / "docker"))
    monkeypatch.setattr("shutil.which", lambda name: present if name == "apt-get" else None)
    monkeypatch.setattr("os.geteuid", lambda: user)

    with (
        pytest.raises(engine.NoEngineError, match="can only be installed by root on Debian"),
        engine.running(tmp_path),
    ):
        pass
