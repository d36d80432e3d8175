"""Reading what a plan would do."""

from __future__ import annotations

import pytest

from provision.documents.changes import Changes
from provision.terraform import plan as plans


def _resource(address: str, *actions: str) -> dict[str, object]:
    return {"address": address, "type": "any", "change": {"actions": list(actions)}}


def _group(before: object, after: object, *actions: str) -> dict[str, object]:
    return {"group": {"actions": list(actions), "before": before, "after": after}}


def test_counts_are_terraforms_own_with_a_replacement_on_both_sides() -> None:
    plan = plans.read(
        {
            "resource_changes": [
                _resource("a", "create"),
                _resource("b", "update"),
                _resource("c", "create", "delete"),
                _resource("d", "delete"),
                _resource("e", "no-op"),
                _resource("data.f", "read"),
            ]
        }
    )
    assert plan.counts == Changes(add=2, change=1, destroy=2)
    assert plan.losses == ("c would be replaced", "d would be removed")


def test_nothing_to_do_is_empty() -> None:
    plan = plans.read(
        {"resource_changes": [_resource("a", "no-op")], "output_changes": _group(1, 1, "no-op")}
    )
    assert plan.is_empty


def test_a_change_of_an_output_alone_is_not_empty() -> None:
    assert not plans.read(
        {"output_changes": _group({"size": 1}, {"size": 1, "x": 1}, "update")}
    ).is_empty


def _change(type_: str, before: object, after: object, *actions: str) -> dict[str, object]:
    change = {"actions": list(actions or ["update"]), "before": before, "after": after}
    return {"resource_changes": [{"address": "it", "type": type_, "change": change}]}


GROUP = "google_compute_instance_group_manager"
SHARE = "google_filestore_instance"


def _share(size: int) -> dict[str, object]:
    return {"file_shares": [{"capacity_gb": size}]}


@pytest.mark.parametrize(
    ("change", "loss"),
    [
        (
            _change(GROUP, {"target_size": 4}, {"target_size": 3}),
            "it would shrink from 4 to 3 VMs; Google chooses which to delete",
        ),
        (
            _change(GROUP, {"target_size": 4}, None, "delete"),
            "it would be removed, with its 4 VMs",
        ),
        (
            _change("google_container_node_pool", {"node_count": 2}, {}, "delete", "create"),
            "it would be replaced, with its 2 nodes",
        ),
        (_change(SHARE, _share(2560), _share(1024)), "it would shrink from 2560 to 1024 GB"),
        (
            _change(SHARE, _share(2560), _share(2560), "delete", "create"),
            "it would be replaced, with all files on its 2560 GB",
        ),
        (_change("google_container_cluster", {}, {}, "delete", "create"), "it would be replaced"),
    ],
)
def test_what_the_cloud_has_and_would_lose_is_told(change: dict[str, object], loss: str) -> None:
    assert plans.read(change).losses == (loss,)


def test_a_group_that_is_imported_shrinks_like_any_other() -> None:
    change = _change(GROUP, {"target_size": 4}, {"target_size": 1})
    change["resource_changes"][0]["change"]["importing"] = {"id": "np-mig"}  # type: ignore[index]

    plan = plans.read(change)

    assert plan.imported == 1
    assert plan.losses == ("it would shrink from 4 to 1 VMs; Google chooses which to delete",)


@pytest.mark.parametrize(
    ("before", "after"),
    [({"target_size": 3}, {"target_size": 4}), ({"target_size": 3}, {"target_size": None})],
)
def test_more_vms_are_no_loss(before: object, after: object) -> None:
    assert plans.read(_change(GROUP, before, after)).losses == ()


def _pool(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    change = {"actions": ["update"], "before": before, "after": after}
    return {"address": "pool", "type": "google_container_node_pool", "change": change}


@pytest.mark.parametrize(
    ("before", "after", "losses"),
    [
        (
            {"node_locations": ["z-a"]},
            {"node_locations": ["z-b"]},
            ("pool would lose its nodes in z-a and get new ones",),
        ),
        ({"node_locations": ["z-a"]}, {"node_locations": ["z-a", "z-b"]}, ()),
        (
            {"node_count": 3},
            {"node_count": 1},
            ("pool would shrink from 3 to 1 nodes; Google chooses which to delete",),
        ),
        ({"node_count": 1}, {"node_count": 3}, ()),
        ({"node_count": 1}, {"node_count": None}, ()),
    ],
)
def test_a_node_pool_that_loses_nodes_in_place_is_a_loss(
    before: dict[str, object], after: dict[str, object], losses: tuple[str, ...]
) -> None:
    assert plans.read({"resource_changes": [_pool(before, after)]}).losses == losses


def test_a_node_pool_that_never_came_to_be_whole_is_no_loss_and_told_apart() -> None:
    pool = {
        "address": "module.pool.this",
        "type": "google_container_node_pool",
        "action_reason": "replace_because_tainted",
        "change": {"actions": ["delete", "create"], "after": {"name": "np-a", "zone": None}},
    }
    changed = pool | {
        "address": "module.other.this",
        "action_reason": "replace_because_cannot_update",
    }
    plan = plans.read({"resource_changes": [pool, changed]})
    assert [(one.address, one.values) for one in plan.tainted_pools] == [
        ("module.pool.this", {"name": "np-a"})
    ]
    assert plan.losses == ("module.other.this would be replaced",)
    assert plan.destroy == 2
