"""Whether VMs that run can be reached, and reach the internet, in a network made for them."""

from collections.abc import Iterator
from typing import Any

from rehearsal.cloud.store import Store


def lacking(store: Store, now: float) -> Iterator[str]:
    """What running VMs lack in their first network: rules for ssh and among themselves, Cloud NAT.

    Google's own default network has rules from the start, and addresses in place of a NAT. `now`:
    the moment (Unix epoch); what is gone by then does not count.
    """
    rules = {(it["network"], _kind(it["name"])) for it in _there(store, "firewalls", now)}
    nats = {
        (it["network"], it["region"].rpartition("/")[2])
        for it in _there(store, "routers", now)
        if it.get("nats")
    }
    for vm in _there(store, "instances", now):
        network = vm["networkInterfaces"][0]["network"]
        if network.endswith("/default"):
            continue
        for kind in ("iap-ssh", "internal"):
            if (network, kind) not in rules:
                yield f"{vm['name']} runs without the firewall rule {kind}"
        if (network, vm["zone"].rpartition("/")[2][:-2]) not in nats:
            yield f"{vm['name']} runs without Cloud NAT"


def _there(store: Store, collection: str, now: float) -> Iterator[dict[str, Any]]:
    for _, document in store.list(f"compute/{collection}"):
        if document.get("_gone", now + 1) > now:
            yield document


def _kind(name: str) -> str:
    """What a rule is for, of its name without prefix and hash."""
    return name.partition("-")[2].rpartition("-")[0]
