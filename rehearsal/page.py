"""What this Google Cloud knows and what it refuses: a page that is written from its own tables."""

import html
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from rehearsal.cloud import compute, container, discovery, faults, scenarios, server
from rehearsal.cloud.kubernetes import kinds
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.storage.json_api import json_api
from rehearsal.provider import mirror, resources

_BEHIND: Final = {"/container/v1/": container.routes, "/storage/v1/": json_api}
"""The tables of those APIs that look after clocks and agents before they answer."""

_NAME: Final = re.compile(r"\{\w+\}")

_HEAD: Final = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><title>A simulated Google Cloud</title>
<style>body{font:15px/1.5 system-ui;max-width:64em;margin:2em auto;padding:0 1em}
td,th{text-align:left;vertical-align:top;padding:.2em 1em .2em 0}code{font-size:90%}</style>
<h1>A simulated Google Cloud</h1>
<p>What is listed here is answered as Google answers it. Where Google's description of the API is
named, each request is checked against it, and the methods that Google alone has are answered 501.
What is refused for a reason of Google's is in docs/development/rules-of-the-simulated-cloud.md,
with the source of each rule.</p>
"""


class Served(NamedTuple):
    """What is served of an API."""

    prefix: str  # how its paths begin
    api: str  # the discovery document that requests are checked against ("compute.v1"); "" for none
    methods: tuple[str, ...]  # what is served: names of the document, or else methods and paths
    refused: tuple[str, ...]  # the names in the document that are answered 501


def apis() -> Iterator[Served]:
    """Each API that the cloud has."""
    for mount in server.MOUNTS:
        service = _BEHIND.get(mount.prefix) or server.served(mount.service)
        if isinstance(service, Routes):
            yield _served(mount.prefix, service.api, _named(service))
        elif mount.prefix == "/compute/v1/":
            yield _served(mount.prefix, "compute.v1", compute.METHODS)


def _served(prefix: str, api: str, methods: Iterable[str]) -> Served:
    found = set(methods)
    every = discovery.api(api).names() if api else set()
    return Served(prefix, api, tuple(sorted(found)), tuple(sorted(every - found)))


def _named(routes: Routes) -> Iterator[str]:
    """The methods of a table, by their names where a document has any."""
    for path in routes.paths:
        verb, _, place = _NAME.sub("x", path).partition(" ")
        yield discovery.api(routes.api).match(verb, place).method.id if routes.api else path


def written() -> str:
    """The page, HTML."""
    return "".join(
        [
            _HEAD,
            *(_api(it) for it in apis()),
            "<h2>Kubernetes, below /kubernetes/</h2>",
            _table(((version, _codes(names)) for version, names in kinds.BUILT_IN.items())),
            "<p>And the kinds of every CustomResourceDefinition that is applied.</p>",
            f"<h2>The stand-in for the google provider {mirror.VERSION}</h2>",
            _table(
                [
                    ("resources", _codes(resources.RESOURCES)),
                    ("data sources", _codes(resources.DATA_SOURCES)),
                ]
            ),
            "<h2>Scenarios</h2>",
            _words(scenarios.SCENARIOS),
            "<h2>Faults, by POST to /rehearsal/faults</h2>",
            _words({effect.value: words for effect, words in faults.EFFECTS.items()}),
        ]
    )


def _api(it: Served) -> str:
    total = len(it.methods) + len(it.refused)
    count = f"{len(it.methods)} of {total} methods of {it.api}" if it.api else "not checked"
    refused = f"<details><summary>Google's alone</summary>{_codes(it.refused)}</details>"
    head = f"<h2><code>{it.prefix}</code>: {count}</h2><p>{_codes(it.methods)}</p>"
    return head + (refused if it.refused else "")


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"<code>{html.escape(name)}</code>" for name in names)


def _words(rows: Mapping[str, str]) -> str:
    return _table((f"<code>{name}</code>", html.escape(words)) for name, words in rows.items())


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"<tr><th>{head}</th><td>{cell}</td></tr>" for head, cell in rows)
    return f"<table>{''.join(lines)}</table>"
