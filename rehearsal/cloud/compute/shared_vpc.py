"""Shared VPC: networks of a host project, and who may use and see them from a service project.

A project becomes a host by `projects.enableXpnHost`, and another one is attached to it by
`projects.enableXpnResource`. Machines of a service project join a subnetwork of its host if their
caller may use it and, where a group makes them, Google's own account of the service project may:
`NUMBER@cloudservices.gserviceaccount.com` with the role compute.networkUser, on the subnetwork or
on the host project (cloud-foundation-fabric, sharedvpc-agent-iam.yaml).
"""

from collections.abc import Callable, Mapping

from rehearsal.cloud import policies, projects, scenarios
from rehearsal.cloud.compute import links, resources
from rehearsal.cloud.compute.resources import SUBNETWORK, Call, Resource
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError

_HOSTS, _ATTACHED = projects.HOSTS, "compute/attached"
_USE, _USE_EXTERNAL = "compute.subnetworks.use", "compute.subnetworks.useExternalIp"
_USERS = frozenset(
    {
        "roles/compute.admin",
        "roles/compute.networkAdmin",
        "roles/compute.networkUser",
        "roles/editor",
        "roles/owner",
    }
)
_HOST_AGENT = "roles/container.hostServiceAgentUser"
_SEEN = frozenset(
    {
        "firewalls.list",
        "networks.get",
        "routers.list",
        "subnetworks.get",
        "subnetworks.getIamPolicy",
    }
)
"""What the caller may not do in a host project under `network-unseen`."""
_VERBS = {"insert": "create", "patch": "update"}
"""The last part of a method -> that of its permission, where they differ."""


def status(call: Call) -> str:
    """What a project tells of itself."""
    is_host = call.store.get(_HOSTS, call.project) is not None
    return "HOST" if is_host else "UNSPECIFIED_XPN_PROJECT_STATUS"


def check_sight(call: Call) -> None:
    """Refuse a caller who may not see what a host project has, or not change its firewall."""
    collection, _, verb = call.method.partition(".")
    may_not = {
        "network-unseen": call.method in _SEEN,
        "network-forbidden": f"compute.{collection}.{_VERBS.get(verb, verb)}" in projects.OF_RULES,
    }
    if status(call) == "HOST" and any(may_not.get(it) for it in call.request.scenarios):
        verb = _VERBS.get(verb, verb)
        where = f"projects/{call.project}"
        if "subnetwork" in call.parameters:
            where = call.name(SUBNETWORK)
        raise _forbidden(f"compute.{collection}.{verb}", where)


def check_use(call: Call, name: str, field: str, given: Resource) -> None:
    """Refuse an interface in a subnetwork of a project that does not share it, or not with us."""
    owner = name.split("/")[1]
    if owner == call.project:
        return
    if (call.store.get(_ATTACHED, call.project) or {}).get("host") != owner:
        words = "Cross-project references for this resource are not allowed."
        raise links.invalid(field, given["subnetwork"], words)
    needed = [_USE, *([_USE_EXTERNAL] if given.get("accessConfigs") else [])]
    for permission in needed:
        if permission not in _held(call, [permission]):
            raise _forbidden(permission, name)


def check_agent(call: Call, template: Resource) -> None:
    """Refuse a group in a subnetwork that Google's account of the project may not use."""
    agent = f"{projects.number(call.project)}@cloudservices.gserviceaccount.com"
    for interface in template["properties"]["networkInterfaces"]:
        name = links.name_of(interface.get("subnetwork", ""))
        owner = name.split("/")[1] if name else call.project
        if owner == call.project:
            continue
        places = (name, f"projects/{owner}")
        if not any(_has(call.store, it, agent, _USERS) for it in places):
            raise _forbidden(_USE, name, f" (when acting as '{agent}')")


