"""What a state tells of a deployment whose record is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from provision.google.owner import Owner
from provision.state import lost_record

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
