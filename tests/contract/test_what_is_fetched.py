"""Whoever must open a firewall, or a proxy, finds each host that machines ask on one page."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/explanation/for-the-approver.md"
_SOURCES: Final = (
    *("terraform/modules/startup/payload/steps", "terraform/modules/startup/payload/lib"),
    *("provision/kinds/gke/kubernetes", "provision/kinds/vms", "provision/catalogue/fabrics.py"),
)
_URL: Final = re.compile(r"https?://([a-z0-9-]+(?:\.[a-z0-9-]+)+)")
_IMAGE: Final = re.compile(
    r"[\"' ]((?:[a-z0-9-]+\.)+(?:io|dev|com))/[a-z0-9._/-]+(?::[\w.-]+|@sha256)"
)
_REPOSITORY: Final = re.compile(r"(?:repository=|REGISTRY: Final = \")([a-z0-9.-]+)/")
_NONE: Final = re.compile(r"^(127\.|169\.254\.|console\.cloud|www\.googleapis\.com|secretmanager)")
"""This machine, what people open themselves, and Google's APIs, which the page has in words."""


def _hosts() -> Iterator[str]:
    for source in _SOURCES:
        place = ROOT / source
        files = [place] if place.is_file() else [it for it in place.rglob("*") if it.is_file()]
        for file in files:
            if file.suffix not in {".sh", ".py", ".yaml", ".tpl"}:
                continue
            text = file.read_text("utf-8")
            for pattern in (_URL, _IMAGE, _REPOSITORY):
                yield from pattern.findall(text)


def test_each_host_that_machines_ask_is_on_the_page_of_what_is_fetched() -> None:
    page = PAGE.read_text("utf-8")
    hosts = {host for host in _hosts() if not _NONE.match(host)}

    assert {"nvidia.github.io", "us-docker.pkg.dev", "nvcr.io"} <= hosts
    assert {host for host in hosts if f"`{host}" not in page} == set()
