from typing import Any

import pytest

from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import Object
from tests.rehearsal.cloud.kubernetes.conftest import Gke, Make, send

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def cluster(gke_of: Make) -> Gke:
    return gke_of("gke-plain")


def _map(name: str = "m", **data: str) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _apply(cluster: Gke, thing: Object, manager: str, *, force: bool = False) -> tuple[int, Any]:
    query = f"?fieldManager={manager}{'&force=true' if force else ''}"
    path = f"{MAPS}/{thing['metadata']['name']}{query}"
    code, body, _ = cluster.raw("PATCH", path, thing, APPLY)
    return code, body


def _definition(properties: Object | None) -> Object:
    schema: Object = {"type": "object"}
    if properties is None:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    else:
        spec = {"type": "object", "properties": properties, "required": ["size"]}
        schema["properties"] = {"spec": spec}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Loom", "plural": "looms", "singular": "loom", "listKind": "LoomList"}
    about: Object = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": names,
        "versions": [version],
    }
    thing = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**thing, "metadata": {"name": "looms.example.com"}, "spec": about}


def _loom(**spec: Any) -> Object:
    metadata = {"name": "l", "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Loom", "metadata": metadata, "spec": spec}


TEXT = {"type": "string"}
SIZE = {
    "size": {"type": "integer"},
    "color": {"type": "string", "enum": ["red", "blue"]},
    "free": {"type": "object", "additionalProperties": TEXT},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "parts": {"type": "array", "items": {"type": "object", "properties": {"name": TEXT}}},
    "port": {"x-kubernetes-int-or-string": True},
}
LOOMS = "/apis/example.com/v1/namespaces/default/looms"


def test_a_request_without_a_token_or_to_no_cluster_is_refused(cluster: Gke) -> None:
    code, body, _ = cluster.raw("GET", "/api/v1/nodes")
    assert code == 200, body
    for header in ("", "Basic abc", "Bearer "):
        path = f"/kubernetes/{cluster.endpoint}/api/v1/nodes"
        code, body, _ = send(cluster.url, "GET", path, None, {"Authorization": header})
        assert (code, body["reason"]) == (401, "Unauthorized")
    code, body, _ = send(cluster.url, "GET", "/kubernetes/gke-0.us-central1.gke.goog/api/v1")
    assert (code, body["kind"], body["status"]) == (404, "Status", "Failure")
    at = "/container/v1/projects/my-project/locations/us-central1/clusters/demo-gke"
    cluster.google("DELETE", at)
    assert cluster.raw("GET", "/api/v1")[0] == 404


def test_apply_takes_only_what_differs_and_keeps_the_rest(cluster: Gke) -> None:
    code, first = _apply(cluster, _map(a="1"), "one")
    assert code == 201
    code, again = _apply(cluster, _map(a="1"), "one")
    assert (code, again["metadata"]) == (200, first["metadata"])  # no new version
    code, both = _apply(cluster, _map(b="2"), "two")
    assert both["data"] == {"a": "1", "b": "2"}
    assert both["metadata"]["resourceVersion"] != again["metadata"]["resourceVersion"]
    assert {it["manager"] for it in both["metadata"]["managedFields"]} == {"one", "two"}


def test_a_field_of_somebody_else_is_a_conflict_unless_it_is_forced(cluster: Gke) -> None:
    _apply(cluster, _map(a="1"), "one")
    code, refusal = _apply(cluster, _map(a="2"), "two")
    assert (code, refusal["reason"]) == (409, "Conflict")
    assert refusal["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert _apply(cluster, _map(a="1"), "two")[0] == 200  # the same value is shared
    code, forced = _apply(cluster, _map(a="2"), "two", force=True)
    assert (code, forced["data"]) == (200, {"a": "2"})
    code, _ = _apply(cluster, _map(a="3"), "two")
    assert code == 200  # it is the only owner now


def test_a_field_that_its_only_manager_leaves_out_is_removed(cluster: Gke) -> None:
    _apply(cluster, _map(a="1", b="2"), "one")
    _apply(cluster, _map(b="2"), "two")
    _, left = _apply(cluster, _map(a="1"), "one")
    assert left["data"] == {"a": "1", "b": "2"}  # the other one still has it
    _, left = _apply(cluster, _map(c="3"), "two")
    assert left["data"] == {"a": "1", "c": "3"}


def test_entries_of_lists_with_a_key_are_owned_one_by_one(cluster: Gke) -> None:
    def apply(manager: str, *names: str) -> list[str]:
        containers = [{"name": name, "image": name} for name in names]
        metadata = {"name": "p", "namespace": "default"}
        spec = {"template": {"spec": {"containers": containers}}, "selector": {}}
        thing = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}
        path = "/apis/apps/v1/namespaces/default/daemonsets/p?force=true&fieldManager="
        _, made, _ = cluster.raw("PATCH", f"{path}{manager}", thing, APPLY)
        return [it["name"] for it in made["spec"]["template"]["spec"]["containers"]]

    apply("one", "a", "b")
    assert apply("two", "c") == ["a", "b", "c"]
    assert apply("one", "b") == ["b", "c"]


