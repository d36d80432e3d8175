"""google_project_iam_member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.resources import links
from rehearsal.provider.resources.iam_member import IamMember
from rehearsal.provider.resources.policies import Guarded, Policy

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State


def _of(project: str) -> Guarded:
    path = f"projects/{project}"

    def fetch(api: Api) -> Policy:
        options = {"options": {"requestedPolicyVersion": 3}}
        return api.client("cloudresourcemanager", "POST", f"{path}:getIamPolicy", options)

    def store(api: Api, policy: Policy) -> None:
        body = {"policy": policy, "updateMask": "bindings,etag,auditConfigs"}
        api.client("cloudresourcemanager", "POST", f"{path}:setIamPolicy", body)

    return Guarded(f'project "{project}"', f"iam-project-{project}", fetch, store, batched=True)


def _same_project(prior: Any, wanted: Any, _: State) -> bool:
    return bool(prior and wanted) and links.name(prior) == links.name(wanted)


RESOURCE = IamMember(parent="project", of=_of, canonical=links.name, same=_same_project)
