"""The search for VMs at fault: nobody good is blamed, and nobody bad is cleared."""

from collections.abc import Collection, Sequence

from hypothesis import given
from hypothesis import strategies as st

from provision.kinds import diagnosis
from provision.kinds.diagnosis import Tried
from tests.table import cases


def _names(count: int) -> tuple[str, ...]:
    return tuple(f"vm-{number:03}" for number in range(count))


def _try(groups: Sequence[tuple[str, ...]], bad: Collection[str]) -> list[Tried]:
    """A group fails exactly if one of its VMs is bad."""
    return [Tried(vms, not set(vms) & set(bad)) for vms in groups]


def _search(vms: tuple[str, ...], bad: Collection[str], most: int) -> tuple[list[Tried], int]:
    tried, rounds = _try([vms], bad), 1
    while rounds < most and (groups := diagnosis.next_round(tried)):
        tried += _try(groups, bad)
        rounds += 1
    return tried, rounds


@st.composite
def _cases(draw: st.DrawFn) -> tuple[tuple[str, ...], set[str]]:
    vms = _names(draw(st.integers(min_value=2, max_value=40)))
    return vms, draw(st.sets(st.sampled_from(vms)))


@given(_cases())
def test_nobody_good_is_blamed_or_bad_cleared(case: tuple[tuple[str, ...], set[str]]) -> None:
    vms, bad = case
    for most in range(1, diagnosis.most_rounds(len(vms)) + 1):
        tried, _ = _search(vms, bad, most)
        found = diagnosis.find(tried)
        assert set(found.faulty) <= bad
        assert not set(found.good) & bad
        assert bad <= {*found.faulty, *found.suspects}
        assert found.together == ()
    tried, _ = _search(vms, bad, 1000)
    found = diagnosis.find(tried)
    if len(set(vms) - bad) >= 2:
        assert (set(found.faulty), found.suspects) == (bad, ())
    elif bad:
        assert (found.faulty, set(found.suspects)) == ((), set(vms))


@given(_cases())
def test_each_round_tries_something_new(case: tuple[tuple[str, ...], set[str]]) -> None:
    vms, bad = case
    tried = _try([vms], bad)
    while groups := diagnosis.next_round(tried):
        members = [vm for group in groups for vm in group]
        assert len(members) == len(set(members))
        assert all(len(group) >= 2 for group in groups)
        before = {frozenset(one.members) for one in tried}
        assert not before & {frozenset(group) for group in groups}
        tried += _try(groups, bad)
    pairs = [(vms[a], vms[b]) for one in diagnosis.pairs(len(vms)) for a, b in one]
    found = diagnosis.find(_try([vms, *pairs], bad))
    assert set(found.faulty) <= bad
    assert bad <= {*found.faulty, *found.suspects}


@given(st.integers(min_value=3, max_value=64), st.integers(min_value=0))
def test_one_bad_vm_is_found_within_the_rounds_that_are_said(count: int, number: int) -> None:
    vms = _names(count)
    bad = vms[number % count]
    tried, rounds = _search(vms, {bad}, diagnosis.most_rounds(count))
    assert diagnosis.find(tried).faulty == (bad,)
    assert rounds <= diagnosis.most_rounds(count)


def test_of_two_vms_that_fail_together_neither_is_blamed_nor_any_when_each_half_is_fine() -> None:
    tried, rounds = _search(("a", "b"), {"b"}, 10)
    assert rounds == 1
    found = diagnosis.find(tried)
    assert (found.faulty, found.suspects) == ((), ("a", "b"))
    vms = _names(4)
    tried = [Tried(vms, passed=False), Tried(vms[:2], passed=True), Tried(vms[2:], passed=True)]
    assert diagnosis.next_round(tried) == []
    found = diagnosis.find(tried)
    assert (found.faulty, found.suspects, found.together) == ((), (), (vms,))
    assert diagnosis.pairs(2) == []


@cases("""
count | bad      | rounds
# All, halves, then each of the bad pair with a good one.
4     | [vm-001] | [[4], [2, 2], [2, 2]]
# Odd: who is left over waits for a companion, or is known by the others' success.
3     | [vm-002] | [[3], [2]]
3     | [vm-000] | [[3], [2], [2], [2]]
4     | []       | [[4]]
""")
def test_the_rounds_of_small_groups(count: int, bad: list[str], rounds: list[list[int]]) -> None:
    tried = _try([_names(count)], bad)
    sizes = [[count]]
    while groups := diagnosis.next_round(tried):
        sizes.append([len(group) for group in groups])
        tried += _try(groups, bad)
    assert sizes == rounds


@given(st.integers(min_value=3, max_value=64), st.integers(min_value=0))
def test_pairs_find_one_bad_machine_in_rounds_known_before(count: int, number: int) -> None:
    vms = _names(count)
    rounds = diagnosis.pairs(count)
    assert len(rounds) == 2 + count % 2
    for one in rounds:
        members = [it for pair in one for it in pair]
        assert len(members) == len(set(members))
    tried = _try(
        [vms, *((vms[a], vms[b]) for one in rounds for a, b in one)], {vms[number % count]}
    )
    found = diagnosis.find(tried)
    assert (found.faulty, found.suspects) == ((vms[number % count],), ())
