"""How often Google is asked: by the program, by Terraform, and by the provider that it starts.

The bounds are counts of whole runs in which everything is done at once: what is read again that was
known already, or asked of one machine where a list tells of all, goes over them. Some requests are
not the program's to leave out: Terraform reads its state twice in each command, and the provider
reads back whatever it makes. So a bound that is passed prints who asked for what how often.
"""

import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

from tests.running import ran
from tests.runs import state_file
from tests.runs.conftest import PROGRAM, Rehearsal, Rehearse

TWO = {"INSTANCE_COUNT": "2"}
GKE = {"ORCHESTRATOR_TYPE": "gke"}
_OURS = ("aiinfra-cluster/", "gcloud-python/")
_ONE_OF_MANY = re.compile(r"(?<=/instances/)np-vm-[^/]+|(?<=%2Fruns%2F)[^/]+")


# A process counts the memory of the one that it is a fork of, so this one is small.
_MEMORY = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def _who(request: dict[str, Any]) -> str:
    client = request["client"]
    if client.startswith(_OURS):
        return "program"
    return "Terraform" if client and "provider" not in client else "provider"


@dataclass(frozen=True)
class Asked:
    """The requests of one run."""

    requests: list[dict[str, Any]]

    @property
    def own(self) -> int:
        """How many the program itself has sent."""
        return sum(_who(it) == "program" for it in self.requests)

    def __str__(self) -> str:
        """A table: who asked for what, how often, the most frequent first."""
        rows = Counter(
            (_who(it), it["method"], _ONE_OF_MANY.sub("*", it["path"])) for it in self.requests
        )
        sums = Counter(map(_who, self.requests))
        head = f"{len(self.requests)} requests: " + ", ".join(f"{n} {it}" for it, n in sums.items())
        lines = (f"{count:6} {' '.join(row)}" for row, count in rows.most_common())
        return "\n".join([head, *lines])


def _asked(rehearsal: Rehearsal, action: str, *options: str, **settings: str) -> Asked:
    """Run an action to its end; what was asked for it."""
    before = len(rehearsal.requests())
    ended = rehearsal.run(action, *options, **settings)
    assert ended.code == 0, ended.said
    return Asked(rehearsal.requests()[before:])


def _require(found: Asked, most: int, own: int) -> None:
    """At most so many requests, so many of them the program's own."""
    assert len(found.requests) <= most, f"{most} at most\n{found}"
    assert found.own <= own, f"{own} of the program's own at most\n{found}"


def test_nothing_is_asked_twice_by_a_create_another_one_a_plan_and_a_status(
    rehearsal: Rehearsal,
) -> None:
    _require(_asked(rehearsal, "Create", **TWO), 100, 54)
    _require(_asked(rehearsal, "Create", **TWO), 78, 58)
    _require(_asked(rehearsal, "Plan", **TWO), 53, 33)
    _require(_asked(rehearsal, "Status"), 12, 12)


@pytest.mark.slow(
    sibling="::test_nothing_is_asked_twice_by_a_create_another_one_a_plan_and_a_status"
)
def test_a_status_of_500_vms_asks_as_often_as_one_of_two_and_takes_little_memory(
    rehearsal: Rehearsal,
) -> None:
    made = _asked(rehearsal, "Create", INSTANCE_COUNT="500")
    _require(made, 100, 54)
    status = [*PROGRAM, "--env-file", str(rehearsal.folder / "Create-np.list"), "Status"]
    told = ran([sys.executable, "-c", _MEMORY, *status], env=rehearsal.environ)
    assert told.returncode == 0, told.stderr
    found = Asked(rehearsal.requests()[len(made.requests) :])
    _require(found, 12, 12)
    assert float(told.stdout) / (2**20 if sys.platform == "darwin" else 2**10) < 120


@pytest.mark.slow(
    sibling="::test_nothing_is_asked_twice_by_a_create_another_one_a_plan_and_a_status"
)
def test_a_status_of_gke_asks_for_the_cluster_and_its_facts_once(standing: Rehearse) -> None:
    _require(_asked(standing(GKE), "Status"), 26, 26)


def _copied(rehearsal: Rehearsal, number: int) -> None:
    """Make deployments whose machines somebody has deleted: by what their folders have."""
    with state_file.client(rehearsal) as client:
        bucket = client.bucket("aiinfra-terraform-my-project")
        for name in ("deployment.json", "terraform/state/default.tfstate"):
            text = bucket.blob(f"np-deployment/{name}").download_as_text()
            for copy in range(number):
                changed = text.replace('"np"', f'"n{copy}"').replace("np-", f"n{copy}-")
                bucket.blob(f"n{copy}-deployment/{name}").upload_from_string(changed)


@pytest.mark.slow(
    sibling="tests/runs/test_the_life_of_a_cluster.py"
    "::test_status_without_a_name_lists_all_deployments_and_has_an_exit_code_for_gates"
)
def test_a_status_of_102_deployments_asks_for_two_objects_of_each(standing: Rehearse) -> None:
    rehearsal = standing({"INSTANCE_COUNT": "2"})
    _copied(rehearsal, 101)
    rehearsal.settings = {"PROJECT_ID": "my-project"}
    found = _asked(rehearsal, "Status")
    assert str(found).count("deployment.json") == 102
    _require(found, 216, 216)
