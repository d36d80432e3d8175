"""Reading what a plan would do."""

from __future__ import annotations

import pytest

from provision.documents.changes import Changes
from provision.terraform import plan as plans


def _resource(address: str, *actions: str) -> dict[str, object]:
    return {"address": address, "type": "any", "change": {"actions": list(actions), "before": {}}}


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
    assert _words(plan) == ["the any is replaced", "the any is deleted"]
    assert [loss.address for loss in plan.losses] == ["c", "d"]


def test_what_exists_is_touched_by_a_change_as_by_an_end_and_where_it_was_deposed() -> None:
    found = [
        _resource("a", "create"),
        _resource("b", "update"),
        _resource("c", "create", "delete"),
        _resource("d", "delete") | {"deposed": "0123abcd"},
        _resource("e", "no-op"),
    ]
    plan = plans.read({"resource_changes": found})
    assert [it.address for it in plan.touched] == ["b", "c", "d"]
    assert [it.address for it in plan.removals] == ["c"]


def _words(plan: plans.Plan) -> list[str]:
    return [loss.words for loss in plan.losses]


def test_nothing_to_do_is_empty() -> None:
    plan = plans.read(
        {"resource_changes": [_resource("a", "no-op")], "output_changes": _group(1, 1, "no-op")}
    )
    assert plan.is_empty


def test_a_change_of_an_output_alone_is_not_empty() -> None:
    assert not plans.read(
        {"output_changes": _group({"size": 1}, {"size": 1, "x": 1}, "update")}
    ).is_empty


def test_what_only_the_apply_tells_of_an_output_is_named_so() -> None:
    shares = [{"path": "/a", "ip": "10.0.0.2"}, {"path": "/b"}]
    changes: dict[str, dict[str, object]] = {
        "shares": {"after": shares, "after_unknown": [{"ip": False}, {"ip": True}]},
        "all": {"after_unknown": True},
        "more": {"after": [1], "after_unknown": [False, True]},
        "known": {"after": {"a": 1}, "after_unknown": False},
        "secret": {"after": "s", "after_unknown": False, "after_sensitive": True},
    }
    changes = {name: {"actions": ["create"], **change} for name, change in changes.items()}
    changes["gone"] = {"actions": ["delete"], "after": None, "after_unknown": False}
    found = plans.read({"output_changes": changes})
    assert found.foreseen == {
        "shares": [{"path": "/a", "ip": "10.0.0.2"}, {"path": "/b", "ip": plans.UNKNOWN}],
        "all": plans.UNKNOWN,
        "more": [1, plans.UNKNOWN],
        "known": {"a": 1},
    }


def _change(type_: str, before: object, after: object, *actions: str) -> dict[str, object]:
    change = {"actions": list(actions or ["update"]), "before": before, "after": after}
    return {"resource_changes": [{"address": "it", "type": type_, "change": change}]}


GROUP = "google_compute_instance_group_manager"
SHARE = "google_filestore_instance"
TEMPLATE = {"name": "np-1", "self_link": "projects/p/np-1", "network_interface": []}


def _share(size: int) -> dict[str, object]:
    return {"file_shares": [{"capacity_gb": size}]}


@pytest.mark.parametrize(
    ("change", "loss", "machines"),
    [
        (
            _change(GROUP, {"target_size": 4}, {"target_size": 3}),
            "1 of 4 VMs ends; Google chooses which",
            1,
        ),
        (
            _change(GROUP, {"name": "np-mig", "target_size": 4}, None, "delete"),
            "4 VMs end, with the group np-mig",
            4,
        ),
        (
            _change(
                "google_container_node_pool",
                {"name": "np-a", "node_count": 2, "node_locations": ["z-a"]},
                {"node_locations": ["z-b"], "node_count": 1},
                "delete",
                "create",
            ),
            "node pool np-a: 2 nodes in z-a end, 1 begins in z-b",
            2,
        ),
        (
            _change(SHARE, {"name": "np-nfs", **_share(2560)}, _share(1024)),
            "Filestore np-nfs shrinks from 2560 to 1024 GB",
            0,
        ),
        (
            _change(SHARE, {"name": "np-nfs", **_share(2560)}, {}, "delete", "create"),
            "Filestore np-nfs is replaced by an empty one: all files on its 2560 GB are lost",
            0,
        ),
        (
            _change("google_container_cluster", {"name": "np-gke"}, {}, "delete", "create"),
            "cluster np-gke is replaced: all that runs in it ends",
            0,
        ),
        (
            _change("google_compute_instance_template", TEMPLATE, {}, "create", "delete"),
            "template np-1 is replaced, for VMs that come",
            0,
        ),
        (
            _change(
                "google_project_iam_member", {"role": "roles/logging.logWriter"}, None, "delete"
            ),
            "role logging.logWriter is deleted",
            0,
        ),
    ],
)
def test_what_the_cloud_has_and_would_lose_is_told(
    change: dict[str, object], loss: str, machines: int
) -> None:
    plan = plans.read(change)
    assert _words(plan) == [loss]
    assert plan.losses[0].machines == machines
    assert plan.losses[0].data == (SHARE in str(change))


def test_a_group_that_is_imported_shrinks_like_any_other() -> None:
    change = _change(GROUP, {"target_size": 4}, {"target_size": 1})
    change["resource_changes"][0]["change"]["importing"] = {"id": "np-mig"}  # type: ignore[index]

    plan = plans.read(change)

    assert plan.imported == 1
    assert _words(plan) == ["3 of 4 VMs end; Google chooses which"]


