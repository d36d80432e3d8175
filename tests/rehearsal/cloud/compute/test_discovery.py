from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud import discovery
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from pathlib import Path

P = "projects/proj-a1"
TEMPLATES = f"{P}/global/instanceTemplates"
CLUSTERS = f"{P}/locations/us-central1/clusters"


def _refusal(api: str, verb: str, path: str, body: Any = None, **query: str) -> GoogleError:
    document = discovery.api(api)
    with pytest.raises(GoogleError) as caught:
        document.check(document.match(verb, path), query, body or {})
    return caught.value


def _check(api: str, verb: str, path: str, body: Any = None, **query: str) -> Any:
    document = discovery.api(api)
    return document.check(document.match(verb, path), query, body or {})


@pytest.mark.parametrize(
    ("api", "verb", "path", "method", "parameters"),
    [
        (
            "compute.v1",
            "GET",
            f"{P}/global/images/family/f",
            "images.getFromFamily",
            {"family": "f"},
        ),
        ("compute.v1", "GET", f"{P}/global/images/i", "images.get", {"image": "i"}),
        (
            "compute.v1",
            "POST",
            f"{P}/zones/z/instanceGroupManagers/g/resize",
            "instanceGroupManagers.resize",
            {"project": "proj-a1", "zone": "z", "instanceGroupManager": "g"},
        ),
        (
            "container.v1",
            "GET",
            f"{CLUSTERS}/c",
            "projects.locations.clusters.get",
            {"name": f"{CLUSTERS}/c"},
        ),
        (
            "serviceusage.v1",
            "POST",
            f"{P}/services/file.googleapis.com:enable",
            "services.enable",
            {"name": f"{P}/services/file.googleapis.com"},
        ),
        (
            "iam.v1",
            "POST",
            f"{P}/serviceAccounts",
            "projects.serviceAccounts.create",
            {"name": P},
        ),
        ("storage.v1", "GET", "b/x/o/a%2Fb", "objects.get", {"bucket": "x", "object": "a/b"}),
    ],
)
def test_a_path_is_of_one_method(
    api: str, verb: str, path: str, method: str, parameters: dict[str, str]
) -> None:
    match = discovery.api(api).match(verb, path)
    assert match.method.id == method
    assert match.parameters.items() >= parameters.items()


def test_the_more_literal_path_wins() -> None:
    match = discovery.api("compute.v1").match(
        "GET", "locations/global/firewallPolicies/listAssociations"
    )
    assert match.method.id == "firewallPolicies.listAssociations"


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", f"{P}/global/nothings"),
        ("PUT", f"{P}/global/networks"),
        ("GET", f"{P}/global/networks/"),
        ("POST", f"{P}/global/networks/n:explode"),
        ("GET", ""),
    ],
)
def test_a_path_of_no_method_is_not_found(verb: str, path: str) -> None:
    with pytest.raises(GoogleError, match="Not Found") as caught:
        discovery.api("compute.v1").match(verb, path)
    assert caught.value.code == 404


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {"name": "Upper"},
            (
                "Invalid value for field 'resource.name': 'Upper'. Must be a match of regex "
                "'(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'"
            ),
        ),
        ({}, "Required field 'resource.name' not specified"),
        (
            {"name": "t", "colour": "red"},
            (
                "Invalid JSON payload received. Unknown name \"colour\" at 'resource': "
                "Cannot find field."
            ),
        ),
        (
            {"name": "t", "properties": {"disks": [{"boots": True}]}},
            (
                'Invalid JSON payload received. Unknown name "boots" at '
                "'resource.properties.disks[0]': Cannot find field."
            ),
        ),
        (
            {"name": "t", "properties": {"disks": [{"boot": "yes"}]}},
            "Invalid value at 'resource.properties.disks[0].boot' (TYPE_BOOL), \"yes\"",
        ),
        (
            {"name": "t", "properties": {"guestAccelerators": [{"acceleratorCount": True}]}},
            (
                "Invalid value at 'resource.properties.guestAccelerators[0].acceleratorCount' "
                "(TYPE_INT32), true"
            ),
        ),
        (
            {"name": "t", "properties": {"disks": {}}},
            "Invalid value at 'resource.properties.disks' (TYPE_ARRAY), {}",
        ),
        (
            {"name": "t", "properties": []},
            "Invalid value at 'resource.properties' (TYPE_MESSAGE), []",
        ),
        (
            {"name": "t", "properties": {"labels": {"team": 1}}},
            "Invalid value at 'resource.properties.labels.team' (TYPE_STRING), 1",
        ),
        (
            {"name": "t", "properties": {"guestAccelerators": [{"acceleratorCount": 2**31}]}},
            (
                "Invalid value at 'resource.properties.guestAccelerators[0].acceleratorCount' "
                "(TYPE_INT32), 2147483648"
            ),
        ),
        (
            {"name": "t", "properties": {"scheduling": {"onHostMaintenance": "JUMP"}}},
            (
                "Invalid value for field 'resource.properties.scheduling.onHostMaintenance': "
                "'JUMP'. Must be one of [MIGRATE, TERMINATE]"
            ),
        ),
    ],
)
def test_a_wrong_body_is_refused_in_compute_engines_words(body: Any, message: str) -> None:
    error = _refusal("compute.v1", "POST", TEMPLATES, body)
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


