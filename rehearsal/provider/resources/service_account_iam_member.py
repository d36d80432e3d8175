"""google_service_account_iam_member."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.provider.resources import links
from rehearsal.provider.resources.iam_member import IamMember
from rehearsal.provider.resources.policies import Guarded, Policy

if TYPE_CHECKING:
    from rehearsal.provider.api import Api


def _of(account: str) -> Guarded:
    def fetch(api: Api) -> Policy:
        query = {"options.requestedPolicyVersion": "3"}
        return api.client("iam", "POST", f"{account}:getIamPolicy", query=query)

    def store(api: Api, policy: Policy) -> None:
        api.client("iam", "POST", f"{account}:setIamPolicy", {"policy": policy})

    return Guarded(f"service account '{account}'", f"iam-service-account-{account}", fetch, store)


RESOURCE = IamMember(parent="service_account_id", of=_of, same=links.same_path)
