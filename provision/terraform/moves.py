"""What a plan has to replace beside what Terraform sees itself, and a move in words.

Google refuses what no argument of a resource tells Terraform: two subnetworks of one network whose
ranges overlap, another MTU for a network with VMs, another network for a firewall rule, the end
of a subnetwork with a VM in it, networks for the pods of a GKE cluster that was made without
multi-networking, and another secondary range for one that runs. So where a plan would do one of
these, the network, the subnetwork, the rule, the group or the cluster is replaced too. All of it
is one plan, which is shown and agreed to.
"""

from __future__ import annotations

import ipaddress
import operator
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import names
from provision.google import resources

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

_MADE_FIRST: Final = ["create", "delete"]
"""The actions of a replacement that is there before the old one goes."""
_SIZES: Final = {resources.GROUP.type: "target_size", resources.NODE_POOL.type: "node_count"}
"""A type of machines -> the value that has their number."""
_PATH: Final = re.compile(r"projects/.*")
_TYPE: Final = re.compile(r"(?:^|\.)([a-z]+_\w+)(?=\.\w)")


def replaced_too(document: Mapping[str, Any]) -> list[str]:
    """The addresses of what has to be replaced with what a plan replaces or deletes."""
    changes = [one for one in document.get("resource_changes", []) if "deposed" not in one]
    networks = list(_networks(changes))
    return [
        *networks,
        *_rearranged(changes),
        *_firewall_rules(changes, networks),
        *_groups(changes),
        *_clusters(changes),
        *_pools(changes),
    ]


def emptied(document: Mapping[str, Any]) -> int:
    """How many VMs end in groups that a plan replaces without a request for new ones.

    A group of flex start has no size of its own, and before the plan its VMs counted as there.
    """
    changes = document.get("resource_changes", [])
    if any(
        one["type"] == resources.RESIZE_REQUEST.type and "create" in one["change"]["actions"]
        for one in changes
    ):
        return 0
    replaced = [
        one["change"]
        for one in _of_type(changes, resources.GROUP.type)
        if one["change"]["actions"] == ["delete", "create"]
    ]
    sizeless = [one for one in replaced if (one.get("after") or {}).get("target_size") is None]
    return sum(one["before"].get("target_size") or 0 for one in sizeless)


def unbinds(document: Mapping[str, Any]) -> bool:
    """Whether a group is replaced for nothing but the workload policy that it loses.

    Google takes it from no group that has VMs (Compute Engine, "Replace, remove, or delete workload
    policies", read in 2026-11).
    """
    groups = _of_type(document.get("resource_changes", []), resources.GROUP.type)
    reasons = [path[0] for one in groups for path in one["change"].get("replace_paths", ())]
    return bool(reasons) and set(reasons) == {"resource_policies"}


def sentence(change: Mapping[str, Any]) -> str | None:
    """A replaced group of VMs or node pool in words; None if something else is replaced."""
    before, after = change["change"].get("before"), change["change"].get("after")
    if not before or not after:
        return None
    if change["type"] == resources.GROUP.type:
        return _moved("VM", before, after, "target_size", _zones(before), _zones(after))
    if change["type"] == resources.NODE_POOL.type:
        moved = _moved("node", before, after, "node_count", _zones(before), _zones(after))
        return f"node pool {before['name']}: {moved}"
    return None


def machines(change: Mapping[str, Any]) -> int:
    """How many machines a group or a node pool has that a plan deletes; 0 for anything else."""
    count = (change["change"].get("before") or {}).get(_SIZES.get(change["type"], ""))
    return count if isinstance(count, int) else 0


