"""Who may reach Ray where its operator knows no tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from provision.kinds.gke.kubernetes import ray_access

SPACES = ("default", "team-a", "kube-system", "gke-managed-system", "gmp-system", "ray-system")


def _cluster(operator: str | None) -> Any:
    def found(version: str, kind: str, namespace: str = "", selector: str = "") -> list[Any]:
        assert (version, namespace) == ("v1", "")
        if kind == "Namespace":
            return [{"metadata": {"name": it}} for it in SPACES]
        assert (kind, selector) == ("Pod", "app.kubernetes.io/name=kuberay-operator")
        return [{"metadata": {"name": "o", "namespace": operator}}] if operator else []

    return cast("Any", SimpleNamespace(all=found))


def _trusted(policy: dict[str, Any]) -> list[str]:
    peers = policy["spec"]["ingress"][0]["from"]
    (among,) = peers[1]["namespaceSelector"]["matchExpressions"]
    return cast("list[str]", among["values"])


def test_gkes_programs_and_the_operator_reach_ray_and_other_namespaces_do_not() -> None:
    managed = ["gke-managed-system", "gmp-system", "kube-system"]
    assert _trusted(ray_access.policy(_cluster(None))) == managed
    assert _trusted(ray_access.policy(_cluster("ray-system"))) == [*managed, "ray-system"]


def test_heads_and_workers_are_closed_on_all_ports_but_those_for_users() -> None:
    spec = ray_access.policy(_cluster(None))["spec"]
    (chosen,) = spec["podSelector"]["matchExpressions"]
    assert chosen == {"key": "ray.io/node-type", "operator": "Exists"}
    (for_all,) = [rule for rule in spec["ingress"] if "from" not in rule]
    assert not {it["port"] for it in for_all["ports"]} & {6379, 8265, 10001}
