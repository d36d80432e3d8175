from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.kinds.gke.kubernetes import status

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.objects import Object


def _request(*conditions: tuple[str, str, str, str]) -> Object:
    return {
        "metadata": {"name": "job-train-1a2b3-dws-prov-1"},
        "status": {
            "conditions": [
                {"type": kind, "status": holds, "reason": reason, "message": message}
                for kind, holds, reason, message in conditions
            ]
        },
    }


@pytest.mark.parametrize(
    ("conditions", "state", "advice"),
    [
        ((), "pending", ""),
        ((("Accepted", "True", "", ""),), "accepted", ""),
        (
            (("Accepted", "True", "", ""), ("Provisioned", "False", "NotProvisioned", "")),
            "waiting",
            "stays in Google's queue",
        ),
        (
            (("Provisioned", "False", "ResourcePoolExhausted", "Expected time is indefinite."),),
            "waiting",
            "try another zone, region or machine type",
        ),
        (
            (
                (
                    "Provisioned",
                    "False",
                    "QuotaExceeded",
                    "Quota 'NVIDIA_P4_GPUS' exceeded. Limit: 1.0 in region europe-west4.",
                ),
            ),
            "waiting",
            "request a higher quota NVIDIA_P4_GPUS of europe-west4, now 1,",
        ),
        (
            (
                (
                    "Provisioned",
                    "False",
                    "QuotaExceeded",
                    "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.",
                ),
            ),
            "waiting",
            "request a higher quota GPUS_ALL_REGIONS, now 0,",
        ),
        (
            (("Provisioned", "False", "QuotaExceeded", "No more of it."),),
            "waiting",
            "request a higher quota in the console",
        ),
        ((("Provisioned", "True", "Provisioned", ""),), "provisioned", "within 10 minutes"),
        (
            (("Provisioned", "True", "", ""), ("BookingExpired", "True", "", "")),
            "failed",
            "within 10 minutes",
        ),
        ((("Accepted", "True", "", ""), ("Failed", "True", "", "")), "failed", "another attempt"),
    ],
)
def test_q13_every_state_of_a_request_has_its_advice(
    conditions: tuple[tuple[str, str, str, str], ...], state: str, advice: str
) -> None:
    found = status.request(_request(*conditions))
    assert found.state == state
    assert advice in found.advice
    assert bool(advice) == bool(found.advice)


def _workload(active: bool, checks: list[Object], **conditions: bool) -> Object:  # noqa: FBT001 - as the API has it
    return {
        "metadata": {
            "name": "job-train-1a2b3",
            "ownerReferences": [{"kind": "Job", "name": "train"}],
        },
        "spec": {"active": active},
        "status": {
            "admissionChecks": checks,
            "conditions": [
                {"type": kind, "status": str(holds), "message": f"about {kind}"}
                for kind, holds in conditions.items()
            ],
        },
    }


def test_a_workload_is_named_after_the_job_that_people_know() -> None:
    assert status.workload(_workload(True, [])).name == "Job train"


@pytest.mark.parametrize(
    ("thing", "state", "message"),
    [
        (_workload(True, [], QuotaReserved=False), "pending", "about QuotaReserved"),
        (
            _workload(True, [{"message": "no machines"}], QuotaReserved=True),
            "waiting for nodes",
            "no machines",
        ),
        (_workload(True, [], QuotaReserved=True, Admitted=True), "running", "about Admitted"),
        (_workload(True, [], Admitted=True, Finished=True), "finished", "about Finished"),
        (_workload(False, [], Evicted=True), "given up", "about Evicted"),
    ],
)
def test_a_workload_says_where_it_is(thing: Object, state: str, message: str) -> None:
    found = status.workload(thing)
    assert (found.state, found.message) == (state, message)
    assert bool(found.advice) == (state == "given up")
