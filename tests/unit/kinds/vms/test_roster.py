"""What the tool tells a group of VMs, and reads of what they have agreed on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from provision.kinds.vms import roster

if TYPE_CHECKING:
    from provision.context import Cloud
    from provision.spec.cluster import VmSpec


class Folder:
    """A state folder that keeps older versions of what is written."""

    def __init__(self, **files: str) -> None:
        self.files = files
        self.written: list[str] = []

    def text(self, name: str) -> str | None:
        return self.files.get(name)

    def write(self, name: str, text: str, _content_type: str) -> None:
        self.files[name] = text
        self.written.append(text)


def _cloud(folder: Folder) -> Cloud:
    return cast("Cloud", SimpleNamespace(folder=folder))


def _spec(size: int) -> VmSpec:
    group = SimpleNamespace(size=SimpleNamespace(first=size))
    return cast("VmSpec", SimpleNamespace(group=group))


def test_the_number_of_vms_is_written_when_it_is_another() -> None:
    folder = Folder()

    for size in (3, 3, 4):
        roster.tell_size(_cloud(folder), _spec(size))

    assert folder.written == ['{"instance_count": 3}', '{"instance_count": 4}']


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "no JSON", '{"members": {"a": 1}}', '{"members": [{"name": "a"}]}'],
    ids=str,
)
def test_a_roster_that_is_missing_or_spoiled_ranks_nobody(text: str | None) -> None:
    folder = Folder(**({} if text is None else {"vms/roster.json": text}))

    assert roster.seats(_cloud(folder)) == {}
