from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from provision.kinds.gke.kubernetes import objects
from provision.kinds.gke.kubernetes.objects import name_of


@given(st.text(max_size=100))
def test_every_text_gives_a_name_that_kubernetes_takes(text: str) -> None:
    name = name_of(text)
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)


def test_paths_that_differ_in_what_a_name_can_not_hold_have_different_names() -> None:
    paths = ["/mnt/data", "/mnt-data", "/mnt/Data", "/mnt/data_", "/mnt/data.", "/mnt_data"]
    assert len({name_of(path) for path in paths}) == len(paths)
    assert name_of("/mnt/data") == "mnt-data"


def test_scripts_are_written_as_blocks_that_people_can_read() -> None:
    assert objects.to_yaml([{"script": "one\ntwo\n"}]) == "script: |\n  one\n  two\n"
