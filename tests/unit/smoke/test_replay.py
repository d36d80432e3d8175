import json
from pathlib import Path
from typing import Any

import pytest

from smoke import replay
from smoke.exchange import Exchange

NETWORKS = "/compute/v1/projects/my-project/global/networks"


def _exchange(method: str, path: str, status: int, began: float, at: float) -> Exchange:
    body = (
        b""
        if method == "GET"
        else json.dumps({"name": "n", "autoCreateSubnetworks": False}).encode()
    )
    answer: dict[str, Any] = {}
    return Exchange(method, path, (), body, "application/json", status, answer, 0, "", began, at)


@pytest.mark.loopback
@pytest.mark.parametrize(("began", "status"), [(1.0, 404), (3.0, 200)])
def test_a_look_together_with_a_change_may_have_been_served_before_it(
    tmp_path: Path, began: float, status: int
) -> None:
    asked = [
        _exchange("POST", NETWORKS, 200, 0.0, 2.0),
        _exchange("GET", f"{NETWORKS}/n", 404, began, 4.0),
    ]
    assert [it.status for it in replay.replay(asked, tmp_path, "my-project")] == [200, status]


@pytest.mark.loopback
def test_what_google_named_is_asked_for_by_the_simulations_name(tmp_path: Path) -> None:
    made = _exchange("POST", NETWORKS, 200, 0.0, 1.0)
    operation = {"name": "operation-of-google", "targetId": "7000000000000000001"}
    asked = [
        Exchange(**{**vars(made), "answer": operation}),
        _exchange("GET", f"{NETWORKS[:-9]}/operations/operation-of-google", 200, 2.0, 3.0),
        _exchange("GET", f"{NETWORKS}/none", 404, 4.0, 5.0),
    ]
    assert [it.status for it in replay.replay(asked, tmp_path, "my-project")] == [200, 200, 404]
