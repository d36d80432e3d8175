"""The client that VMs have, every request that it sends, against the simulated Cloud Storage."""

import io

import pytest
from aiinfra_vm import metadata
from aiinfra_vm.storage import NOTHING, Folder, Unchanged
from google.cloud import storage

from rehearsal.cloud.server import Cloud


@pytest.fixture
def folder(cloud: Cloud, bucket: storage.Bucket, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.base_url)
    monkeypatch.setattr(metadata, "token", lambda: "ya29.rehearsal")
    return Folder(bucket.name, "np-deployment")


def test_what_a_vm_writes_reads_watches_renews_and_removes_is_kept_by_its_conditions(
    folder: Folder,
) -> None:
    assert folder.read("vms/a") is None
    first = folder.write("vms/a", {"rank": 0}, NOTHING)
    assert first is not None
    assert folder.write("vms/a", {"rank": 1}, NOTHING) is None, "somebody was first"

    content, read = folder.read("vms/a") or (b"", NOTHING)
    assert (content.strip(), read) == (b'{"rank": 0}', first)
    with pytest.raises(Unchanged):
        folder.read("vms/a", unless=first.generation)
    renewed = folder.touch(first)
    assert renewed is not None
    assert renewed.metageneration > first.metageneration
    with pytest.raises(Unchanged):
        folder.read("vms/a", unless=renewed.generation)

    assert folder.write("vms/a", {"rank": 2}, first) is None, "it was renewed since"
    second = folder.write("vms/a", {"rank": 2}, renewed)
    assert second is not None
    assert folder.read("vms/a", unless=first.generation) is not None
    to = io.BytesIO()
    folder.fetch("vms/a", to)
    assert to.getvalue().strip() == b'{"rank": 2}'
    assert list(folder.list("vms/")) == [second]
    folder.remove(first)
    assert list(folder.list("vms/")) == [second], "another content is not removed"
    folder.remove(second)
    assert list(folder.list("vms/")) == []
