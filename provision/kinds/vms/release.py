"""What Destroy cancels before it removes a group of VMs: its open resize requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.documents.timeline import OnInterrupt, StageName
from provision.google import resources
from provision.google.api import GoogleApiError
from provision.kinds.vms import bake
from provision.kinds.vms.resize_requests import ResizeRequest
from provision.lifecycle import ownership, phases
from provision.lifecycle.phases import Phase

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.google.api import GoogleApi
    from provision.state.record import Record

_LOOK: Final = resources.GROUP.look
_NOT_FOUND: Final = 404


def release(context: Context, cloud: Cloud, record: Record) -> None:
    """Cancel the open resize requests: the deletion of a group would wait for them (rule M8).

    An image that is being made of a disk is waited for.
    """
    with phases.during(Phase.REMOVING, cloud, "Could not look at the images of the VM"):
        bake.settle(context, cloud, record)
    with (
        phases.during(Phase.REMOVING, cloud, "Could not cancel the open resize requests"),
        context.progress.stage(StageName.RELEASE, OnInterrupt.LEAVES_REST),
    ):
        for group in sorted(_groups(cloud, record)):
            found = [ResizeRequest.of(document) for document in cloud.api.resize_requests(group)]
            for request in found:
                if request.is_open:
                    context.console.progress(f"Cancelling: {request.words}")
                    _cancel(cloud.api, group, request.name)


def _groups(cloud: Cloud, record: Record) -> set[str]:
    """The paths of the deployment's groups, those that a killed run has left, too."""
    owner = ownership.ours(record, cloud.folder.location)
    return set(map(resources.path_in_document, cloud.api.marked(_LOOK, record.project_id, owner)))


def _cancel(api: GoogleApi, group: str, name: str) -> None:
    """Cancel a request; it is no error if it has ended meanwhile (rule M15)."""
    try:
        api.cancel_resize_request(group, name)
    except GoogleApiError as error:
        if error.code != _NOT_FOUND and "final state" not in error.message:
            raise
