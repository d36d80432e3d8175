from pathlib import Path

import pytest

from rehearsal.cloud.store import Database, Store


def test_what_is_put_is_got(tmp_path: Path) -> None:
    with Database(tmp_path / "db").transaction() as store:
        store.put("c", "n", {"a": [1, None]})
        store.put_content("c", "n", b"\0")
        assert store.get("c", "n") == {"a": [1, None]}
        assert store.content("c", "n") == b"\0"
        store.delete("c", "n")
        assert store.get("c", "n") is None
        assert store.content("c", "n") is None


def test_a_collection_is_listed_by_prefix_in_order(tmp_path: Path) -> None:
    with Database(tmp_path / "db").transaction() as store:
        for name in ("a/2", "a/1", "a", "b/1", "a/é", "A/1"):
            store.put("c", name, {"name": name})
        store.put("d", "a/9", {})
        assert [name for name, _ in store.list("c", "a/")] == ["a/1", "a/2", "a/é"]
        assert len(list(store.list("c"))) == 6


def test_a_counter_counts_from_one(tmp_path: Path) -> None:
    with Database(tmp_path / "db").transaction() as store:
        assert [store.count("x"), store.count("x"), store.count("y")] == [1, 2, 1]


def test_a_transaction_that_fails_leaves_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "db")
    with pytest.raises(TypeError), database.transaction() as store:
        _put_then_fail(store)
    with database.transaction() as store:
        assert store.get("c", "n") is None


def _put_then_fail(store: Store) -> None:
    store.put("c", "n", {})
    store.put("c", "o", {"no": object()})


def test_a_second_opening_finds_what_the_first_has_kept(tmp_path: Path) -> None:
    first = Database(tmp_path / "db")
    with first.transaction() as store:
        store.put("c", "n", {"kept": True})
    second = Database(tmp_path / "db")
    with second.transaction() as store:
        assert store.get("c", "n") == {"kept": True}
    first.close()
    with second.transaction() as store:
        assert store.get("c", "n") == {"kept": True}
