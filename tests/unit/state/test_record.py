import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.google.owner import Owner
from provision.intake import load
from provision.settings.model import BY_VARIABLES, Settings
from provision.state import lost_record, record
from provision.state.record import ForeignRecordError, Record, Reserved
from tests.unit.conftest import MANDATORY

WHOLE = Record(
    kind="mig",
    cluster_id="0123456789ab",
    project_id="my-project",
    name_prefix="np",
    region="us-central1",
    zone="us-central1-a",
    tool_version="2.0.0",
    terraform_version="1.11.4",
    image={"project": "debian-cloud", "family": "debian-12", "name": None},
    last_request=3,
    gke_version="1.33.5-gke.1080000",
    reservations={"np-mig": Reserved(reservation="r", bound=True, policies=("p",))},
    settings={"INSTANCE_COUNT": 2, "PROTECT": False},
)
INJECTED = 'us-central1/x?quotaUser=${tonumber(file("/etc/passwd"))}#'
EXAMPLES = sorted(Path("examples").glob("*.env.list"))


def _changed(**fields: Any) -> Record | None:
    return Record.parse(json.dumps(json.loads(WHOLE.document()) | fields))


def test_what_is_written_is_read_again() -> None:
    assert Record.parse(WHOLE.document()) == WHOLE


@pytest.mark.parametrize(
    ("version", "newer"),
    [
        ("0.1.0", None),
        ("0.0.9", None),
        ("0.1.1", "0.1.1"),
        ("0.10.0", "0.10.0"),
        ("0.2.0rc1", "0.2.0rc1"),
        ("", None),
        ("x", None),
    ],
)
def test_a_record_of_a_newer_version_is_known_as_such(
    monkeypatch: pytest.MonkeyPatch, version: str, newer: str | None
) -> None:
    monkeypatch.setattr(record, "__version__", "0.1.0")
    assert dataclasses.replace(WHOLE, tool_version=version).newer_tool == newer


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("region", INJECTED),
        ("zone", "us-central1-a/../../../../x"),
        ("project_id", "my-project/global"),
        ("name_prefix", "np\x1b[2J"),
        ("cluster_id", 'x" OR labels.a="b'),
        ("kind", ["mig"]),
        ("tool_version", None),
        ("terraform_version", {}),
        ("image", {"name": "../x"}),
        ("image", {"name": 7}),
        ("last_request", True),
        ("last_request", 10**400),
        ("gke_version", 1.33),
        ("reservations", {"np-mig": None}),
        ("reservations", {"np-mig": {"reservation": "r?x=y"}}),
        ("settings", None),
        ("settings", [1]),
    ],
)
def test_a_field_that_breaks_its_rule_makes_the_record_damaged(name: str, value: Any) -> None:
    assert _changed(**{name: value}) is None


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[]", "[" * 100_000, '{"made_by": NaN}', '{"made_by":"\\ud800"}']
)
def test_what_is_no_object_of_json_is_damaged(text: str) -> None:
    assert Record.parse(text) is None


@pytest.mark.parametrize("text", ["{}", '{"made_by": "x"}', '{"made_by": "aiinfra-cluster"}'])
def test_the_record_of_another_program_is_no_damaged_one(text: str) -> None:
    with pytest.raises(ForeignRecordError):
        Record.parse(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("INSTANCE_COUNT", "many"),
        ("INSTANCE_COUNT", -1),
        ("PROTECT", "perhaps"),
        ("VM_TYPE", ["a"]),
        ("ACCELERATOR_TYPE", {}),
        ("NFS_FILESHARE_LIST", [{"path": "/mnt/a"}]),
        ("NFS_FILESHARE_LIST", 5),
        ("GCS_MOUNT_LIST", [None]),
        ("DISK_TYPE", None),
    ],
)
def test_a_setting_that_breaks_its_rule_is_left_out(name: str, value: Any) -> None:
    found = _changed(settings={name: value, "ZONE": "us-central1-a", "OF_LATER": [1]})

    assert found is not None
    assert found.settings == {"ZONE": "us-central1-a", "OF_LATER": [1]}


def _come_back(written: dict[str, Any]) -> dict[str, Any]:
    """The settings of a record that has these."""
    found = _changed(settings=json.loads(json.dumps(written)))
    assert found is not None
    return dict(found.settings)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_all_settings_of_an_example_come_back_as_they_were_written(path: Path) -> None:
    written = load({}, path).effective
    assert _come_back(written) == json.loads(json.dumps(written))


@pytest.mark.parametrize("name", BY_VARIABLES)
def test_an_example_of_each_setting_comes_back_as_it_was_written(name: str) -> None:
    for example in Settings.model_fields[name].examples or ():
        written = load({**MANDATORY, name.upper(): example}).effective
        there = json.loads(json.dumps(written))[name.upper()]
        assert _come_back(written)[name.upper()] == there


def test_a_record_has_small_numbers_of_seconds_too() -> None:
    pools = [{"name": "a", "vm_type": "a2-highgpu-1g", "max_run_duration": 300}]
    written = {"CAPACITY_TIMEOUT": 48, "MAX_RUN_DURATION": 300, "GKE_NODE_POOLS": pools}
    found = _come_back(written)
    assert (found["CAPACITY_TIMEOUT"], found["MAX_RUN_DURATION"]) == (48, 300)
    assert found["GKE_NODE_POOLS"][0]["max_run_duration"] == 300


PLACE = SimpleNamespace(
    project_id="my-project",
    region="us-central1",
    zone="us-central1-a",
    name_prefix="np",
    hosts=("my-host",),
)


def _resource(type_: str, **attributes: str) -> dict[str, Any]:
    text = Owner.of("my-project", "np", "gs://b/np-deployment").text
    values = {"description": text, **attributes}
    return {"mode": "managed", "type": type_, "name": "it", "instances": [{"attributes": values}]}


def test_a_rule_in_a_host_project_does_not_say_which_project_it_is() -> None:
    rule = _resource("google_compute_firewall", project="my-host")
    group = _resource("google_compute_instance_group_manager", project="my-project")

    record = lost_record.rebuild({"resources": [rule, group]}, cast("Any", PLACE))

    assert record is not None
    assert (record.project_id, record.hosts) == ("my-project", ("my-host",))
