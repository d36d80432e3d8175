"""What Google says of where it has machines: how it is asked, read, and put in order."""

from typing import Any, cast

import pytest

from provision.documents.plan import Candidate
from provision.google.api import GoogleApi, GoogleApiError
from provision.lifecycle import advice
from provision.spec.cluster import VmSpec
from tests.unit.conftest import vm_spec

SPOT = {"VM_TYPE": "a2-highgpu-1g", "ENABLE_SPOT": "yes", "INSTANCE_COUNT": "2"}
HERE = Candidate(zone="us-central1-a")


class _Google:
    """Answers each question with the same, and keeps what was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer, self.asked = answer, list[dict[str, Any]]()

    def call(self, _method: str, _service: object, path: str, _query: object, body: Any) -> Any:
        assert path == "projects/my-project/regions/us-central1/advice/capacity"
        self.asked.append(body)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def _advised(google: _Google, spec: VmSpec, candidate: Candidate = HERE) -> Candidate:
    (found,) = advice.added(cast("GoogleApi", google), [(spec, candidate)])
    return found


def test_one_zone_is_asked_about_with_the_machines_that_are_wanted() -> None:
    google = _Google({"recommendations": [{"scores": {"obtainability": 0.8}}]})
    n1 = {"VM_TYPE": "n1-standard-8", "ACCELERATOR_TYPE": "nvidia-tesla-t4", "GPU_COUNT": "2"}
    assert _advised(google, vm_spec(**SPOT | n1)).obtainability == 0.8
    (asked,) = google.asked
    assert asked["distributionPolicy"]["zones"] == [{"zone": "zones/us-central1-a"}]
    assert asked["size"] == 2
    assert asked["instanceProperties"] == {"scheduling": {"provisioningModel": "SPOT"}}
    (shape,) = asked["instanceFlexibilityPolicy"]["instanceSelections"].values()
    gpus = {"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 2}
    assert shape == {"machineTypes": ["n1-standard-8"], "guestAccelerators": [gpus]}


def test_nobody_asks_about_other_ways_or_a_zone_that_is_not_tried() -> None:
    google = _Google({})
    _advised(google, vm_spec(VM_TYPE="a2-highgpu-1g"))
    _advised(google, vm_spec(**SPOT), Candidate(zone="us-central1-a", against="no quota"))
    assert google.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        GoogleApiError(403, "Required 'compute.advice.capacity' permission", "https://x"),
        GoogleApiError(400, "No such machine type", "https://x"),
        {},
        {"recommendations": [{"scores": {"obtainability": "high"}}]},
        {"recommendations": [{"scores": {"obtainability": 7}}]},
    ],
    ids=["forbidden", "not_taken", "nothing", "a_text", "no_likelihood"],
)
def test_without_an_answer_all_is_as_it_was(answer: Any) -> None:
    assert _advised(_Google(answer), vm_spec(**SPOT)) == HERE


def test_what_is_likely_comes_before_what_is_not_known_and_that_before_what_is_unlikely() -> None:
    chances = (0.9, 0.7, 0.6, None, 0.4, 0.3)
    ranks = [advice.rank(Candidate(zone="z", obtainability=it)) for it in chances]
    assert ranks == [0, 0, 1, 1, 1, 2]
