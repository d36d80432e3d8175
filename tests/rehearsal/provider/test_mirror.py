import hashlib
import os
import platform
import stat
import sys
from pathlib import Path

import pytest

from rehearsal.provider import certificate, mirror
from tests.running import ran
from tests.table import cases


def test_the_plugin_is_the_same_bytes_for_ever() -> None:
    # Changing it changes the checksum in every lock file that has it.
    digest = hashlib.sha256(mirror.PLUGIN.encode()).hexdigest()
    assert digest == "56760dabbdfbb0f4c1c96c706260bfb837710a98eb7e5079f384f3de1567ccfc"


def test_the_package_holds_the_plugin_and_nothing_else(tmp_path: Path) -> None:
    mirror.install(tmp_path, sys.executable)
    (package,) = tmp_path.glob("mirror/registry.terraform.io/hashicorp/google/7.45.0/*")
    (plugin,) = package.iterdir()
    assert plugin.name == "terraform-provider-google_v7.45.0_x5"
    assert plugin.read_text() == mirror.PLUGIN
    assert plugin.stat().st_mode & 0o777 == 0o755


@cases("""
system | machine | name
Linux | x86_64 | linux_amd64
Linux | aarch64 | linux_arm64
Darwin | arm64 | darwin_arm64
Darwin | x86_64 | darwin_amd64
""")
def test_the_platform_has_terraforms_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, system: str, machine: str, name: str
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    mirror.install(tmp_path, sys.executable)
    assert [each.name for each in tmp_path.glob("mirror/*/*/*/7.45.0/*")] == [name]


def test_the_configuration_takes_google_from_the_mirror_alone(tmp_path: Path) -> None:
    text = mirror.install(tmp_path, sys.executable).read_text()
    assert f'path    = "{tmp_path}/mirror"' in text
    assert 'include = ["registry.terraform.io/hashicorp/google"]' in text
    assert 'exclude = ["registry.terraform.io/hashicorp/google"]' in text


def test_installing_again_changes_nothing(tmp_path: Path) -> None:
    made = []
    for _ in range(2):
        mirror.install(tmp_path, sys.executable)
        made.append({it: it.read_bytes() for it in tmp_path.rglob("*") if it.is_file()})
    assert made[0] == made[1]
    assert stat.S_IMODE((tmp_path / "plugin.pem").stat().st_mode) == 0o600  # its owner's alone


def test_the_plugin_starts_the_python_beside_the_configuration(tmp_path: Path) -> None:
    config = mirror.install(tmp_path / "with space", sys.executable)
    (plugin,) = (tmp_path / "with space").glob("mirror/**/terraform-provider-*")
    environment = {"PATH": os.environ["PATH"], "TF_CLI_CONFIG_FILE": str(config)}
    done = ran([plugin], env=environment, cwd=tmp_path)
    assert done.returncode == 1
    assert "Terraform starts it, nobody by hand" in done.stderr
    assert done.stdout == ""


def test_a_ready_certificate_is_used_and_a_new_one_made_without(tmp_path: Path) -> None:
    certificate.write(tmp_path / "c.pem")
    ready = certificate.ready({certificate.VARIABLE: str(tmp_path / "c.pem")})
    assert ready == (tmp_path / "c.pem").read_bytes()
    assert certificate.ready({}) != ready
    assert certificate.handshake(ready).startswith("MII")
    assert "=" not in certificate.handshake(ready)
