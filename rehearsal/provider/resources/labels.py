"""Labels: what the configuration says, what the provider adds, what is there.

`labels` has those of the configuration, `terraform_labels` also the provider's default labels and
its mark, `effective_labels` all that the object carries, whoever put them there.
"""

from collections.abc import Mapping
from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN, State
from rehearsal.provider.values import is_known

MARK = "goog-terraform-provisioned"  # the label by which Google counts what Terraform made


def plan(api: Api, prior: State | None, planned: State) -> State:
    """The plan with `terraform_labels` and `effective_labels` worked out."""
    own = planned.get("labels")
    if not is_known(own):
        return {**planned, "terraform_labels": UNKNOWN, "effective_labels": UNKNOWN}
    before: dict[str, str] = (prior or {}).get("terraform_labels") or {}
    mine = {**api.default_labels, **_mark(api, prior), **(own or {})}
    there: dict[str, str] = (prior or {}).get("effective_labels") or {}
    kept = {key: value for key, value in there.items() if key not in before}
    return {**planned, "terraform_labels": mine, "effective_labels": {**kept, **mine}}


def _mark(api: Api, prior: State | None) -> dict[str, str]:
    """The provider's own label; an object made without it gets it only on demand."""
    marked = prior is None or MARK in (prior.get("terraform_labels") or {})
    wanted = api.attribution == "PROACTIVE" or (api.attribution and marked)
    return {MARK: "true"} if wanted else {}


def read(there: Mapping[str, Any] | None, state: State) -> State:
    """The three attributes for labels that Google answered.

    Of `labels` and `terraform_labels` only the keys that the state has are read: other people's
    labels are no drift.
    """
    effective = dict(there or {})

    def known(name: str) -> dict[str, Any]:
        keys = state.get(name)
        return {key: effective[key] for key in keys if key in effective} if keys else {}

    return {
        "labels": known("labels"),
        "terraform_labels": known("terraform_labels"),
        "effective_labels": effective,
    }
