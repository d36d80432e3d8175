import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.cloud import discovery
from rehearsal.cloud.wire import GoogleError
from tests.table import cases

P = "projects/proj-a1"
TEMPLATES = f"{P}/global/instanceTemplates"
CLUSTERS = f"{P}/locations/us-central1/clusters"


def _check(api: str, verb: str, path: str, body: Any = None, **query: str) -> Any:
    document = discovery.api(api)
    return document.check(document.match(verb, path), query, body or {})


def _refusal(api: str, verb: str, path: str, body: Any = None, **query: str) -> GoogleError:
    with pytest.raises(GoogleError) as caught:
        _check(api, verb, path, body, **query)
    return caught.value


@cases(
    """
    api | verb | path | method | parameters
compute.v1 | GET | @p/global/images/family/f | images.getFromFamily | {"family": "f"}
compute.v1 | GET | @p/global/images/i | images.get | {"image": "i"}
compute.v1 | POST | @p/zones/z/instanceGroupManagers/g/resize | instanceGroupManagers.resize
    | {"project": "proj-a1", "zone": "z", "instanceGroupManager": "g"}
compute.v1 | GET | locations/global/firewallPolicies/listAssociations
    | firewallPolicies.listAssociations | {}
container.v1 | GET | @clusters/c | projects.locations.clusters.get | {"name": "@clusters/c"}
serviceusage.v1 | POST | @p/services/file.googleapis.com:enable | services.enable
    | {"name": "@p/services/file.googleapis.com"}
iam.v1 | POST | @p/serviceAccounts | projects.serviceAccounts.create | {"name": "@p"}
storage.v1 | GET | b/x/o/a%2Fb | objects.get | {"bucket": "x", "object": "a/b"}
""",
    p=P,
    clusters=CLUSTERS,
)
def test_a_path_is_of_one_method(
    api: str, verb: str, path: str, method: str, parameters: dict[str, str]
) -> None:
    match = discovery.api(api).match(verb, path)
    assert match.method.id == method
    assert match.parameters.items() >= parameters.items()


@cases(
    """
    verb | path
GET | @p/global/nothings
PUT | @p/global/networks
GET | @p/global/networks/
POST | @p/global/networks/n:explode
GET |
""",
    p=P,
)
def test_a_path_of_no_method_is_not_found(verb: str, path: str) -> None:
    with pytest.raises(GoogleError, match="Not Found") as caught:
        discovery.api("compute.v1").match(verb, path)
    assert caught.value.code == 404


@cases(
    """
    body | message
{"name": "Upper"} | Invalid value for field 'resource.name': 'Upper'. Must be a match of regex
    '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'
{} | Required field 'resource.name' not specified
{"name": "t", "colour": "red"} | @unknown "colour" at 'resource': Cannot find field.
{"properties": {"disks": [{"boots": true}]}} | @unknown "boots" at 'resource.properties.disks[0]':
    Cannot find field.
{"properties": {"disks": [{"boot": "yes"}]}} | @at.disks[0].boot' (TYPE_BOOL), "yes"
{"properties": {"guestAccelerators": [{"acceleratorCount": true}]}}
    | @at.guestAccelerators[0].acceleratorCount' (TYPE_INT32), true
{"properties": {"disks": {}}} | @at.disks' (TYPE_ARRAY), {}
{"properties": []} | @at' (TYPE_MESSAGE), []
{"properties": {"labels": {"team": 1}}} | @at.labels.team' (TYPE_STRING), 1
{"properties": {"guestAccelerators": [{"acceleratorCount": 2147483648}]}}
    | @at.guestAccelerators[0].acceleratorCount' (TYPE_INT32), 2147483648
{"properties": {"scheduling": {"onHostMaintenance": "JUMP"}}} | Invalid value for field
    'resource.properties.scheduling.onHostMaintenance': 'JUMP'. Must be one of [MIGRATE, TERMINATE]
""",
    unknown="Invalid JSON payload received. Unknown name",
    at="Invalid value at 'resource.properties",
)
def test_a_wrong_body_is_refused_in_compute_engines_words(body: Any, message: str) -> None:
    named = {"name": "t"} if "properties" in body else {}
    error = _refusal("compute.v1", "POST", TEMPLATES, named | body)
    assert (error.code, error.message) == (400, message)


