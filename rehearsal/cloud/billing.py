"""Cloud Billing: every project has an account that pays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud import projects
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.wire import Reply

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request


def _billing_info(_request: Request, store: Store, project: str) -> Reply:
    found = projects.permitted(project, store)
    return Reply(
        body={
            "name": f"projects/{found.id}/billingInfo",
            "projectId": found.id,
            "billingAccountName": "billingAccounts/000000-AAAAAA-BBBBBB",
            "billingEnabled": True,
        }
    )


service = Routes({"GET projects/{project}/billingInfo": _billing_info}, api="cloudbilling.v1")
