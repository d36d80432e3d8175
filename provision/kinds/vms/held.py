"""What VMs hold: the template, the placement policies and the account that they were made with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.deployment.deployment import Held
from provision.kinds.vms import out_of_date

if TYPE_CHECKING:
    from provision.kinds.vms.instances import Seen


def by(seen: Seen, *, older: bool) -> Held:
    """What the VMs of a group hold.

    A VM that is made again is made of its own template (compute v1, "About repairing VMs", read in
    2026-11), so a member holds that also while it does not exist. `older`: whether only those count
    that are not of the group's newest template.
    """
    templates = {
        one["instance"].rpartition("/")[2]: out_of_date.template_of(one) for one in seen.members
    }
    if older:
        newest = out_of_date.template_of(seen.group or {})
        templates = {name: path for name, path in templates.items() if path != newest}
    documents = [one for one in seen.documents if one["name"] in templates]
    policies = (url for one in documents for url in one.get("resourcePolicies") or ())
    return Held(
        paths=frozenset({*templates.values(), *map(out_of_date.path, policies)} - {""}),
        accounts=frozenset(email for one in documents for email in out_of_date.accounts(one)),
    )
