import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

from rehearsal import session
from rehearsal.errors import ProviderNotUsable
from rehearsal.provider import given, mirror
from tests.table import cases

PLUGIN = "#!/bin/sh\necho 'This binary is a plugin; Terraform starts it.' >&2\nexit 1\n"
ZIP = f"terraform-provider-google_7.45.0_{mirror.platform_name()}.zip"
TREE = Path(__file__).parents[3]


def _binary(folder: Path, name: str = mirror.NAME, text: str = PLUGIN, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    file.chmod(mode)
    return file


def _zip(folder: Path, name: str = ZIP, member: str = mirror.NAME) -> Path:
    with zipfile.ZipFile(folder / name, "w") as packed:
        packed.writestr("LICENSE.txt", "MPL")
        packed.writestr(member, PLUGIN)
    return folder / name


def _refusal(file: Path, folder: Path) -> ProviderNotUsable:
    with pytest.raises(ProviderNotUsable) as refused:
        given.check(file, folder)
    assert refused.value.fix
    return refused.value


def test_a_binary_is_taken_where_it_lies_and_known_by_its_checksum(tmp_path: Path) -> None:
    file = _binary(tmp_path)
    found = given.check(file, tmp_path / "kept")
    assert found.binary == file
    assert re.fullmatch(r".* \(sha256 [0-9a-f]{64}\)", found.about)
    assert not (tmp_path / "kept").exists()


def test_a_zip_is_unpacked_once_and_one_that_is_not_hashicorps_is_called_that(
    tmp_path: Path,
) -> None:
    found = given.check(_zip(tmp_path), tmp_path / "kept")
    assert os.access(found.binary, os.X_OK)
    assert "of a zip that is none of HashiCorp's" in found.about
    before = found.binary.stat().st_mtime_ns
    assert given.check(tmp_path / ZIP, tmp_path / "kept").binary.stat().st_mtime_ns == before


def test_hashicorps_zips_are_known_by_the_checksums_of_the_lock_files() -> None:
    for file in TREE.glob("terraform/*/.terraform.lock.hcl"):
        assert set(re.findall(r'"zh:(\w+)"', file.read_text())) == given._PUBLISHED


@cases("""
name | why
terraform-provider-google_v7.44.0_x5 | its name has to be
terraform-provider-google-beta_v7.45.0_x5 | its name has to be
provider | that is how Terraform, too, tells a version
""")
def test_a_binary_of_another_name_or_version_is_refused(
    tmp_path: Path, name: str, why: str
) -> None:
    assert why in _refusal(_binary(tmp_path, name), tmp_path).why


def test_what_can_not_be_started_here_is_refused_with_the_reason(tmp_path: Path) -> None:
    unmarked = _refusal(_binary(tmp_path / "a", mode=0o644), tmp_path)
    assert (unmarked.why, unmarked.fix) == (
        "it may not be executed",
        f"chmod +x {tmp_path / 'a' / mirror.NAME}",
    )
    foreign = _refusal(_binary(tmp_path / "b", text="\x7fELF of another machine"), tmp_path)
    assert "can't start it: Exec format error" in foreign.why
    other = _refusal(_binary(tmp_path / "c", text="#!/bin/sh\necho hello\n"), tmp_path)
    assert other.why.endswith("but: hello")


def test_a_zip_of_another_platform_or_content_is_refused(tmp_path: Path) -> None:
    foreign = _zip(tmp_path, "terraform-provider-google_7.45.0_windows_amd64.zip")
    assert "it is for windows_amd64, and this machine is" in _refusal(foreign, tmp_path).why
    other = _zip(tmp_path, member="terraform-provider-google_v7.44.0_x5")
    assert "it does not hold" in _refusal(other, tmp_path).why
    other.write_text("no zip")
    assert "it is no zip" in _refusal(other, tmp_path).why


def test_outside_the_image_the_scenario_says_what_is_missing_and_how_to_give_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given, "IMAGE", tmp_path / "none")
    with pytest.raises(ProviderNotUsable) as refused:
        session.wanted_provider(tmp_path, {}, "flaky,real-provider")
    assert "the project's image" in refused.value.why
    assert f"REHEARSAL_PROVIDER=/folder/{mirror.NAME}" in refused.value.fix
    assert session.wanted_provider(tmp_path, {}, "flaky") is None


def test_in_the_image_the_scenario_takes_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(given, "IMAGE", tmp_path / "image")
    package = tmp_path / "image" / mirror.ADDRESS / mirror.VERSION / mirror.platform_name()
    file = _binary(package)
    found = session.wanted_provider(tmp_path, {}, "real-provider,slow")
    assert found is not None
    assert found.binary == file
    named = _binary(tmp_path / "named")
    found = session.wanted_provider(tmp_path, {given.VARIABLE: str(named)}, "real-provider")
    assert found is not None
    assert found.binary == named


def test_terraform_finds_the_given_one_and_the_stand_in_stays_where_it_was(tmp_path: Path) -> None:
    stand_in = mirror.install(tmp_path, sys.executable)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    file = _binary(tmp_path / "own")
    made = session.environment("http://127.0.0.1:1", tmp_path, {given.VARIABLE: str(file)})
    config = Path(made["TF_CLI_CONFIG_FILE"])
    assert config != stand_in
    (plugin,) = config.parent.glob("mirror/registry.terraform.io/hashicorp/google/7.45.0/*/*")
    assert (plugin.name, plugin.resolve()) == (mirror.NAME, file.resolve())
    assert str(config.parent / "mirror") in config.read_text()
    assert {path: path.read_bytes() for path in before} == before


def test_what_the_real_one_asks_google_itself_goes_nowhere(tmp_path: Path) -> None:
    file = _binary(tmp_path)
    caller = {given.VARIABLE: str(file), "https_proxy": "http://proxy.example.com"}
    made = session.environment("http://127.0.0.1:1", tmp_path, caller)
    assert made["HTTPS_PROXY"] == made["https_proxy"] == "http://127.0.0.1:1"
    assert "USER_PROJECT_OVERRIDE" not in session.environment(
        "http://127.0.0.1:1", tmp_path, {"USER_PROJECT_OVERRIDE": "true"}
    )