def _networks(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Networks that would get another MTU, or be an old and a new place's at once.

    That is where they would hold an old and a new subnetwork of one range, and where a killed run
    has left them without any: its machines may be in the new place's network by now, which comes
    into the state only if the old one goes.
    """
    networks = {
        one["change"]["before"]["name"]: one
        for one in _of_type(changes, resources.NETWORK.type)
        if "delete" not in one["change"]["actions"]
    }
    before = [one["change"] for one in _of_type(changes, resources.SUBNETWORK.type)]
    crowded = {
        resources.last(one["before"]["network"])
        for one in before
        if one["actions"] == _MADE_FIRST and _overlap(one)
    }
    empty = networks.keys() - {resources.last(one["before"]["network"]) for one in before}
    for one in changes:
        name = resources.last((one["change"].get("after") or {}).get("network") or "")
        if one["type"] == resources.SUBNETWORK.type and name in empty:
            region = one["change"]["after"]["region"]
            if _is_elsewhere(networks[name]["change"]["before"], region):
                crowded.add(name)
    for one in _of_type(changes, resources.NETWORK.type):
        resized = one["change"]["before"].get("mtu") != (one["change"]["after"] or {}).get("mtu")
        name = one["change"]["before"]["name"]
        is_crowded = name in crowded and name in networks
        if is_crowded or (resized and one["change"]["actions"] == ["update"]):
            yield one["address"]


def _is_elsewhere(network: Mapping[str, Any], region: str) -> bool:
    """Whether the name that a network got when it was made is not that of a place."""
    mtu, profile = str(network.get("mtu")), resources.last(network.get("network_profile") or "")
    places = ((region,), (region, mtu), (profile, mtu))
    return not any(names.is_at(network["name"], *place) for place in places)


def _overlap(change: Mapping[str, Any]) -> bool:
    old, new = change["before"]["ip_cidr_range"], change["after"].get("ip_cidr_range")
    return new is None or ipaddress.ip_network(old).overlaps(ipaddress.ip_network(new))


def _rearranged(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Subnetworks that would lose or change a range in place that the pods of a cluster use."""
    for one in _of_type(changes, resources.SUBNETWORK.type):
        change = one["change"]
        if change["actions"] == ["update"] and _ranges(change["before"]) - _ranges(change["after"]):
            yield one["address"]


def _ranges(subnetwork: Mapping[str, Any]) -> set[tuple[str, str]]:
    ranges = subnetwork.get("secondary_ip_range") or ()
    return {(it["range_name"], it["ip_cidr_range"]) for it in ranges}


def _firewall_rules(
    changes: Sequence[Mapping[str, Any]], networks: Collection[str]
) -> Iterator[str]:
    """Firewall rules that would change their network, which Google refuses.

    They are to go with their network by `replace_triggered_by`, of which Terraform 1.11 makes a
    plain change for some of the rules where networks are replaced by request; and a run that ended
    between the two has left a rule in the old one.
    """
    going = {
        one["change"]["before"]["name"]
        for one in _of_type(changes, resources.NETWORK.type)
        if one["address"] in networks
    }
    for one in _of_type(changes, resources.FIREWALL.type):
        change = one["change"]
        if "delete" in change["actions"]:
            continue
        before, after = (
            resources.last(change[it].get("network") or "") for it in ("before", "after")
        )
        if before in going or (change["actions"] == ["update"] and before != after):
            yield one["address"]


def _groups(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Groups whose VMs have an interface in a subnetwork that goes, or that would change network.

    A template that updates a group must use the network of the one that it was made with (compute
    v1, instanceTemplates.insert: read in 2026-11).
    """
    leaving = _leaving(changes)
    used = {
        _path(one["change"]["before"]["self_link"]): {
            _path(interface["subnetwork"])
            for interface in one["change"]["before"]["network_interface"]
        }
        for one in _of_type(changes, resources.TEMPLATE.type)
    }
    moved = {
        _path(change["before"]["self_link"])
        for change in (one["change"] for one in _of_type(changes, resources.TEMPLATE.type))
        if change.get("after")
        # An interface that both templates have is in two subnetworks.
        and any(map(operator.ne, _subnetworks(change["before"]), _subnetworks(change["after"])))
    }
    for one in _of_type(changes, resources.GROUP.type):
        if "delete" in one["change"]["actions"]:
            continue
        versions = one["change"]["before"].get("version", ())
        templates = {_path(version["instance_template"]) for version in versions}
        in_use = set[str]().union(*(used.get(template, set()) for template in templates))
        if leaving & in_use or templates & moved:
            yield one["address"]


def _subnetworks(template: Mapping[str, Any]) -> list[str]:
    """The subnetworks of a template's interfaces; "" for one that is yet to be made."""
    interfaces = template.get("network_interface") or [{}]
    return [_path(interface.get("subnetwork") or "") for interface in interfaces]


def _clusters(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Clusters without multi-networking that would get a pool with more than one interface.

    And those whose subnetwork goes: a new one has the same name, by which Terraform sees no change.
    """
    planned = [one["change"]["after"] for one in changes if one["type"] == resources.NODE_POOL.type]
    joins = any(after and _interfaces(after) for after in planned)
    leaving = _leaving(changes)
    for one in _of_type(changes, resources.CLUSTER.type):
        before = one["change"]["before"]
        lacks = joins and not before.get("enable_multi_networking")
        goes = _path(before.get("subnetwork") or "") in leaving
        if (lacks or goes) and "delete" not in one["change"]["actions"]:
            yield one["address"]


def _leaving(changes: Sequence[Mapping[str, Any]]) -> set[str]:
    """The paths of subnetworks that go."""
    return {
        _path(one["change"]["before"]["self_link"])
        for one in _of_type(changes, resources.SUBNETWORK.type)
        if "delete" in one["change"]["actions"]
    }


def _interfaces(pool: Mapping[str, Any]) -> bool:
    """Whether a pool is in more networks than one, but for those that GKE makes by a profile."""
    return any(
        network.get("additional_node_network_configs")
        and not network.get("accelerator_network_profile")
        for network in pool.get("network_config") or []
    )


def _pools(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Node pools of a cluster that is replaced: they go with it, whatever Terraform sees."""
    if any("delete" in it["change"]["actions"] for it in _of_type(changes, resources.CLUSTER.type)):
        for one in _of_type(changes, resources.NODE_POOL.type):
            if "delete" not in one["change"]["actions"]:
                yield one["address"]


def _of_type(changes: Sequence[Mapping[str, Any]], type_: str) -> list[Mapping[str, Any]]:
    """The changes of what exists of a type."""
    return [one for one in changes if one["type"] == type_ and one["change"].get("before")]


def _moved(  # noqa: PLR0913, PLR0917 - before and after of each
    thing: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    count: str,
    old: str,
    new: str,
) -> str:
    ending, beginning = before.get(count), after.get(count)
    gone = f"{counted(ending, thing)} in {old} {'ends' if ending == 1 else 'end'}"
    if not isinstance(beginning, int):
        return f"{gone}, new ones begin in {new}"
    return f"{gone}, {beginning} {'begins' if beginning == 1 else 'begin'} in {new}"


def in_words(addresses: Iterable[str]) -> str:
    """What addresses are, such as "9 networks and 10 firewall rules"."""
    types = [_TYPE.findall(address)[-1] for address in addresses]
    nouns = Counter(map(resources.noun, types))
    return " and ".join(counted(number, noun) for noun, number in nouns.items())


def counted(number: object, thing: str) -> str:
    """How many things, such as "2 VMs"; "all VMs" where that is not known."""
    return words.counted(number, thing) if isinstance(number, int) else f"all {thing}s"


def _zones(values: Mapping[str, Any]) -> str:
    zones = values.get("node_locations") or [values.get("zone") or "another zone"]
    return ", ".join(sorted(map(resources.last, zones)))


def _path(link: str) -> str:
    found = _PATH.search(link)
    return found[0] if found else link
