"""The stand-in sends what the real provider 7.45.0 sent: story by story, request by request.

Compared are method, path, query, content type and body. Requests to one path keep their order;
those to different paths come in any order, as Terraform runs ten at once.
"""

import json
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.rehearsal.recorded.conftest import Player
from tests.rehearsal.recorded.proxy import Row

# What may differ, why, and how it is made equal on both sides.
TOLERATED = (
    ("ids that a cloud gives out", r"\b\d{15,20}\b", "NUMID"),
    ("the number of a project", r"\b(projects/)\d{12}\b", r"\1NUMBER"),
    ("what follows a name_prefix", r"\b(a2-)(\d{18}[0-9a-f]{8}|UNIQ)", r"\1UNIQ"),
    ("a dashboard's id", r"\b(dashboards/)[0-9a-f-]{36}\b", r"\1ID"),
    (
        "the patch of a version that a channel offers, another on each day",
        r"\b(1\.\d+\.)\d+-gke\.\d+\b",
        r"\1PATCH",
    ),
    ("an upload's id", r'("upload_id": )"[^"]+"', r'\1"UPID"'),
    (
        "a fingerprint or etag, which a cloud makes up",
        r'("(?:fingerprint|etag|labelFingerprint|resourceVersion)": )"[^"]*"',
        r'\1"ETAG"',
    ),
    (
        "the label that a cloud gives the machines of a pool",
        r'("goog-gke-node-pool-provisioning-model": )"[^"]*"',
        r'\1"MODEL"',
    ),
    (
        "the zones in which a cloud puts nodes that nobody gives a zone",
        r"\bzones/[a-z0-9-]+(?=/instanceGroupManagers$)",
        "zones/ZONE",
    ),
)

# Lists that the provider asks for once for all pools that it reads at about the same time.
SHARED_LISTS = re.compile(r"^GET .*/(?:nodePools|instanceGroupManagers)$")

# Bindings that a cloud's policies have from the beginning; recording and simulation differ.
GIVEN_ROLES = {"roles/owner", "roles/editor", "roles/compute.serviceAgent"} | {
    f"roles/storage.legacy{kind}"
    for kind in ("BucketOwner", "BucketReader", "BucketWriter", "ObjectOwner", "ObjectReader")
}


def _own_bindings(value: Any) -> Any:
    """A body without the bindings that were there from the beginning."""
    if isinstance(value, dict):
        kept = {name: _own_bindings(each) for name, each in value.items()}
        if isinstance(kept.get("bindings"), list):
            own = [each for each in kept["bindings"] if each["role"] not in GIVEN_ROLES]
            kept["bindings"] = own
            if not own:
                del kept["bindings"]
        return kept
    return value


def _name(body: dict[str, Any]) -> str:
    """The name of what a request makes, or of the pool that it changes by way of its cluster."""
    pool = (body.get("update") or {}).get("desiredNodePoolId", "")
    name: str = body.get("name") or (body.get("nodePool") or {}).get("name") or pool
    return name


def _normal(row: Row) -> tuple[str, str]:
    body = _own_bindings(row.get("body"))
    kind = row.get("content_type", row.get("headers", {}).get("content-type", ""))
    query = row["query"]
    if isinstance(body, dict) and "bytes" in body:
        # The parts of an upload go where the cloud said, and its address may name more.
        query = {name: query.get(name) for name in ("uploadType", "upload_id")}
    # What is made in one collection comes in any order too, so its name is part of the key.
    name = query.get("name") or (_name(body) if isinstance(body, dict) else "")
    rest = {"query": query, "type": kind.partition(";")[0], "body": body}
    texts = [f"{row['request']} {name}".strip(), json.dumps(rest, sort_keys=True)]
    for _, pattern, replacement in TOLERATED:
        texts = [re.sub(pattern, replacement, text) for text in texts]
    return texts[0], texts[1]


def _by_request(rows: list[Row]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for row in rows:
        request, rest = _normal(row)
        # How many pools one answer to a list serves depends on which of them come first.
        if SHARED_LISTS.search(request) and rest in found[request]:
            continue
        found[request].append(rest)
    return dict(found)


# In `make test` each type of resource has its story.
SLOW = pytest.mark.slow(sibling="::test_a_story_sends_what_the_real_provider_sent")


@pytest.mark.parametrize(
    "name",
    [
        "a_vpc",
        pytest.param("b_gpu_nets", marks=SLOW),
        "d_a2_mig",
        "f_flex_start",
        "h_filestore",
        "i_storage",
        pytest.param("i2_big_object", marks=SLOW),
        "j_iam",
        "k_project",
        "l_dashboard",
        "m_gke",
        pytest.param("n_node_pools", marks=SLOW),
    ],
)
def test_a_story_sends_what_the_real_provider_sent(
    name: str, player: Player, recording: Callable[[str, str], Row]
) -> None:
    recorded = recording("stories", name)
    sent = player.play(recorded)
    for phase, rows in recorded["phases"].items():
        assert _by_request(sent[phase]) == _by_request(rows), phase
