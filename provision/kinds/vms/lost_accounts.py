"""VMs whose service account was deleted or disabled: they run, and may do nothing at Google.

Google shows of a VM the address of its account, and one that is made by the same address is another
(IAM, "Delete and undelete service accounts"). So VMs say in their roster whose tokens they get.
"""

from __future__ import annotations

import collections
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import accounts, names
from provision.codes import Code
from provision.errors import CheckError, ClusterError, Problem
from provision.google.api import GoogleApiError
from provision.google.resources import SERVICE_ACCOUNT
from provision.kinds.vms import agent, contents, instances
from provision.screens.layout import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provision.context import Cloud
    from provision.state.location import Place
    from provision.time.clock import Clock

_FORBIDDEN: Final = 403
_FEW: Final = 3
_EVERY: Final = 60.0
"""Seconds of cloud time between two looks while a job waits."""


@dataclass(frozen=True, kw_only=True)
class LostAccount:
    """An account that is not there any more, and the VMs that act as it."""

    vms: tuple[str, ...]  # their names
    what: str  # what has become of it, in a sentence
    back: str  # what brings it back
    others: str = ""  # what gives VMs another one; "" where that would be the same one

    @property
    def problem(self) -> Problem:
        """It as a problem."""
        more = f"\nor {self.others}, for VMs that act as another one" if self.others else ""
        why = "they get no token: no job, task, bucket or secret is within their reach"
        return Problem(code=Code.ACCOUNT_GONE, what=self.what, why=why, fix=self.back + more)


def find(
    cloud: Cloud, place: Place, documents: Iterable[Mapping[str, Any]]
) -> Sequence[LostAccount]:
    """The accounts of VMs that are gone, as far as these credentials may read them."""
    of_email: dict[str, list[Mapping[str, Any]]] = collections.defaultdict(list)
    for vm in documents:
        for account in vm.get("serviceAccounts") or ():
            of_email[account["email"]].append(vm)
    said = agent.accounts(cloud.folder) if of_email else {}
    return [one for email, vms in of_email.items() for one in _lost(cloud, place, email, vms, said)]


def require(cloud: Cloud, place: Place) -> None:
    """See that the accounts of all VMs are there.

    Raises:
        ClusterError: One is not.
    """
    lost = find(cloud, place, instances.documents(cloud.api, place))
    if lost:
        raise ClusterError.of([one.problem for one in lost])


class Watch:
    """Looks now and then whether VMs can hear of a job at all."""

    def __init__(self, cloud: Cloud, clock: Clock) -> None:
        self._cloud = cloud
        self._pause = clock.wall(_EVERY)
        self._next = 0.0
        self._words = ""

    def look(self) -> str:
        """Why VMs hear of nothing, with what fixes it; "" for no reason that is known here."""
        record = self._cloud.folder.record() if time.monotonic() >= self._next else None
        if record is not None:
            self._words = ""
            # Who may see jobs need not be allowed to see VMs.
            with contextlib.suppress(CheckError):
                lost = find(self._cloud, record, instances.documents(self._cloud.api, record))
                said = (f"{it.problem.what}; {it.problem.fix}" for it in lost)
                self._words = "; ".join(said).replace("\n", " ")
            self._next = time.monotonic() + self._pause
        return self._words


def _lost(
    cloud: Cloud,
    place: Place,
    email: str,
    vms: Sequence[Mapping[str, Any]],
    said: Mapping[str, str],
) -> Iterable[LostAccount]:
    """What is known of an account; `said`: what VMs have said of the numbers of theirs."""
    is_default = email == accounts.default(cloud.project_number)
    project = place.project_id if is_default else accounts.project_of(email)
    if not project:
        return
    path = SERVICE_ACCOUNT.path(project=project, email=email)
    try:
        found = cloud.api.find(SERVICE_ACCOUNT.look.service, path)
    except GoogleApiError as error:
        if error.code == _FORBIDDEN:
            return  # not known
        raise
    if found is not None and found.get("disabled"):
        yield _of(
            vms,
            f"as {email}, a service account that is disabled",
            f"gcloud iam service-accounts enable {email} --project {project}",
        )
        return
    of_number: dict[str, list[Mapping[str, Any]]] = collections.defaultdict(list)
    for vm in vms:
        number = said.get(str(vm.get("id")), "")
        if found is None or number not in {"", found.get("uniqueId")}:
            of_number[number].append(vm)
    is_flex = any(it.get("scheduling", {}).get("provisioningModel") == "FLEX_START" for it in vms)
    others = contents.replacing(flex_start=is_flex)
    if found is None and not email.startswith(f"{names.SERVICE_ACCOUNT.of(place.name_prefix)}@"):
        others = f"SERVICE_ACCOUNT=dedicated and {others}"
    another = "" if found is None else "; the one that has its address now is another"
    for number, them in of_number.items():
        yield _of(
            them,
            f"as {email}, a service account that was deleted{another}",
            accounts.undelete(email, project, number, over=found is not None),
            others,
        )


def _of(vms: Sequence[Mapping[str, Any]], how: str, back: str, others: str = "") -> LostAccount:
    named = tuple(sorted(vm["name"] for vm in vms))
    who = words.listed(named) if len(named) <= _FEW else counted(len(named), "VM")
    acts = "acts" if len(named) == 1 else "act"
    return LostAccount(vms=named, what=f"{who} {acts} {how}", back=back, others=others)
