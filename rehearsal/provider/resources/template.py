"""google_compute_instance_template: named by the user, read by its number, never changed."""

import itertools
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError, State, known
from rehearsal.provider.resources import image, links
from rehearsal.provider.resources.rest import Rest, place, present, scope
from rehearsal.provider.resources.shapes import (
    ALWAYS,
    INT64,
    SKIP,
    VIRTUAL,
    Form,
    Rule,
    Scope,
    Send,
    Shape,
    camel,
    in_set_order,
    is_zero,
    kept,
)
from rehearsal.provider.resources.vpc import LINK_OF_NETWORK

_SCOPES = {"cloud-platform": "https://www.googleapis.com/auth/cloud-platform"}
"""Short names of access scopes."""

_counter = itertools.count(1)


def _scopes(values: list[str]) -> list[str]:
    return [_SCOPES.get(value, value) for value in values]


def _names(values: list[str], _: Scope) -> list[str]:
    """A template takes the names of resource policies, not their links."""
    return [links.name(value) for value in values]


def _source(source: str, where: Scope) -> str:
    try:
        return source and image.resolve(where.api, source)
    except (GoogleApiError, ProviderError) as error:
        raise ProviderError(f"Error resolving image name '{source}': {error}") from error


def _metadata(items: dict[str, str], _: Scope) -> dict[str, Any]:
    pairs = [{"key": key, "value": items[key]} for key in sorted(items)]
    return {"items": pairs} if pairs else {}


def _reservation(blocks: list[State], _: Scope) -> dict[str, Any] | None:
    """Which reservation is meant stands beside what kind of one is."""
    if not blocks:
        return None
    specific = blocks[0].get("specific_reservation") or [{}]
    return {"consumeReservationType": blocks[0]["type"], **specific[0]}


def _read_reservation(answer: dict[str, Any] | None, _: Scope) -> list[State]:
    if not answer:
        return []
    kind = answer.get("consumeReservationType")
    named = {name: answer.get(name) for name in ("key", "values")}
    return [
        {"type": kind, "specific_reservation": [named] if kind == "SPECIFIC_RESERVATION" else []}
    ]


# What of a disk is of its making.
_PARAMS = (
    *("architecture", "disk_name", "labels", "resource_manager_tags", "source_snapshot"),
    *("source_image_encryption_key", "source_snapshot_encryption_key", "storage_pool"),
)
_DISK: Mapping[str, Rule] = {
    **{name: Rule(f"initializeParams.{camel(name)}") for name in _PARAMS},
    "disk_encryption_key.kms_key_self_link": Rule("kmsKeyName"),
    "disk_size_gb": INT64,
    "disk_type": Rule("initializeParams.diskType", expand=lambda kind, _: kind or "pd-standard"),
    "provisioned_iops": Rule("initializeParams.provisionedIops", Form.INT64),
    "provisioned_throughput": Rule("initializeParams.provisionedThroughput", Form.INT64),
    "resource_policies": Rule("initializeParams.resourcePolicies", expand=_names),
    "source_image": Rule(
        "initializeParams.sourceImage",
        expand=_source,
        flatten=lambda link, _: image.relative(link or ""),
    ),
}
_INTERFACE: Mapping[str, Rule] = {
    "access_config": Rule("accessConfigs"),
    "access_config.nat_ip": Rule("natIP"),
    "alias_ip_range": Rule("aliasIpRanges"),
    "ipv6_access_config": Rule("ipv6AccessConfigs"),
    "network": LINK_OF_NETWORK,
    "network_ip": Rule("networkIP"),
    "subnetwork": Rule(
        expand=lambda link, where: links.at(
            "subnetworks", link, project=where.project, region=where.region
        ),
        flatten=lambda link, _: links.v1(link or ""),
    ),
    "subnetwork_project": Rule(
        "subnetwork",
        send=Send.NEVER,
        flatten=lambda link, _: links.part(link or "", "projects"),
    ),
}
_SCHEDULING: Mapping[str, Rule] = {
    **dict.fromkeys(
        (
            *("automatic_restart", "preemptible", "on_host_maintenance"),
            *("provisioning_model", "instance_termination_action"),
        ),
        ALWAYS,
    ),
    # Null where it is not set: a zero would be a wrong number of seconds.
    "host_error_timeout_seconds": Rule(send=Send.ALWAYS, expand=lambda value, _: value or None),
    "max_run_duration.seconds": INT64,
    # The list as provider 7.45.0 makes it, with a null at its beginning; no root has any.
    "node_affinities": Rule(send=Send.ALWAYS, expand=lambda *_: [None], flatten=lambda *_: []),
}


def _below(name: str, rules: Mapping[str, Rule]) -> dict[str, Rule]:
    return {f"{name}.{path}": rule for path, rule in rules.items()}