def check_gke(store: Store, project: str, subnetwork: str) -> None:
    """Refuse a cluster in a host project that does not share its subnetwork with GKE's account.

    The words are those that people have met (terraform-google-kubernetes-engine 302 and 616).
    """
    owner = subnetwork.split("/")[1]
    if owner == project:
        return
    if (store.get(_ATTACHED, project) or {}).get("host") != owner:
        words = f"Project {project} does not have an associated Shared-VPC host project."
        raise GoogleError(400, words, status=None)
    host = f"projects/{owner}"
    robot = f"service-{projects.number(project)}@container-engine-robot.iam.gserviceaccount.com"
    if not _has(store, host, robot, frozenset({_HOST_AGENT})):
        raise GoogleError(
            403,
            "Kubernetes Engine Service Agent is missing required permissions on this project."
            ' See Troubleshooting: required "container.hostServiceAgent.use" permission(s) for'
            f' "{host}".',
            status=None,
        )
    if not any(_has(store, it, robot, _USERS) for it in (subnetwork, host)):
        words = f"Required 'compute.subnetworks.get' permission for '{subnetwork}'."
        raise GoogleError(403, f"Google Compute Engine: {words}", status=None)


def _has(store: Store, resource: str, agent: str, roles: frozenset[str]) -> bool:
    bindings = policies.get(store, resource, {}).get("bindings", [])
    member = f"serviceAccount:{agent}"
    return any(it["role"] in roles and member in it["members"] for it in bindings)


def _forbidden(permission: str, where: str, acting: str = "") -> GoogleError:
    return GoogleError(403, f"Required '{permission}' permission for '{where}'{acting}")


def _held(call: Call, permissions: list[str]) -> list[str]:
    """Those of the caller's permissions in a host project that no scenario takes away."""
    taken = set()
    if "network-forbidden" in call.request.scenarios:
        taken = {_USE, _USE_EXTERNAL}
    return [
        it
        for it in permissions
        if it not in taken and not scenarios.is_withheld(it, call.request.scenarios)
    ]


# ------------------------------------------------------------------ methods


def _operate(call: Call) -> Resource:
    """What changes a project as a whole is a global operation of it."""
    return call.operate(f"projects/{call.project}/global", projects.number(call.project))


def _enable_host(call: Call) -> Resource:
    call.store.put(_HOSTS, call.project, {})
    return _operate(call)


def _attach(call: Call) -> Resource:
    if status(call) != "HOST":
        words = f"'projects/{call.project}' is not a shared VPC host project."
        raise GoogleError(400, words, reason="badRequest")
    service = call.body["xpnResource"]["id"]
    call.store.put(_ATTACHED, service, {"host": call.project})
    return _operate(call)


def _get_host(call: Call) -> Resource:
    attached = call.store.get(_ATTACHED, call.project)
    if attached is None:
        return {}
    return {"kind": "compute#project", "name": attached["host"]}


def _get_policy(call: Call) -> Resource:
    resources.require(call, SUBNETWORK, _path(call))
    return policies.get(call.store, _path(call), {})


def _set_policy(call: Call) -> Resource:
    resources.require(call, SUBNETWORK, _path(call))
    policy = call.body.get("policy") or {"bindings": call.body.get("bindings", [])}
    return policies.replace(call.store, _path(call), policy, {})


def _test_permissions(call: Call) -> Resource:
    resources.require(call, SUBNETWORK, _path(call))
    asked = call.body.get("permissions", [])
    held = _held(call, asked) if status(call) == "HOST" else asked
    return {"permissions": held} if held else {}


def _path(call: Call) -> str:
    return call.prefix(SUBNETWORK) + call.parameters["resource"]


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "projects.enableXpnHost": _enable_host,
    "projects.enableXpnResource": _attach,
    "projects.getXpnHost": _get_host,
    "subnetworks.getIamPolicy": _get_policy,
    "subnetworks.setIamPolicy": _set_policy,
    "subnetworks.testIamPermissions": _test_permissions,
}