@pytest.mark.parametrize(
    ("before", "after"),
    [({"target_size": 3}, {"target_size": 4}), ({"target_size": 3}, {"target_size": None})],
)
def test_more_vms_are_no_loss(before: object, after: object) -> None:
    assert plans.read(_change(GROUP, before, after)).losses == ()


REPLACED = "2 nodes are replaced one after the other, with all that runs there"


def _pool(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    change = {"actions": ["update"], "before": before, "after": after}
    return {"address": "pool", "type": "google_container_node_pool", "change": change}


@pytest.mark.parametrize(
    ("before", "after", "losses"),
    [
        (
            {"node_locations": ["z-a"]},
            {"node_locations": ["z-b"]},
            ["node pool np-a: its nodes in z-a end, new ones begin elsewhere"],
        ),
        ({"node_locations": ["z-a"]}, {"node_locations": ["z-a", "z-b"]}, []),
        (
            {"node_count": 3},
            {"node_count": 1},
            ["node pool np-a: 2 of 3 nodes end; Google chooses which"],
        ),
        ({"node_count": 1}, {"node_count": 3}, []),
        ({"node_count": 1}, {"node_count": None}, []),
        (
            {"node_count": 2, "node_config": [{"disk_size_gb": 100, "machine_type": "e2"}]},
            {"node_count": 2, "node_config": [{"disk_size_gb": 200, "machine_type": "e2"}]},
            [f"node pool np-a: {REPLACED}: disk_size_gb"],
        ),
        (
            {"node_count": 2, "version": "1.34"},
            {"node_count": 2, "version": "1.35"},
            [f"node pool np-a: {REPLACED}: version"],
        ),
        ({"node_count": 0, "version": "1.34"}, {"node_count": 0, "version": "1.35"}, []),
    ],
)
def test_a_node_pool_that_loses_nodes_in_place_is_a_loss(
    before: dict[str, object], after: dict[str, object], losses: list[str]
) -> None:
    pool = _pool({"name": "np-a", **before}, after)
    assert _words(plans.read({"resource_changes": [pool]})) == losses


def test_a_node_pool_that_never_came_to_be_whole_is_no_loss_and_told_apart() -> None:
    pool = {
        "address": "module.pool.this",
        "type": "google_container_node_pool",
        "action_reason": "replace_because_tainted",
        "change": {
            "actions": ["delete", "create"],
            "before": {},
            "after": {"name": "np-a", "zone": None},
        },
    }
    changed = pool | {
        "address": "module.other.this",
        "action_reason": "replace_because_cannot_update",
    }
    plan = plans.read({"resource_changes": [pool, changed]})
    assert [(one.address, one.values) for one in plan.tainted_pools] == [
        ("module.pool.this", {"name": "np-a"})
    ]
    assert [loss.address for loss in plan.losses] == ["module.other.this"]
    assert plan.destroy == 2


def test_resources_are_counted_by_what_people_call_them_what_nobody_knows_first() -> None:
    plan = plans.read(
        {
            "resource_changes": [
                _typed("google_project_iam_member", "create"),
                _typed("google_storage_bucket_iam_member", "create"),
                _typed("random_pet", "create"),
                _typed("google_compute_instance_template", "create", "delete"),
                _typed(GROUP, "update"),
                _typed("google_compute_network", "no-op"),
            ]
        }
    )
    assert [(it.noun, it.add, it.change, it.destroy) for it in plan.nouns] == [
        ("random_pet", 1, 0, 0),
        ("group", 0, 1, 0),
        ("template", 1, 0, 1),
        ("role", 2, 0, 0),
    ]


@pytest.mark.parametrize(
    ("staying", "words"),
    [
        (0, "all files on its 2560 GB are lost"),
        (1, "are lost; the VM that runs on has it mounted, and what touches it there hangs"),
        (2, "are lost; 2 VMs that run on have it mounted, and what touches it there hangs"),
    ],
)
def test_the_loss_of_a_share_names_the_vms_that_have_it_mounted(staying: int, words: str) -> None:
    gone = _change(SHARE, {"name": "np-nfs", **_share(2560)}, None, "delete")
    size = {"target_size": staying}
    group = _change(GROUP, size, size, "no-op")
    changes = gone["resource_changes"] + group["resource_changes"]  # type: ignore[operator]
    (loss,) = plans.read({"resource_changes": changes}).losses
    assert loss.words.endswith(words)


def _typed(type_: str, *actions: str) -> dict[str, object]:
    return {"address": type_, "type": type_, "change": {"actions": list(actions), "before": {}}}


@pytest.mark.parametrize(
    ("actions", "before", "after", "staying"),
    [
        (["create"], None, {"target_size": 3}, 0),
        (["no-op"], {"target_size": 3}, {"target_size": 3}, 3),
        (["update"], {"target_size": 3}, {"target_size": 1}, 1),
        (["update"], {"target_size": 3}, {"target_size": None}, 3),
        (["delete", "create"], {"target_size": 3}, {"target_size": 3}, 0),
    ],
)
def test_vms_stay_where_their_group_does(
    actions: list[str], before: object, after: object, staying: int
) -> None:
    assert plans.read(_change(GROUP, before, after, *actions)).staying == staying


def test_the_roles_that_accounts_have_after_it_are_known() -> None:
    after = {"role": "roles/a", "member": "serviceAccount:np@p.iam", "bucket": "b"}
    plan = plans.read(_change("google_storage_bucket_iam_member", None, after, "create"))
    assert plan.grants == (plans.Grant(account="np@p.iam", role="roles/a", bucket="b"),)
