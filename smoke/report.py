"""What a smoke test leaves to be read: a page for people, and the same for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from smoke.differences import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from smoke.differences import Difference
    from smoke.walk import Walk


def write(folder: Path, walk: Walk, found: list[tuple[Difference, int]] | None, asked: int) -> Path:
    """Write report.md and report.json; returns the page.

    `found`: the differences, and how often each was met; None before they are looked for.
    """
    document = {
        "project": walk.place.project,
        "zone": walk.place.zone,
        "prefix": walk.place.prefix,
        "done": walk.done,
        "stopped": walk.stopped,
        "usd_at_most": round(walk.spent, 2),
        "prices_of": walk.prices.date,
        "steps": [
            {
                "name": it.step.name,
                "seconds": round(it.seconds, 1),
                "usd_at_most": round(it.usd, 2),
                "trouble": it.trouble,
                "capacity": it.capacity,
            }
            for it in walk.outcomes
        ],
        "left": walk.left,
        "not_listed": walk.unlisted,
        "requests": asked,
        "compared": found is not None,
        "differences": [{**asdict(it), "times": times} for it, times in found or []],
    }
    (folder / "report.json").write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    page = folder / "report.md"
    page.write_text("\n".join([*_walk(document), *_differences(found, asked)]), encoding="utf-8")
    return page


def _walk(document: dict[str, Any]) -> list[str]:
    verdict = "all done, nothing left" if document["done"] else "NOT all well"
    lines = [
        f"# Smoke test of {document['project']}, {document['zone']}: {verdict}",
        "",
        f"At most {document['usd_at_most']:.2f} USD by list prices of {document['prices_of']}.",
        "",
    ]
    if document["stopped"]:
        lines += [f"Stopped: {document['stopped']}", ""]
    lines += ["| step | seconds | USD at most | trouble |", "| --- | --- | --- | --- |"]
    for it in document["steps"]:
        trouble = it["trouble"] and ("no capacity: " if it["capacity"] else "") + it["trouble"]
        row = (it["name"], f"{it['seconds']:.0f}", f"{it['usd_at_most']:.2f}", trouble)
        lines.append(f"| {' | '.join(map(_cell, row))} |")
    for heading, key in (("Left in the project", "left"), ("Not listed", "not_listed")):
        if document[key]:
            lines += ["", f"## {heading}", "", *(f"* {line}" for line in document[key])]
    return lines


def _differences(found: list[tuple[Difference, int]] | None, asked: int) -> list[str]:
    if found is None:
        return ["", f"{asked} requests were recorded; the simulated cloud was not asked them.", ""]
    summary = (
        f"{asked} requests were recorded and asked of the simulated cloud again;"
        f" {len(found)} differences. Ids, times, etags and free text are not compared."
    )
    lines = ["", "## Google and the simulation", "", summary]
    for kind in Kind:
        rows = [(it, times) for it, times in found if it.kind == kind.value]
        if rows:
            lines += ["", f"### {kind.value[0].upper()}{kind.value[1:]}", ""]
            lines += ["| method | where | Google | simulation | times |", f"|{' --- |' * 5}"]
            for it, times in rows:
                cells = (it.method, it.field, it.google, it.simulation, str(times))
                lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return [*lines, ""]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