@pytest.mark.parametrize(
    "properties",
    [
        {"scheduling": {"provisioningModel": "", "nodeAffinities": [None]}},
        {"scheduling": {"maxRunDuration": {"seconds": "86400"}}},
        {"scheduling": {"maxRunDuration": {"seconds": 86400}}},
        {"scheduling": {"hostErrorTimeoutSeconds": None}},
        {"guestAccelerators": [{"acceleratorCount": "8"}]},
        {"guestAccelerators": [{"acceleratorCount": 8.0}]},
    ],
)
def test_what_clients_of_google_send_passes(properties: Any) -> None:
    body = {"name": "t", "properties": {"machineType": "e2-medium", **properties}}
    assert _check("compute.v1", "POST", TEMPLATES, body)["name"] == "t"


def test_integers_come_out_as_google_answers_them_and_output_only_fields_are_ignored() -> None:
    scheduling = {"maxRunDuration": {"seconds": 60, "nanos": "5"}}
    properties = {"machineType": "e2-medium", "scheduling": scheduling}
    body = {"name": "t", "id": "5", "kind": "x", "properties": properties}
    checked = _check("compute.v1", "POST", TEMPLATES, body)
    assert checked["properties"]["scheduling"]["maxRunDuration"] == {"seconds": "60", "nanos": 5}
    assert checked.keys() == {"name", "properties"}


def test_null_stays_in_a_patch() -> None:
    body = {"description": None}
    assert _check("compute.v1", "PATCH", f"{P}/global/networks/n", body) == body


@cases("""
    query | message
{} | Required field 'size' not specified
{"size": "two"} | Invalid value at 'resource.size' (TYPE_INT32), "two"
{"size": "2", "speed": "9"} | Invalid JSON payload received. Unknown name "speed": Cannot bind query
    parameter. Field 'speed' could not be found in request message.
""")
def test_a_wrong_query_is_refused(query: dict[str, str], message: str) -> None:
    path = f"{P}/zones/us-central1-a/instanceGroupManagers/g/resize"
    assert _refusal("compute.v1", "POST", path, **query).message == message


def test_common_parameters_pass() -> None:
    path = f"{P}/global/networks/n"
    assert _check("compute.v1", "GET", path, alt="json", prettyPrint="false") == {}


def test_a_name_in_the_path_has_its_form() -> None:
    error = _refusal("compute.v1", "GET", f"{P}/global/networks/Upper")
    assert error.message.startswith("Invalid value for field 'network': 'Upper'. Must be a match")


@cases("""
    body | message
{"cluster": {"name": "c", "nodePools": [{"initialNodes": 1}]}} | Invalid JSON payload received.
    Unknown name "initialNodes" at 'cluster.node_pools[0]': Cannot find field.
{"cluster": {"initialNodeCount": "x"}}
    | Invalid value at 'cluster.initial_node_count' (TYPE_INT32), "x"
{"cluster": {"releaseChannel": {"channel": "FAST"}}}
    | Invalid value at 'cluster.release_channel.channel' (TYPE_ENUM), "FAST"
{"custer": {}} | Invalid JSON payload received. Unknown name "custer": Cannot find field.
""")
def test_newer_apis_have_their_own_words(body: Any, message: str) -> None:
    error = _refusal("container.v1", "POST", CLUSTERS, body)
    assert error.message == message
    answered = error.reply().body
    assert isinstance(answered, dict)
    assert answered["error"]["status"] == "INVALID_ARGUMENT"
    if "node_pools" in message:
        violation = answered["error"]["details"][0]["fieldViolations"][0]
        assert violation["field"] == "cluster.node_pools[0]"


def test_the_documents_may_be_elsewhere(tmp_path: Path) -> None:
    assert discovery.folder({discovery.FOLDER_VARIABLE: str(tmp_path)}) == tmp_path
    document = json.loads((discovery.folder({}) / "cloudbilling.v1.json").read_text())
    assert document["name"] == "cloudbilling"
