"""Some of the moments at which a run can be hit; `make chaos` draws any number of others."""

from pathlib import Path

import pytest

from tests.chaos import processes
from tests.chaos.cases import Case
from tests.chaos.chaos import Chaos

pytestmark = pytest.mark.skipif(
    not processes.PROC.is_dir(), reason="blows are aimed with the help of /proc; there is none here"
)

SLOW = pytest.mark.slow(sibling="::test_nothing_is_left_and_nothing_is_there_twice_after")


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Chaos:
    folder: Path = tmp_path_factory.mktemp("chaos")
    return Chaos(folder)


@pytest.mark.parametrize(
    "text",
    [
        "Create/default_network/kill-all@POST:deployment.json/0/then-Destroy",
        pytest.param(
            "Create/default_network/kill-tool@POST:serviceAccounts/0/then-Destroy", marks=SLOW
        ),
        pytest.param(
            "Create/default_network/kill-terraform@POST:instanceTemplates/0/then-Create", marks=SLOW
        ),
        pytest.param(
            "Create/default_network/kill-terraform@POST:default.tfstate/0/then-Destroy", marks=SLOW
        ),
        pytest.param(
            "Create/default_network/kill-plugin@POST:instanceGroupManagers/0/then-Destroy",
            marks=SLOW,
        ),
        "Create/new_network/SIGINT@POST:networks/0.005/then-Destroy",
        pytest.param("Create/existing/kill-all@POST:firewalls/0/then-Destroy", marks=SLOW),
        pytest.param("Destroy/existing/kill-all@DELETE:firewalls/0/then-Create", marks=SLOW),
        pytest.param(
            "Create/default_network/SIGTERM-twice@POST:default.tflock/0/then-Destroy", marks=SLOW
        ),
        pytest.param(
            "Destroy/default_network/kill-tool@POST:default.tflock/0/then-Destroy", marks=SLOW
        ),
        pytest.param(
            "Destroy/default_network/kill-all@DELETE:instanceGroupManagers/0.005/then-Destroy",
            marks=SLOW,
        ),
        pytest.param(
            "Destroy/default_network/kill-all@DELETE:roster.json/0/then-Destroy", marks=SLOW
        ),
        pytest.param(
            "Destroy/default_network/kill-terraform@DELETE:instanceTemplates/0/then-Create",
            marks=SLOW,
        ),
        pytest.param(
            "Move/default_network/kill-all@DELETE:instanceGroupManagers/0/then-Create/with-lost-record",
            marks=SLOW,
        ),
        pytest.param(
            "Create/new_network/kill-all@POST:instanceGroupManagers/0/then-Destroy/with-second-state",
            marks=SLOW,
        ),
        pytest.param(
            "GoOn/new_network/kill-all@DELETE:instanceGroupManagers/0.005/then-Create", marks=SLOW
        ),
        pytest.param("MoveFar/new_network/kill-stale@DELETE:subnetworks/0/then-Create", marks=SLOW),
        pytest.param(
            "Create/default_network/lost-answer@POST:instanceGroupManagers/0/then-Destroy",
            marks=SLOW,
        ),
        pytest.param("Create/new_network/outage@POST:instanceTemplates/0/then-Create", marks=SLOW),
        pytest.param(
            "Change/default_network/kill-all@POST:instanceTemplates/0/then-Create", marks=SLOW
        ),
        # While it waits for its machines: its lock and its note are gone, as all is done.
        pytest.param(
            "Change/default_network/kill-stale@168/0/then-Create/with-lost-record", marks=SLOW
        ),
        pytest.param(
            "Change/default_network/kill-tool@PATCH:instanceGroupManagers/0/then-Destroy",
            marks=SLOW,
        ),
        pytest.param(
            "Destroy/default_network/second-Create@DELETE:instanceTemplates/0/then-Create",
            marks=SLOW,
        ),
    ],
)
def test_nothing_is_left_and_nothing_is_there_twice_after(chaos: Chaos, text: str) -> None:
    verdict = chaos.carry_out(Case.parse(text))
    assert verdict.has_struck
    assert verdict.faults == []
