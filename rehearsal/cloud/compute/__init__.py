"""Compute Engine v1.

The discovery document says which method a request calls and how its body must look; each module
says what its methods do. A method that Google has and this cloud does not is answered 501.
"""

from collections.abc import Callable, Mapping

from rehearsal.cloud import discovery, org_policies, projects, services
from rehearsal.cloud.compute import (
    advice,
    agenda,
    balancers,
    fleet,
    future_reservations,
    groups,
    host_events,
    images,
    instances,
    links,
    networks,
    offers,
    operations,
    reservations,
    resize_requests,
    resource_policies,
    shared_vpc,
    templates,
)
from rehearsal.cloud.compute.resources import Call, Resource
from rehearsal.cloud.facts import places
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

METHODS: Mapping[str, Callable[[Call], Resource]] = {
    **offers.METHODS,
    **balancers.METHODS,
    **advice.METHODS,
    **future_reservations.METHODS,
    **groups.METHODS,
    **host_events.METHODS,
    **images.METHODS,
    **instances.METHODS,
    **networks.METHODS,
    **reservations.METHODS,
    **resize_requests.METHODS,
    **resource_policies.METHODS,
    **shared_vpc.METHODS,
    **templates.METHODS,
}
"""What is served, by the names of the API's discovery document."""

_HAPPENINGS = {
    fleet.END: fleet.end_run,
    **resize_requests.HAPPENINGS,
    **host_events.HAPPENINGS,
}

_REQUESTS = "compute/requests"


def service(request: Request, store: Store) -> Reply:
    """Answer a request below /compute/v1/."""
    agenda.catch_up(request, store, _HAPPENINGS)
    host_events.begin(request, store)
    api = discovery.api("compute.v1")
    match = api.match(request.method, request.path)
    body = request.json()
    if match.method.request is not None and not body and match.method.id.endswith(".insert"):
        raise GoogleError(400, "Required field 'resource' not specified", reason="required")
    body = api.check(match, request.query, body)
    handler = METHODS.get(match.method.id)
    if handler is None:
        raise GoogleError(501, f"compute.{match.method.id} is not part of the simulated cloud.")
    _check_place(match.parameters, request.scenarios)
    owner = projects.require(match.parameters["project"], store)
    services.require(request, store, owner, "compute.googleapis.com", "Compute Engine API")
    call = Call(
        request=request,
        store=store,
        method=match.method.id,
        project=owner.id,
        parameters={**request.query, **match.parameters},
        body=body,
    )
    future_reservations.deliver(call)
    _check_policies(call)
    shared_vpc.check_sight(call)
    if not images.is_public(owner.id):
        networks.ensure_default(call)
    return Reply(body=_once(call, handler))


def _once(call: Call, handler: Callable[[Call], Resource]) -> Resource:
    """Do what a call asks for, but once for a `requestId`: without an answer, clients ask again."""
    given = call.parameters.get("requestId")
    if given is None:
        return handler(call)
    key = f"{call.project}/{call.method}/{given}"
    earlier = call.store.get(_REQUESTS, key)
    if earlier is not None:
        return operations.get(call.request, call.store, earlier["operation"])
    result = handler(call)
    call.store.put(_REQUESTS, key, {"operation": links.name_of(result["selfLink"])})
    return result


def _check_policies(call: Call) -> None:
    """Refuse what would be made in a place that the organization does not allow."""
    place = call.parameters.get("zone") or call.parameters.get("region")
    collection, _, verb = call.method.partition(".")
    if place and verb == "insert":
        scope = f"{'zones' if 'zone' in call.parameters else 'regions'}/{place}"
        name = f"projects/{call.project}/{scope}/{collection}/{call.body.get('name', '')}"
        org_policies.check_place(call.request.scenarios, place, name)


def _check_place(parameters: Mapping[str, str], scenarios: frozenset[str]) -> None:
    region, zone = parameters.get("region"), parameters.get("zone")
    if region is not None and region not in places.ZONES:
        raise GoogleError(400, f"Invalid value for field 'region': '{region}'. Unknown region.")
    if zone is not None and not places.is_zone(zone, scenarios):
        raise GoogleError(400, f"Invalid value for field 'zone': '{zone}'. Unknown zone.")