def test_integers_come_out_as_google_answers_them() -> None:
    body = {
        "name": "t",
        "properties": {
            "machineType": "e2-medium",
            "scheduling": {"maxRunDuration": {"seconds": 60, "nanos": "5"}},
        },
    }
    checked = _check("compute.v1", "POST", TEMPLATES, body)
    assert checked["properties"]["scheduling"]["maxRunDuration"] == {"seconds": "60", "nanos": 5}


def test_output_only_fields_are_ignored() -> None:
    body = {"name": "t", "id": "5", "kind": "x", "properties": {"machineType": "e2-medium"}}
    assert _check("compute.v1", "POST", TEMPLATES, body).keys() == {"name", "properties"}


def test_null_stays_in_a_patch() -> None:
    body = {"description": None}
    assert _check("compute.v1", "PATCH", f"{P}/global/networks/n", body) == body


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({}, "Required field 'size' not specified"),
        ({"size": "two"}, "Invalid value at 'resource.size' (TYPE_INT32), \"two\""),
        (
            {"size": "2", "speed": "9"},
            (
                'Invalid JSON payload received. Unknown name "speed": Cannot bind query parameter. '
                "Field 'speed' could not be found in request message."
            ),
        ),
    ],
)
def test_a_wrong_query_is_refused(query: dict[str, str], message: str) -> None:
    path = f"{P}/zones/us-central1-a/instanceGroupManagers/g/resize"
    assert _refusal("compute.v1", "POST", path, **query).message == message


def test_common_parameters_pass() -> None:
    path = f"{P}/global/networks/n"
    assert _check("compute.v1", "GET", path, alt="json", prettyPrint="false") == {}


def test_a_name_in_the_path_has_its_form() -> None:
    error = _refusal("compute.v1", "GET", f"{P}/global/networks/Upper")
    assert error.message.startswith("Invalid value for field 'network': 'Upper'. Must be a match")


def test_newer_apis_have_their_own_words() -> None:
    body = {"cluster": {"name": "c", "nodePools": [{"initialNodes": 1}]}}
    error = _refusal("container.v1", "POST", CLUSTERS, body)
    assert error.message == (
        'Invalid JSON payload received. Unknown name "initialNodes" at '
        "'cluster.node_pools[0]': Cannot find field."
    )
    answered = error.reply().body
    assert isinstance(answered, dict)
    assert answered["error"]["status"] == "INVALID_ARGUMENT"
    violation = answered["error"]["details"][0]["fieldViolations"][0]
    assert violation["field"] == "cluster.node_pools[0]"
    error = _refusal("container.v1", "POST", CLUSTERS, {"cluster": {"initialNodeCount": "x"}})
    assert error.message == "Invalid value at 'cluster.initial_node_count' (TYPE_INT32), \"x\""
    fast = {"cluster": {"releaseChannel": {"channel": "FAST"}}}
    error = _refusal("container.v1", "POST", CLUSTERS, fast)
    assert (
        error.message == "Invalid value at 'cluster.release_channel.channel' (TYPE_ENUM), \"FAST\""
    )
    error = _refusal("container.v1", "POST", CLUSTERS, {"custer": {}})
    assert error.message == (
        'Invalid JSON payload received. Unknown name "custer": Cannot find field.'
    )


def test_the_documents_may_be_elsewhere(tmp_path: Path) -> None:
    assert discovery.folder({discovery.FOLDER_VARIABLE: str(tmp_path)}) == tmp_path
    document = json.loads((discovery.folder({}) / "cloudbilling.v1.json").read_text())
    assert document["name"] == "cloudbilling"
