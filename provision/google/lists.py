"""What Google has in a whole project, asked for once: for a look at one deployment, or at all.

A look at one asks for what carries its marker. A look at all asks for everything, and each
deployment finds its own in that: 100 would ask for 100 lists that differ in a filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.google import resources, service_accounts
from provision.google.api import GoogleApiError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from provision.google.api import GoogleApi, Service
    from provision.google.owner import Owner
    from provision.google.resources import Look
    from provision.google.service_accounts import Account

_FORBIDDEN: Final = 403


class Lists:
    """The lists of one look; `of_all`: whether it is a look at all deployments."""

    def __init__(self, api: GoogleApi, *, of_all: bool = False) -> None:
        self._api = api
        self.of_all = of_all
        # collection, project, and the ID of the deployment whose they are; "" for all of a project
        self._lists: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        self._instances: dict[str, list[dict[str, Any]]] = {}
        self._operations: dict[tuple[str, str], list[dict[str, Any]]] = {}

    def marked(self, look: Look, project: str, owner: Owner) -> list[dict[str, Any]]:
        """The resources of one type that carry the marker of a deployment."""
        if self.of_all:
            return [one for one in self._every(look, project) if look.is_of(one, owner)]
        key = look.collection, project, owner.id
        if key not in self._lists:
            self._lists[key] = self._api.marked(look, project, owner)
        return self._lists[key]

    def find(self, look: Look, project: str, path: str) -> dict[str, Any] | None:
        """A resource by its path; None if it does not exist."""
        if self.of_all:
            try:
                self._every(look, project)
            except GoogleApiError as error:
                if error.code != _FORBIDDEN:
                    raise
                self._lists[look.collection, project, ""] = []  # each is asked for
        here = [it for key, it in self._lists.items() if key[:2] == (look.collection, project)]
        known = {resources.path_in_document(one): one for found in here for one in found}
        # A list that may not be read is empty.
        is_known = path in known or (self.of_all and known)
        return known.get(path) if is_known else self._api.find(look.service, path)

    def account(self, email: str, project: str) -> Account:
        """The service account of an address; hidden where Google does not say, as in an outage."""

        def find(_: Service, path: str) -> dict[str, Any] | None:
            return self.find(resources.SERVICE_ACCOUNT.look, project, path)

        try:
            return service_accounts.look(find, email, project)
        except GoogleApiError as error:
            if not error.is_outage:
                raise
            return service_accounts.hidden(email, project)

    def instances(
        self, project: str, zone: str, base: str, fields: str
    ) -> Sequence[dict[str, Any]]:
        """The VMs of a zone whose names are a base name, "-" and what a group appends.

        `fields`: what of each is wanted; all who ask mean the same fields.
        """
        if not self.of_all:
            return self._api.named_instances(project, zone, base, fields)
        if project not in self._instances:
            self._instances[project] = self._api.all_instances(project, fields)
        here = f"projects/{project}/zones/{zone}/instances/{base}-"
        return [
            one
            for one in self._instances[project]
            if resources.path_in_document(one).startswith(here)
        ]

    def operations(self, project: str, zone: str, types: Collection[str]) -> list[dict[str, Any]]:
        """The operations of a zone of these types; all who ask mean the same types."""
        if (project, zone) not in self._operations:
            self._operations[project, zone] = self._api.operations_of(project, zone, types)
        return self._operations[project, zone]

    def _every(self, look: Look, project: str) -> list[dict[str, Any]]:
        key = look.collection, project, ""
        if key not in self._lists:
            self._lists[key] = self._api.listed(look, project)
        return self._lists[key]
