from provision import endpoints
from provision.time.clock import Clock

HERE = {endpoints.COMPUTE: "http://127.0.0.1:4711/compute/v1/", "CLOUD_CLOCK_RATE": "0"}
BEHIND = {**HERE, endpoints.FORWARDED: "googleapis.com"}


def test_an_endpoint_on_this_machine_is_a_rehearsal_unless_it_hands_on_to_google() -> None:
    assert endpoints.is_rehearsal(HERE)
    assert "nothing is real or billed" in endpoints.announcement(HERE)
    assert not endpoints.is_rehearsal(BEHIND)
    said = endpoints.announcement(BEHIND)
    assert "googleapis.com" in said
    assert "all is real and billed" in said
    assert "simulated" not in said


def test_behind_a_proxy_to_google_the_clock_is_the_worlds() -> None:
    assert Clock.of(HERE) != Clock.of(BEHIND)
    assert Clock.of(BEHIND) == Clock.of({})


def test_google_itself_is_neither_announced_nor_rehearsed() -> None:
    assert not endpoints.is_rehearsal({endpoints.FORWARDED: "googleapis.com"})
    assert endpoints.announcement({}) == ""