class _Template(Rest):
    """What VMs are made from; all but its name is in one object, its properties."""

    @property
    def label(self) -> str:
        return "instance template"

    def title(self, where: Scope) -> str:
        return f'Instance Template "{where.state.get("name")}"'

    def no_delete(self, where: Scope) -> str:
        del where
        return f"Error deleting {self.label}"

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Short scopes, and images that mean what is there already.

        A source image that differs in its words is looked up, as provider 7.45.0 does in a plan.
        """
        plan = super().customize(api, prior, plan)
        for account in _blocks(plan, "service_account"):
            if account.get("scopes") not in (None, UNKNOWN):
                account["scopes"] = _scopes(account["scopes"])
        pairs = zip(_blocks(plan, "disk"), _blocks(prior or {}, "disk"), strict=False)
        for disk, before in pairs:
            old, new = (str(kept(it, "source_image", "")) for it in (before, disk))
            differs = old and new and old != new
            if differs and image.relative(image.resolve(api, new)) == old:
                disk["source_image"] = old
        return plan

    def create(self, api: Api, plan: State) -> State:
        """Insert the template; PartialError if the operation failed, or nobody waited for it."""
        plan = {**plan, "name": _name(plan)}
        where = scope(api, plan)
        properties = self.encode(self.shape.expand(plan, where), where, create=True)
        body = {"name": plan["name"], "properties": properties}
        if not is_zero(plan.get("description")):
            body["description"] = plan["description"]
        answer = self.insert(where, body)
        unique = f"{self.path(where)}?uniqueId={answer.get('targetId', '')}"
        made = {**plan, "id": self.path(where), "self_link_unique": unique}
        try:
            self.wait(where, answer, "create", "Creating Instance Template")
        except Exception as error:
            raise PartialError(known(made), error) from error
        return present(self.read(api, made))

    def encode(self, body: dict[str, Any], where: Scope, *, create: bool) -> dict[str, Any]:
        del where, create
        body.setdefault("scheduling", {"onHostMaintenance": "MIGRATE"})
        body["disks"][0]["boot"] = True
        for disk in body["disks"]:
            if "diskSizeGb" in disk:
                disk["initializeParams"]["diskSizeGb"] = disk["diskSizeGb"]
        for interface in body.get("networkInterfaces", ()):
            for access in interface.get("accessConfigs", ()):
                access["type"] = "ONE_TO_ONE_NAT"
        return body

    def look(self, where: Scope, path: str = "") -> dict[str, Any] | None:
        link = unique_link(where.state.get("self_link_unique") or where.state["id"])
        return super().look(where, path or f"{place(self.collection, where)}/{links.name(link)}")

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        properties = answer.get("properties") or {}
        link = answer.get("selfLink", "")
        places = [
            links.part(it.get("subnetwork") or "", "regions")
            for it in properties.get("networkInterfaces") or []
        ]
        return {
            **super().state(where, {"selfLink": link, **properties}),
            "id": f"{place(self.collection, where)}/{answer['name']}",
            "name": answer["name"],
            "description": answer.get("description", ""),
            "creation_timestamp": answer.get("creationTimestamp", ""),
            "numeric_id": str(answer.get("id", "")),
            "region": next(filter(None, reversed(places)), kept(where.state, "region", None)),
            "self_link_unique": f"{link}?uniqueId={answer.get('id', '')}",
        }


def unique_link(link: str) -> str:
    """The link by number, if it has one: ".../NAME?uniqueId=7" is ".../7"."""
    path, found, number = link.partition("?uniqueId=")
    return f"{path.rpartition('/')[0]}/{number}" if found else link


def _blocks(state: State, name: str) -> list[State]:
    value = state.get(name)
    return value if isinstance(value, list) else []


def _name(plan: State) -> str:
    """The given name, else a unique one that begins with the prefix."""
    if not is_zero(plan.get("name")):
        return str(plan["name"])
    prefix = plan.get("name_prefix")
    prefix = "terraform-" if is_zero(prefix) else str(prefix)
    return f"{prefix}{datetime.now(UTC).strftime('%Y%m%d%H%M%S%f')[:18]}{next(_counter):08x}"


RESOURCE = _Template(
    collection="projects/{project}/global/instanceTemplates",
    shape=Shape(
        "google_compute_instance_template",
        {
            # What is not of its properties, and what Google doesn't answer.
            **dict.fromkeys(("creation_timestamp", "description", "name", "numeric_id"), SKIP),
            **dict.fromkeys(("region", "self_link_unique"), SKIP),
            **dict.fromkeys(("metadata_startup_script", "name_prefix"), VIRTUAL),
            "disk": Rule("disks"),
            **_below("disk", _DISK),
            "guest_accelerator": Rule("guestAccelerators"),
            "guest_accelerator.count": Rule("acceleratorCount"),
            # The name, not a link.
            "guest_accelerator.type": Rule("acceleratorType"),
            "instance_description": Rule("description"),
            "metadata": Rule(
                send=Send.ALWAYS,
                expand=_metadata,
                flatten=lambda answer, _: {
                    it["key"]: it.get("value", "") for it in (answer or {}).get("items") or []
                },
            ),
            "metadata_fingerprint": Rule("metadata.fingerprint"),
            "network_interface": Rule("networkInterfaces"),
            **_below("network_interface", _INTERFACE),
            "reservation_affinity": Rule(expand=_reservation, flatten=_read_reservation),
            "resource_policies": Rule(expand=_names),
            **_below("scheduling", _SCHEDULING),
            "service_account": Rule("serviceAccounts", Form.MANY),
            "service_account.scopes": Rule(expand=lambda them, _: in_set_order(_scopes(them))),
            **_below(
                "shielded_instance_config",
                dict.fromkeys(
                    ("enable_integrity_monitoring", "enable_secure_boot", "enable_vtpm"), ALWAYS
                ),
            ),
            "tags": Rule(
                send=Send.ALWAYS,
                expand=lambda tags, _: {"items": in_set_order(tags)} if tags else {},
                flatten=lambda answer, _: (answer or {}).get("items") or [],
            ),
            "tags_fingerprint": Rule("tags.fingerprint"),
        },
    ),
    suppress={
        "network_interface.network": links.same_object,
        "network_interface.subnetwork": links.same_object,
        "guest_accelerator.type": links.same_object,
        "disk.disk_encryption_key.kms_key_self_link": links.same_path,
        "resource_policies": links.same_names,
    },
)
