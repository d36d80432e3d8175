from typing import Any

from smoke import differences
from smoke.differences import Difference, Kind
from smoke.exchange import Exchange, Pair
from smoke.replay import settled

NETWORK = "/compute/v1/projects/p/global/networks/n"


def _asked(
    answer: dict[str, Any] | None, *, method: str = "GET", path: str = NETWORK, status: int = 200
) -> Exchange:
    return Exchange(method, path, (), b"", "", status, answer, 0, "", 0.0, 0.0)


def _found(google: dict[str, Any], simulation: dict[str, Any], **how: Any) -> list[Difference]:
    pair = Pair(_asked(google, **how), how.get("status", 200), simulation)
    return [it for it, _ in differences.of([pair])]


def test_ids_times_and_etags_are_no_difference() -> None:
    google = {"id": "1", "creationTimestamp": "2026-11-22T20:00:00Z", "etag": "abc", "name": "x1"}
    assert _found(google, {"id": "2", "creationTimestamp": "z", "etag": "d", "name": "x2"}) == []


def test_fields_of_either_side_alone_are_named_by_googles_method() -> None:
    google = {"routingConfig": {"routingMode": "REGIONAL"}, "peerings": [{"state": "ACTIVE"}]}
    simulation = {"routingConfig": {"bgp": 1}, "peerings": [{"state": "ACTIVE"}]}
    assert _found(google, simulation) == [
        Difference(
            "compute.networks.get", Kind.ABSENT.value, "routingConfig.routingMode", "there", ""
        ),
        Difference("compute.networks.get", Kind.PRESENT.value, "routingConfig.bgp", "", "there"),
    ]


def test_words_of_a_closed_set_are_compared_and_free_text_is_not() -> None:
    google = {
        "routingConfig": {"routingMode": "REGIONAL"},
        "description": "ONE",
        "labels": {"a": "B"},
    }
    simulation = {"routingConfig": {"routingMode": "GLOBAL"}, "description": "TWO", "labels": {}}
    (found,) = _found(google, simulation)
    assert (found.kind, found.google, found.simulation) == (Kind.ENUM.value, "REGIONAL", "GLOBAL")


def test_a_status_tells_googles_words_and_another_refusals_words_are_told_too() -> None:
    refused = {"error": {"code": 400, "message": "Invalid value for field 'a'"}}
    pair = Pair(_asked(refused, status=400), 200, {})
    ((found, times),) = differences.of([pair])
    assert (found.google, found.simulation, times) == ("400 Invalid value for field 'a'", "200", 1)
    other = {"error": {"code": 400, "message": "Something else"}}
    (words,) = _found(refused, other, status=400)
    assert words.kind == Kind.WORDS.value


def test_what_follows_the_clock_in_an_operation_is_not_compared() -> None:
    google = {"operationType": "insert", "status": "RUNNING", "progress": 0, "user": "a"}
    assert _found(google, {"operationType": "insert", "status": "DONE", "user": "b"}) == []
    (found,) = _found({"status": "STAGING"}, {"status": "RUNNING"})
    assert found.kind == Kind.PASSING.value


def test_looks_that_wait_count_once_until_something_is_changed() -> None:
    look, make = _asked(None), _asked(None, method="POST", path="/compute/v1/x")
    state = _asked(None, method="POST", path="/upload/storage/v1/b/x/o")
    assert settled([look, look, look]) == [look]
    assert settled([look, make, look]) == [look, make, look]
    assert len(settled([look, state, look])) == 2


def test_an_object_that_was_read_up_to_a_limit_is_the_same_object() -> None:
    path = "/download/storage/v1/b/states/o/x"
    pair = Pair(_asked(None, path=path, status=206), 200, None)
    assert list(differences.of([pair])) == []
    (found,) = differences.of([Pair(_asked(None, path=path, status=404), 200, None)])
    assert found[0].kind == Kind.STATUS.value
