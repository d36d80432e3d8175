"""Reading what a plan would do."""

from __future__ import annotations

import pytest

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
    assert plan.counts == {"add": 2, "change": 1, "destroy": 2}
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


def test_fewer_vms_are_a_loss_although_the_group_is_changed_in_place() -> None:
    plan = plans.read({"output_changes": _group({"size": 4}, {"size": 3}, "update")})
    assert plan.losses == (
        "the group would shrink from 4 to 3 VMs; Google chooses which to delete",
    )


@pytest.mark.parametrize(("before", "after"), [({"size": 3}, {"size": 4}), (None, {"size": 4})])
def test_more_vms_are_no_loss(before: object, after: object) -> None:
    assert plans.read({"output_changes": _group(before, after, "update")}).losses == ()


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
