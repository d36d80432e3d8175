"""Each Kubernetes object of published walk-throughs against ours, field by field."""

import pytest

from tests.terraform import kubernetes_page
from tests.terraform.kubernetes_reasons import WHY
from tests.terraform.kubernetes_seeds import SEEDS
from tests.terraform.object_fields import ByHand, compare, reason_of
from tests.terraform.seeds import PAGE


@pytest.mark.parametrize("name", SEEDS)
def test_each_difference_has_its_reason_and_the_reference_each_object(name: str) -> None:
    for alike in kubernetes_page.tables(name):
        for table in alike:
            for row in table.rows:
                if row.differs and not table.why:
                    reason_of(row, WHY)
    command = "pytest --update-goldens tests/terraform/test_seeds.py"
    assert kubernetes_page.part(name) in PAGE.read_text(encoding="utf-8"), f"renew it: {command}"


def test_no_reason_is_given_for_what_does_not_differ() -> None:
    used = {
        reason_of(row, WHY)
        for name in SEEDS
        for alike in kubernetes_page.tables(name)
        for table in alike
        for row in table.rows
        if row.differs and not table.why
    }
    assert set(WHY) - used == set()


def test_a_field_is_found_by_name_number_and_words_and_what_ours_adds_is_told() -> None:
    ours = {
        "apiVersion": "v1",
        "metadata": {"name": "n", "labels": {"a.b/c": "x"}},
        "spec": {
            "containers": [{"name": "c", "command": ["sh", "-c", "run it"], "image": "i"}],
            "more": {"deep": 1},
        },
    }
    fields = {
        "metadata.labels[a.b/c]": "x",
        "spec.containers[c].command?run it": True,
        "spec.containers[0].command[7]": None,
        "spec.absent.deeper": None,
        "spec.more": {"deep": 2},
    }
    thing = ByHand(title="Pod {name}", ours="Pod n", fields=fields, each=("p",))
    (table,) = compare(thing, {"Pod n": ours})
    assert table.title == "Pod p"
    assert [row.path for row in table.rows if row.differs] == ["spec.more"]
    assert table.added == ("spec.containers[c].image",)
    with pytest.raises(LookupError, match=r"Pod spec\.more"):
        reason_of(table.rows[-1], {("Job", "spec"): "another kind", ("", "spec.less"): "no"})
