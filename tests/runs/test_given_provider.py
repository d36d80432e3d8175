"""A rehearsal with a provider from outside, as Terraform starts HashiCorp's own.

None of HashiCorp's can be had here. In its place stands an executable that is not the stand-in's
package: other bytes, hence another checksum, in another mirror; it notes each start and then is the
stand-in. All that a real one would go through is gone through; `make test-provider` has the rest.
"""

import os
import sys
import zipfile
from pathlib import Path

import pytest

from rehearsal import session
from rehearsal.provider import given, mirror
from tests.running import ran
from tests.runs.conftest import Rehearse

TREE = Path(__file__).parents[2]
SETTINGS = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}
SLOW = pytest.mark.slow(
    sibling="::test_a_rehearsal_without_the_provider_that_it_wants_is_no_rehearsal"
)


def _outsider(folder: Path) -> tuple[Path, Path]:
    """A provider, and the file in which it notes its starts by Terraform."""
    folder.mkdir()
    notes, binary = folder / "starts", folder / mirror.NAME
    binary.write_text(
        f"#!{sys.executable}\n"
        "import os, sys\n"
        "if 'TF_PLUGIN_MAGIC_COOKIE' in os.environ:\n"
        f"    open({str(notes)!r}, 'a').write('start\\n')\n"
        f"sys.path.insert(0, {str(TREE)!r})\n"
        "os.environ['PYTHONPATH'] = sys.path[0]\n"
        "os.execv(sys.executable, [sys.executable, '-P', '-m', 'rehearsal.provider'])\n"
    )
    binary.chmod(0o755)
    return binary, notes


@SLOW
def test_a_cluster_comes_stays_and_goes_by_a_provider_from_outside(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    binary, notes = _outsider(tmp_path / "outside")
    rehearsal = rehearse(real=True, environ={given.VARIABLE: str(binary)})
    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    started = notes.read_text().count("start")
    assert started > 1
    again = rehearsal.run("Create")
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}, again.said
    assert rehearsal.run("Destroy").code == 0
    assert [line for line in rehearsal.resources() if not line.startswith("storage/")] == []
    assert notes.read_text().count("start") > started


@SLOW
def test_the_scenario_is_combined_with_others_and_says_what_terraform_runs(tmp_path: Path) -> None:
    binary, notes = _outsider(tmp_path / "outside")
    packed = tmp_path / f"terraform-provider-google_7.45.0_{mirror.platform_name()}.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(binary, mirror.NAME)
    environ = {
        **{name: value for name, value in os.environ.items() if name not in SETTINGS},
        **SETTINGS,
        "CLOUD_CLOCK_RATE": "0.001",
        session.FOLDER_VARIABLE: str(tmp_path / "kept"),
        given.VARIABLE: str(packed),
    }
    done = ran(
        [sys.executable, str(TREE / "entrypoint.py"), "--rehearse=flaky,real-provider", "Plan"],
        env=environ,
    )
    assert done.returncode == 0, done.stderr
    assert f"Terraform runs the google provider {tmp_path / 'kept' / 'unpacked'}" in done.stderr
    assert "of a zip that is none of HashiCorp's (sha256 " in done.stderr
    assert notes.read_text().count("start") > 0


def test_a_rehearsal_without_the_provider_that_it_wants_is_no_rehearsal(tmp_path: Path) -> None:
    environ = {**os.environ, **SETTINGS, session.FOLDER_VARIABLE: str(tmp_path / "kept")}
    environ[given.VARIABLE] = str(tmp_path / "terraform-provider-google_v7.44.0_x5")
    (tmp_path / "terraform-provider-google_v7.44.0_x5").touch()
    done = ran([sys.executable, str(TREE / "entrypoint.py"), "--rehearse", "Plan"], env=environ)
    assert done.returncode == 2, done.stderr
    assert "terraform-provider-google_v7.44.0_x5 can't be the google provider 7.45.0" in done.stderr
    assert not (tmp_path / "kept" / session.DATABASE).exists()