def test_the_generation_counts_changes_of_the_spec_alone(cluster: Gke) -> None:
    cluster.api.apply(_definition(None))
    made = cluster.api.create(_loom(size=1))
    path = f"{LOOMS}/l"
    labelled = cluster.raw("PATCH", path, {"metadata": {"labels": {"a": "b"}}}, MERGE)[1]
    assert labelled["metadata"]["generation"] == made["metadata"]["generation"] == 1
    changed = cluster.raw("PATCH", path, {"spec": {"size": 2}}, MERGE)[1]
    assert changed["metadata"]["generation"] == 2


def test_an_object_can_be_made_once_and_patches_merge(cluster: Gke) -> None:
    assert cluster.raw("POST", MAPS, _map(a="1", b="2"))[0] == 201
    assert cluster.raw("POST", MAPS, _map(a="1"))[1]["reason"] == "AlreadyExists"
    merged = cluster.raw("PATCH", f"{MAPS}/m", {"data": {"a": None, "c": "3"}}, MERGE)[1]
    assert merged["data"] == {"b": "2", "c": "3"}
    thing = _map()
    thing["metadata"] = {"generateName": "map-", "namespace": "default"}
    names = {cluster.api.create(thing)["metadata"]["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("map-") for name in names)


def test_what_the_program_does_not_ask_for_is_named(cluster: Gke) -> None:
    cluster.api.create(_map(a="1"))
    for method, path, kind in (
        ("GET", "/version", ""),
        ("GET", "/apis", ""),
        ("GET", f"{MAPS}?watch=true", ""),
        ("DELETE", MAPS, ""),
        ("PUT", f"{MAPS}/m", ""),
        ("PATCH", f"{MAPS}/m", "application/json-patch+json"),
        ("GET", f"{MAPS}/m/status", ""),
    ):
        code, said, _ = cluster.raw(method, path, _map(), kind or "application/json")
        assert (code, said["reason"]) == (501, "NotImplemented"), path
        assert "not part of the simulated cluster" in said["message"]


def test_kinds_are_told_by_version(cluster: Gke) -> None:
    kinds = {it["name"]: it for it in cluster.raw("GET", "/api/v1")[1]["resources"]}
    assert kinds["nodes"]["namespaced"] is False
    for version in ("none/v1", "networking.gke.io/v1", "ray.io/v1"):
        assert cluster.raw("GET", f"/apis/{version}")[0] == 404


def test_selectors_of_labels_and_fields_choose(cluster: Gke) -> None:
    for name, labels in {"a": {"color": "red"}, "b": {"color": "blue"}, "c": {}}.items():
        thing = _map(name)
        thing["metadata"]["labels"] = labels
        cluster.api.create(thing)
    for query, names in (
        ("labelSelector=color%3Dred", ["a"]),
        ("labelSelector=color", ["a", "b"]),
        ("labelSelector=color%3Dred,size%3Dbig", []),
        ("fieldSelector=metadata.name%3Da", ["a"]),
        ("fieldSelector=metadata.name!%3Da", ["b", "c"]),
    ):
        found = cluster.raw("GET", f"{MAPS}?{query}")[1]["items"]
        assert [it["metadata"]["name"] for it in found] == names, query


def test_a_kind_is_served_from_its_definition_on_until_that_is_deleted(cluster: Gke) -> None:
    with pytest.raises(KubernetesError) as caught:
        cluster.api.create(_loom(size=1))
    assert caught.value.code == 404
    cluster.api.apply(_definition(SIZE))
    assert cluster.api.create(_loom(size=1))["spec"] == {"size": 1}
    cluster.api.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "looms.example.com")
    assert cluster.raw("GET", "/apis/example.com/v1")[0] == 404
    cluster.api.apply(_definition(SIZE))
    assert cluster.api.all("example.com/v1", "Loom") == []


def test_a_version_that_a_definition_has_no_more_is_not_served(cluster: Gke) -> None:
    old = _definition(SIZE)
    cluster.api.apply(old)
    new = _definition(SIZE)
    new["spec"]["versions"][0]["name"] = "v2"
    cluster.api.apply(new)
    assert cluster.raw("GET", "/apis/example.com/v1/looms")[0] == 404
    assert cluster.raw("GET", "/apis/example.com/v2/looms")[0] == 200


def test_a_field_that_a_schema_has_not_is_a_500_of_apply_and_a_400_of_create(cluster: Gke) -> None:
    cluster.api.apply(_definition(SIZE))
    with pytest.raises(KubernetesError) as caught:
        cluster.api.apply(_loom(size=1, weight=2))
    assert caught.value.code == 500
    assert caught.value.message == (
        "failed to create typed patch object (default/l; example.com/v1, Kind=Loom):"
        " .spec.weight: field not declared in schema"
    )
    with pytest.raises(KubernetesError) as caught:
        cluster.api.create(_loom(size=1, parts=[{"name": "a", "weight": 2}]))
    assert caught.value.code == 400
    assert caught.value.message == 'strict decoding error: unknown field "spec.parts[0].weight"'


def test_what_a_schema_allows_is_taken(cluster: Gke) -> None:
    cluster.api.apply(_definition(SIZE))
    for spec in (
        {"size": 1, "free": {"anything": "text"}},
        {"size": 1, "any": {"a": {"b": [1]}}},
        {"size": 1, "parts": [{"name": "a"}]},
        {"size": 1, "port": "http"},
        {"size": 1, "port": 80},
        {"size": 1, "color": "blue"},
    ):
        assert cluster.api.apply(_loom(**spec))["spec"] == spec


def test_values_that_a_schema_forbids_are_refused(cluster: Gke) -> None:
    cluster.api.apply(_definition(SIZE))
    wrong: dict[str, Object] = {
        'spec.size: Invalid value: "str": must be of type integer': {"size": "1"},
        "must be of type integer": {"size": True},
        'Unsupported value: "green": supported values: "red"': {"size": 1, "color": "green"},
        "spec.size: Required value": {"color": "red"},
        "spec.free.a: Invalid value": {"size": 1, "free": {"a": 1}},
    }
    for words, spec in wrong.items():
        with pytest.raises(KubernetesError) as caught:
            cluster.api.apply(_loom(**spec))
        assert caught.value.code == 422
        assert words in caught.value.message


def test_where_there_is_no_schema_any_field_is_taken_and_a_warning_says_so(cluster: Gke) -> None:
    cluster.api.apply(_definition(None))
    assert cluster.api.apply(_loom(whatever=1))["spec"] == {"whatever": 1}
    assert "any field is taken" in cluster.raw("GET", LOOMS)[2]["Warning"]
    cluster.api.apply(_definition(SIZE))
    assert "Warning" not in cluster.raw("GET", LOOMS)[2]


def test_objects_go_with_their_namespace_and_need_one(cluster: Gke) -> None:
    thing = _map("m")
    thing["metadata"]["namespace"] = "new"
    with pytest.raises(KubernetesError, match="404"):
        cluster.api.create(thing)
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
    cluster.api.create(thing)
    cluster.api.delete("v1", "Namespace", "new")
    assert cluster.api.all("v1", "ConfigMap") == []


def _job(**pod: Any) -> Object:
    metadata = {"name": "j", "namespace": "default"}
    spec = {"template": {"spec": {"restartPolicy": "Never", **pod}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def test_what_an_object_owns_goes_with_it(cluster: Gke) -> None:
    cluster.api.create(_job(containers=[{"name": "c", "image": "i", "args": ["60s"]}]))
    assert len(cluster.pods("job-name=j")) == 1
    cluster.api.delete("batch/v1", "Job", "j", "default")
    assert cluster.pods("job-name=j") == []
    assert cluster.api.delete("batch/v1", "Job", "j", "default") is False


def test_a_log_is_read_by_container_and_not_before_the_pod_runs(cluster: Gke) -> None:
    containers = [{"name": name, "image": "i"} for name in ("a", "b")]
    cluster.api.create(_job(nodeSelector={"no": "node"}, containers=containers))
    (made,) = cluster.pods()
    path = f"/api/v1/namespaces/default/pods/{made['metadata']['name']}/log"
    assert "choose one of: [a b]" in cluster.raw("GET", path)[1]["message"]
    assert "is not valid" in cluster.raw("GET", f"{path}?container=c")[1]["message"]
    assert "is waiting to start" in cluster.raw("GET", f"{path}?container=a")[1]["message"]
    assert cluster.raw("GET", f"{path.replace('/j-', '/k-')}")[0] == 404
