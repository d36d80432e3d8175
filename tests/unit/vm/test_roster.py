"""Who has which rank, whatever happens to a group of VMs."""

import json

import pytest
from aiinfra_vm import members, roster
from aiinfra_vm.members import Member
from aiinfra_vm.roster import Roster, seated
from hypothesis import given
from hypothesis import strategies as st


def _vm(name: str, life: int = 1) -> Member:
    return Member(name, f"{life}", f"10.0.{life}.{ord(name[-1])}", "b007")


def _ranks(found: Roster) -> dict[str, int]:
    return {seat.member.name: seat.rank for seat in found.seats if seat.present}


# One moment of a group: who lives, each in which of its lives, and how many there are to be.
_MOMENTS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 3), max_size=7),
        st.integers(1, 6),
    ),
    min_size=1,
    max_size=12,
)


@given(_MOMENTS)
def test_a_vm_keeps_its_rank_and_no_rank_below_the_size_is_empty_while_somebody_waits(
    moments: list[tuple[dict[str, int], int]],
) -> None:
    before: Roster | None = None
    for lives, nnodes in moments:
        here = [_vm(name, life) for name, life in lives.items()]
        after = seated(before, here, nnodes)

        assert len({seat.rank for seat in after.seats}) == len(after.seats)
        assert all(0 <= seat.rank < nnodes for seat in after.seats)
        ranks = _ranks(after)
        assert len(ranks) == min(len(here), nnodes)
        assert set(ranks) <= set(lives)
        if before is not None:
            for seat in before.seats:
                if seat.member.name in lives and seat.rank < nnodes:
                    assert ranks[seat.member.name] == seat.rank
            assert after.generation == before.generation + (after is not before)
        # What is true of a VM now is in its seat.
        assert all(seat.member in here for seat in after.seats if seat.present)
        assert roster.parse(json.dumps(after.document()).encode()) == after
        assert seated(after, here, nnodes) is after
        assert after.complete == (len(here) >= nnodes)
        before = after


def _vms(names: str) -> list[Member]:
    return [_vm(name) for name in names]


@pytest.mark.parametrize(
    ("lives", "ranks"),
    [
        # who lives at one moment after the other, each with the size of the group -> the ranks
        ("cab3", "a0 b1 c2"),  # by name, whoever came first
        ("abc3 ac3", "a0 c2"),
        ("abc3 ac3 abc3", "a0 b1 c2"),
        ("abc3 bcd3", "b1 c2 d0"),  # somebody new gets the rank of one that is gone
        ("ab2 bd3", "b1 d2"),  # but for that, one that nobody had
        ("abc3 abc2", "a0 b1"),  # in a smaller group who is left has the lower ranks
        ("abc3 abc2 ac2", "a0 c1"),
    ],
)
def test_ranks_follow_from_who_lives_and_who_had_them(lives: str, ranks: str) -> None:
    found = None
    for moment in lives.split():
        found = seated(found, _vms(moment[:-1]), int(moment[-1]))
    assert found is not None
    assert _ranks(found) == {it[0]: int(it[1]) for it in ranks.split()}


def test_a_vm_that_was_made_again_takes_up_its_rank_with_its_new_address() -> None:
    without = seated(seated(None, _vms("abc"), 3), _vms("ac"), 3)
    again = seated(without, [_vm("a"), _vm("b", life=2), _vm("c")], 3)
    assert not without.complete
    seat = again.seat("b")
    assert seat is not None
    assert (seat.rank, seat.member.instance_id, again.generation) == (1, "2", 3)


def test_a_vm_that_is_away_says_since_when_until_it_is_back() -> None:
    both = _vms("ab")
    gone = seated(seated(None, both, 2), both[:1], 2, "2026-11-28T10:00:00Z")
    later = seated(gone, [*both[:1], _vm("c")], 3, "2026-11-28T11:00:00Z")
    assert [seat.since for seat in later.seats] == ["", "2026-11-28T10:00:00Z", ""]
    assert roster.parse(json.dumps(later.document()).encode()) == later
    assert not any(seat.since for seat in seated(later, both, 2).seats)


@pytest.mark.parametrize(
    "change",
    [
        *({"nnodes": 0}, {"nnodes": "2"}, {"nnodes": True}, {"generation": None}),
        *({"members": {}}, {"members": [{"rank": 0}]}),
        {"members": [{**_vm("a").document(), "rank": 0, "since": "x;reboot"}]},
    ],
    ids=str,
)
def test_what_is_no_roster_is_refused(change: dict[str, object]) -> None:
    document = seated(None, [_vm("a")], 1).document() | change
    with pytest.raises(ValueError, match=r"."):
        roster.parse(json.dumps(document).encode())


def test_a_rank_and_a_name_stand_once_in_a_roster() -> None:
    document = seated(None, _vms("ab"), 2).document()
    first, second = document["members"]
    for twice in (second | {"rank": 0}, first | {"rank": 1}):
        with pytest.raises(ValueError, match="two"):
            roster.parse(json.dumps(document | {"members": [first, twice]}).encode())


def test_a_size_is_read_and_one_that_is_none_is_refused() -> None:
    assert roster.size(b'{"instance_count": 4}') == 4
    for text in (b"{}", b"[]", b'{"instance_count": 0}', b'{"instance_count": "3"}'):
        with pytest.raises(ValueError, match="not a number"):
            roster.size(text)


def test_what_is_too_deep_to_be_read_is_refused_as_what_is_no_json_is() -> None:
    deep = b"[" * 100_000
    for read in (roster.parse, roster.size, lambda text: members.parse(text, "train-vm-1")):
        with pytest.raises(ValueError, match="too deep"):
            read(deep)
