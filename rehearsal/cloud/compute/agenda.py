"""What happens although nobody asks: each entry has its moment, and what is due then.

Nothing runs between requests. The first request after an entry's moment lets it happen, as of that
moment, before it is answered itself.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from rehearsal.cloud.compute.resources import Call
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Request

_COLLECTION = "compute/agenda"


def note(call: Call, moment: float, what: str, **about: Any) -> None:
    """Let something happen in the call's place at a moment (Unix epoch)."""
    # Names sort as their moments do, rounded; the number keeps those of one moment in their order.
    name = f"{moment:020.6f} {call.store.count(_COLLECTION):09d}"
    entry = {
        "what": what,
        "moment": moment,
        "project": call.project,
        "zone": call.parameters["zone"],
        "pace": call.request.rate,
        "about": about,
    }
    call.store.put(_COLLECTION, name, entry)


def catch_up(
    request: Request,
    store: Store,
    happenings: Mapping[str, Callable[[Call, dict[str, Any]], None]],
) -> None:
    """Let happen what is due by the moment of a request; its consequences too."""
    while (entry := store.first(_COLLECTION)) is not None:
        name, body = entry
        moment = body["moment"]
        if moment > request.now:
            return
        store.delete(_COLLECTION, name)
        call = Call(
            request=replace(request, now=moment, rate=body["pace"]),
            store=store,
            method=body["what"],
            project=body["project"],
            parameters={"zone": body["zone"]},
            body={},
        )
        happenings[body["what"]](call, body["about"])
