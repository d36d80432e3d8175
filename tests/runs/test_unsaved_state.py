"""A state that Terraform could not write at the end of an apply."""

from pathlib import Path

import pytest

from tests.runs.conftest import Rehearsal

# The first write is the run's own, of a state without resources.
_REFUSED = "POST|PUT /upload/storage/**/default.tfstate: refuse 403 after=1"


def test_it_is_written_again_as_soon_as_that_works(rehearsal: Rehearsal) -> None:
    assert rehearsal.cloud is not None
    rehearsal.cloud.faults.add(f"{_REFUSED} times=1")
    created = rehearsal.run("Create")
    assert created.code == 6, created.said
    assert "The state is saved now" in created.said

    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert again.document["changes"] == {"add": 0, "change": 0, "destroy": 0}


@pytest.mark.slow(sibling="::test_it_is_written_again_as_soon_as_that_works")
def test_it_is_kept_where_it_can_be_had_and_the_next_create_needs_it_not(
    rehearsal: Rehearsal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert rehearsal.cloud is not None
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    fault = rehearsal.cloud.faults.add(_REFUSED)
    created = rehearsal.run("Create")
    rehearsal.cloud.faults.end(fault)
    assert created.code == 6, created.said
    (kept,) = here.iterdir()
    assert str(kept) in created.problem["why"]
    assert '"google_compute_instance_group_manager"' in kept.read_text()
    kept.unlink()

    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert rehearsal.run("Destroy").code == 0
