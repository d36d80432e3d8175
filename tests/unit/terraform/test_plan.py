from typing import Any

import pytest

from provision.documents.plan import Changes
from provision.terraform import plan as plans

GROUP = "google_compute_instance_group_manager"
SHARE = "google_filestore_instance"
POOL = "google_container_node_pool"


def _read(*changes: dict[str, Any]) -> plans.Plan:
    return plans.read({"resource_changes": changes})


def _change(type_: str, actions: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    change = {"actions": actions.split(), "before": before, "after": after}
    return {"address": type_, "type": type_, "change": change}


def _typed(text: str) -> list[dict[str, Any]]:
    """Changes of nothing in particular, as "a create, b update"."""
    return [
        _change(type_, actions, {})
        for type_, actions in (it.split(" ", 1) for it in text.split(", "))
    ]


def _words(plan: plans.Plan) -> list[str]:
    return [loss.words for loss in plan.losses]


def test_counts_are_terraforms_own_with_a_replacement_on_both_sides() -> None:
    changes = _typed("a create, b update, c create delete, d delete, e no-op, data.f read")
    plan = _read(*changes)
    assert plan.counts == Changes(add=2, change=1, destroy=2)
    assert _words(plan) == ["the c is replaced", "the d is deleted"]
    assert [loss.address for loss in plan.losses] == ["c", "d"]
    # What exists is touched by a change as by an end, and where it was deposed.
    changes[3]["deposed"] = "0123abcd"
    plan = _read(*changes)
    assert [it.address for it in plan.touched] == ["b", "c", "d"]
    assert [it.address for it in plan.removals] == ["c"]


def test_nothing_to_do_is_empty_and_a_change_of_an_output_alone_is_not() -> None:
    outputs: dict[str, Any] = {"group": {"actions": ["no-op"], "before": 1, "after": 1}}
    found = {"resource_changes": _typed("a no-op"), "output_changes": outputs}
    assert plans.read(found).is_empty
    outputs["group"] = {"actions": ["update"], "before": {"a": 1}, "after": {"a": 1, "x": 1}}
    assert not plans.read(found).is_empty


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
    assert plans.read({"output_changes": changes}).foreseen == {
        "shares": [{"path": "/a", "ip": "10.0.0.2"}, {"path": "/b", "ip": plans.UNKNOWN}],
        "all": plans.UNKNOWN,
        "more": [1, plans.UNKNOWN],
        "known": {"a": 1},
    }


FULL = {"name": "np-nfs", "file_shares": [{"capacity_gb": 2560}]}
FOUR = {"name": "np-mig", "target_size": 4}
TEMPLATE = {"name": "np-1", "self_link": "projects/p/np-1", "network_interface": []}
TWO = {"name": "np-a", "node_count": 2, "node_locations": ["z-a"]}
REPLACED = "2 nodes are replaced one after the other, with all that runs there"
GONE = "delete create"
LOSSES: dict[str, tuple[int, str, str, Any, Any]] = {
    # what is told -> how many machines it ends, and the change
    "1 of 4 VMs ends; Google chooses which": (1, GROUP, "update", FOUR, {"target_size": 3}),
    "4 VMs end, with the group np-mig": (4, GROUP, "delete", FOUR, None),
    "node pool np-a: 2 nodes in z-a end, 1 begins in z-b": (
        *(2, POOL, GONE, TWO, {"node_locations": ["z-b"], "node_count": 1}),
    ),
    "Filestore np-nfs shrinks from 2560 to 1024 GB": (
        *(0, SHARE, "update", FULL, {"file_shares": [{"capacity_gb": 1024}]}),
    ),
    "Filestore np-nfs is replaced by an empty one: all files on its 2560 GB are lost": (
        *(0, SHARE, GONE, FULL, {}),
    ),
    "cluster np-gke is replaced: all that runs in it ends": (
        *(0, "google_container_cluster", GONE, {"name": "np-gke"}, {}),
    ),
    "template np-1 is replaced, for VMs that come": (
        *(0, "google_compute_instance_template", "create delete", TEMPLATE, {}),
    ),
    "role logging.logWriter is deleted": (
        *(0, "google_project_iam_member", "delete", {"role": "roles/logging.logWriter"}, None),
    ),
}


@pytest.mark.parametrize("words", LOSSES)
def test_what_the_cloud_has_and_would_lose_is_told(words: str) -> None:
    machines, *change = LOSSES[words]
    (loss,) = _read(_change(*change)).losses
    assert loss.words == words
    assert loss.machines == machines
    assert loss.data == (change[0] == SHARE)


def test_a_group_that_is_imported_shrinks_like_any_other_and_more_vms_are_no_loss() -> None:
    change = _change(GROUP, "update", FOUR, {"target_size": 1})
    change["change"]["importing"] = {"id": "np-mig"}
    plan = _read(change)
    assert plan.imported == 1
    assert _words(plan) == ["3 of 4 VMs end; Google chooses which"]
    for size in (5, None):
        assert _read(_change(GROUP, "update", FOUR, {"target_size": size})).losses == ()


def _disk(size: int) -> dict[str, Any]:
    return {"node_count": 2, "node_config": [{"disk_size_gb": size, "machine_type": "e2"}]}


SHORT: dict[str, Any] = {"upgrade_settings": [{"strategy": "SHORT_LIVED"}]}


@pytest.mark.parametrize(
    ("before", "after", "loss"),
    [
        (
            *({"node_locations": ["z-a"]}, {"node_locations": ["z-b"]}),
            "its nodes in z-a end, new ones begin elsewhere",
        ),
        ({"node_locations": ["z-a"]}, {"node_locations": ["z-a", "z-b"]}, ""),
        ({"node_count": 3}, {"node_count": 1}, "2 of 3 nodes end; Google chooses which"),
        ({"node_count": 1}, {"node_count": 3}, ""),
        ({"node_count": 1}, {"node_count": None}, ""),
        (_disk(100), _disk(200), f"{REPLACED}: disk_size_gb"),
        (
            *({"node_count": 2, "version": "1.34"}, {"node_count": 2, "version": "1.35"}),
            f"{REPLACED}: version",
        ),
        # Pools of flex start and queues: their nodes run until their end.
        (SHORT | _disk(100), _disk(200), ""),
        (SHORT | {"node_count": 2}, {"node_count": 1}, "1 of 2 nodes ends; Google chooses which"),
        ({"node_count": 0, "version": "1.34"}, {"node_count": 0, "version": "1.35"}, ""),
    ],
)
def test_a_node_pool_that_loses_nodes_in_place_is_a_loss(
    before: dict[str, object], after: dict[str, object], loss: str
) -> None:
    plan = _read(_change(POOL, "update", {"name": "np-a", **before}, after))
    assert _words(plan) == ([f"node pool np-a: {loss}"] if loss else [])


def test_a_node_pool_that_never_came_to_be_whole_is_no_loss_and_told_apart() -> None:
    pool = _change(POOL, GONE, {}, {"name": "np-a", "zone": None})
    tainted = pool | {"address": "it", "action_reason": "replace_because_tainted"}
    plan = _read(tainted, pool | {"action_reason": "replace_because_cannot_update"})
    assert [(one.address, one.values) for one in plan.tainted_pools] == [("it", {"name": "np-a"})]
    assert [loss.address for loss in plan.losses] == [POOL]
    assert plan.destroy == 2


def test_resources_are_counted_by_what_people_call_them_what_nobody_knows_first() -> None:
    plan = _read(
        *_typed(
            "google_project_iam_member create, google_storage_bucket_iam_member create, "
            "random_pet create, google_compute_instance_template create delete, "
            f"{GROUP} update, google_compute_network no-op"
        )
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
    group = _change(GROUP, "no-op", {"target_size": staying}, {"target_size": staying})
    (loss,) = _read(_change(SHARE, "delete", FULL), group).losses
    assert loss.words.endswith(words)


@pytest.mark.parametrize(
    ("actions", "before", "after", "staying", "coming"),
    [
        ("create", None, {"target_size": 3}, 0, 0),
        ("no-op", {"target_size": 3}, {"target_size": 3}, 3, 0),
        ("update", {"target_size": 3}, {"target_size": 1}, 1, 0),
        ("update", {"target_size": 0}, {"target_size": 2}, 0, 2),
        ("update", {"target_size": 3}, {"target_size": None}, 3, 0),
        (GONE, {"target_size": 3}, {"target_size": 3}, 0, 0),
    ],
)
def test_vms_stay_and_come_where_their_group_does(
    actions: str, before: object, after: object, staying: int, coming: int
) -> None:
    plan = _read(_change(GROUP, actions, before, after))
    assert (plan.staying, plan.coming) == (staying, coming)


def test_the_roles_that_accounts_have_after_it_are_known() -> None:
    after = {"role": "roles/a", "member": "serviceAccount:np@p.iam", "bucket": "b"}
    plan = _read(_change("google_storage_bucket_iam_member", "create", None, after))
    assert plan.grants == (plans.Grant(account="np@p.iam", role="roles/a", bucket="b"),)
