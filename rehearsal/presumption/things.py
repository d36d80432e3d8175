"""Things that are to be in the simulated cloud, and how they get there and go again."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from rehearsal.cloud.wire import Reply, Request

Answer = Callable[[Request], Reply]
"""Answers a request whose path is the whole one, with the service's prefix."""

MARK: Final = "presumed-by-the-rehearsal"
"""What the rehearsal has made carries this, so that it takes away nothing else."""


@dataclass(frozen=True)
class Ask:
    """A request, as it is put to the simulated cloud."""

    method: str  # GET, POST or DELETE
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)  # what is sent as JSON; {} for nothing


@dataclass(frozen=True)
class Grant:
    """A role of a project that a service account has."""

    project: str
    role: str
    email: str


@dataclass(frozen=True)
class Thing:
    """Something that an env.list names."""

    words: str  # what it is, as a part of a sentence
    look: str  # the path at which it is found
    make: Sequence[Ask]
    unmake: str  # the path at which it is deleted
    # makes of the document that is found the requests after which it is as wanted now
    mend: Callable[[Mapping[str, Any]], Sequence[Ask]] = field(default=lambda _: ())
    # whether nothing uses what is found
    is_free: Callable[[Mapping[str, Any]], bool] = field(default=lambda _: True)
    grants: Sequence[Grant] = ()  # the roles that it needs

    @property
    def anew(self) -> Sequence[Ask]:
        """The requests that recreate it."""
        return [Ask("DELETE", self.unmake), *self.make]


@dataclass(frozen=True)
class Presumed:
    """What became of the things that an env.list names."""

    there: tuple[str, ...] = ()  # what the rehearsal has made, now or before
    left_out: tuple[str, ...] = ()  # what is not there, as the scenario `missing` wants it
    # what is there all the same: something uses it, or the rehearsal has not made it
    kept: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What is to be said of it, in one line; "" for nothing."""
        if self.there:
            return (
                f"It presumes what your settings name: {', '.join(self.there)}"
                " (--rehearse=missing leaves that out)."
            )
        parts = []
        if self.left_out:
            parts.append(f"It leaves out what your settings name: {', '.join(self.left_out)}.")
        if self.kept:
            parts.append(f"Still there, as used or made by hand: {', '.join(self.kept)}.")
        return " ".join(parts)


def make(answer: Answer, things: Sequence[Thing], *, missing: bool) -> Presumed:
    """Make things that are not there yet, or take them away; refusals the program meets itself."""
    if missing:
        left = [(thing, _taken_away(answer, thing)) for thing in things]
        return Presumed(
            left_out=tuple(thing.words for thing, gone in left if gone),
            kept=tuple(thing.words for thing, gone in left if not gone),
        )
    return Presumed(there=tuple(thing.words for thing in things if _is_made(answer, thing)))


def _is_made(answer: Answer, thing: Thing) -> bool:
    """Make a thing unless it is there; whether there is one that the rehearsal has made."""
    document = _ask(answer, Ask("GET", thing.look))
    if document is not None:
        # It may be of a rehearsal with other settings.
        for one in thing.mend(document) if _is_ours(document) else ():
            _ask(answer, one)
        return _is_ours(document)
    for one in thing.make:
        _ask(answer, one)
    if _ask(answer, Ask("GET", thing.look)) is None:
        return False
    for grant in thing.grants:
        _grant(answer, grant)
    return True


def _taken_away(answer: Answer, thing: Thing) -> bool:
    """Delete a thing that the rehearsal has made; whether none is there."""
    document = _ask(answer, Ask("GET", thing.look))
    if document is not None and _is_ours(document) and thing.is_free(document):
        _ask(answer, Ask("DELETE", thing.unmake))
        document = _ask(answer, Ask("GET", thing.look))
    return document is None


def _is_ours(document: Mapping[str, Any]) -> bool:
    return MARK in json.dumps(document)


def _ask(answer: Answer, ask: Ask) -> dict[str, Any] | None:
    """What the cloud answers; None where it refuses."""
    request = Request(
        method=ask.method,
        path=ask.path,
        query=ask.query,
        headers={"authorization": "Bearer presumption"},
        body=json.dumps(ask.body).encode() if ask.body else b"",
    )
    reply = answer(request)
    if reply.status >= HTTPStatus.BAD_REQUEST:
        return None
    return reply.body if isinstance(reply.body, dict) else {}


def _grant(answer: Answer, grant: Grant) -> None:
    path = f"/crm/v1/projects/{grant.project}"
    policy = _ask(answer, Ask("POST", f"{path}:getIamPolicy")) or {}
    binding = {"role": grant.role, "members": [f"serviceAccount:{grant.email}"]}
    changed = {**policy, "bindings": [*policy.get("bindings", []), binding]}
    _ask(answer, Ask("POST", f"{path}:setIamPolicy", body={"policy": changed}))
