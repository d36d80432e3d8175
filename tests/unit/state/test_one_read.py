"""The record and the state of a deployment are read once, and again where they may have changed."""

import dataclasses
import json

from provision.state import objects
from provision.state.objects import Stored, Writer
from provision.state.record import Record
from tests.unit.memory_folder import MemoryFolder
from tests.unit.preflight.test_quotas import RECORD as ANY

STATE = "terraform/state/default.tfstate"
RECORD = dataclasses.replace(ANY, name_prefix="np")


class _Named(MemoryFolder):
    """The folder of RECORD's deployment."""

    _place = RECORD


def _folder() -> MemoryFolder:
    state = json.dumps({"version": 4, "resources": [], "outputs": {"a": {"value": 1}}})
    return _Named({"deployment.json": RECORD.document(), STATE: state})


def _ask(folder: MemoryFolder) -> tuple[Record | None, object]:
    return folder.record(), folder.outputs().get("a")


def test_what_one_run_asks_for_again_it_has_read_once() -> None:
    folder = _folder()
    assert _ask(folder) == _ask(folder) == (RECORD, 1)
    assert sorted(folder.looked) == ["deployment.json", STATE]
    folder.look_again()
    _ask(folder)
    assert len(folder.looked) == 4


def test_after_terraform_only_the_state_is_read_again() -> None:
    folder = _folder()
    _ask(folder)
    folder.forget_state()
    _ask(folder)
    assert sorted(folder.looked) == ["deployment.json", STATE, STATE]


def test_an_object_that_is_read_once_is_read_again_once_it_was_written() -> None:
    folder = _folder()
    form = Stored("facts.json", Writer.PROGRAM, objects.said)
    for text in ('{"a": 1}', '{"a": 2}'):
        folder.write("facts.json", text, "application/json")
        for _ in range(2):
            assert folder.read_once(form) == json.loads(text)
    assert folder.looked == ["facts.json"] * 2


def test_what_this_run_writes_it_knows_without_a_look() -> None:
    folder = _folder()
    _ask(folder)
    folder.write_record(dataclasses.replace(RECORD, searching=True))
    found, _ = _ask(folder)
    assert found is not None
    assert found.searching
    assert len(folder.looked) == 2


def test_under_the_lock_another_look_is_taken_and_counts_until_somebody_has_waited() -> None:
    folder = _folder()
    _ask(folder)
    other = dataclasses.replace(RECORD, removing=True)
    folder.files["deployment.json"] = other.document()
    with folder.held("Create", "1"):
        assert _ask(folder) == (other, 1)
        del folder.files["deployment.json"]
        assert _ask(folder) == (other, 1)
    assert _ask(folder) == (other, 1)
    folder.look_again()
    assert _ask(folder) == (None, 1)


def test_another_deployments_folder_knows_nothing_of_this_ones() -> None:
    folder = _folder()
    _ask(folder)
    other = folder.beside("other")
    assert other.record() is None
    assert _ask(folder) == (RECORD, 1)


FORM = Stored("vms/members/{}.json", Writer.MACHINES, objects.said)


def test_what_one_list_has_is_not_listed_again_and_tells_whether_somebody_holds_the_lock() -> None:
    folder = _folder()
    folder.files |= {"vms/members/a.json": "{}", "vms/other.json": "{}"}
    folder.list_once([FORM])
    assert folder.names(FORM) == ["a"]
    assert list(folder.changed(FORM)) == ["a"]
    assert folder.lock() is None
    assert folder.read(FORM, "b") is None
    assert folder.looked == [""]
    assert folder.read(FORM, "a") == {}
    assert folder.looked == ["", "vms/members/a.json"]
    folder.look_again()
    assert folder.names(FORM) == ["a"]
    assert folder.looked[-1] == "vms/members/"
    with folder.held("Create", "7"):
        folder.list_once([])
        lock = folder.lock()
        assert lock is not None
        assert lock.id == "7"


def test_one_list_is_for_all_deployments_beside_it() -> None:
    folder = _folder()
    folder.list_once([FORM], of_all=True)
    folder.looked.clear()
    other = folder.beside("other")
    assert other.names(FORM) == []
    assert other.lock() is None
    assert folder.looked == []
