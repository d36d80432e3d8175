"""google_compute_resize_request: VMs asked for once, never changed."""

from __future__ import annotations

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources import links
from rehearsal.provider.resources.rest import NOT_FOUND, Rest
from rehearsal.provider.resources.shapes import VIRTUAL, Rule, Scope, Shape

_OPEN = ("CREATING", "ACCEPTED")


class _ResizeRequest(Rest):
    """A resize request; one that has not ended is cancelled before it is deleted."""

    def remove(self, where: Scope) -> None:
        if where.state.get("state") in _OPEN:
            try:
                answer = self.ask(where.api, "POST", f"{self.path(where)}/cancel")
            except GoogleApiError as error:
                if error.code == NOT_FOUND:
                    return
                raise ProviderError(f"{self.no_delete(where)}: {error}") from error
            self.wait(where, answer, "delete", "Cancelling the resize request")
        super().remove(where)


RESOURCE = _ResizeRequest(
    collection=(
        "projects/{project}/zones/{zone}/instanceGroupManagers/{instance_group_manager}"
        "/resizeRequests"
    ),
    shape=Shape(
        "google_compute_resize_request",
        {
            "instance_group_manager": VIRTUAL,  # it is part of the path alone
            "zone": Rule(
                # As the provider's generated code has it, however odd.
                expand=lambda _, where: f"projects/{where.project}/global/zones/{where.zone}",
                flatten=lambda link, where: links.name(link or where.zone),
            ),
        },
    ),
    suppress={"zone": links.same_object, "instance_group_manager": links.same_object},
)
