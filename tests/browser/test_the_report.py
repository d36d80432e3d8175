"""The report's page in a real browser: what only one can tell."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from provision.screens.page import page
from tests import pages
from tests.browser import chromium
from tests.browser.chromium import Browser

_WIDE: Final = 1280
_NARROW: Final = 390
_OVER: Final = """
[...document.querySelectorAll("body *")].filter(it => {
  const box = it.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5);
}).map(it => `${it.tagName}: ${it.textContent.slice(0, 40)}`)
"""
"""What stands out of the page to the right or to the left."""

_PAPER: Final = 1040
"""The pixels of an A4 page that lies, without its margins."""

_THIN: Final = """
[...document.querySelectorAll("th, .facts dd")].filter(it => {
  const all = document.createRange();
  all.selectNodeContents(it);
  const lines = new Set([...all.getClientRects()].map(line => Math.round(line.top)));
  return lines.size > it.textContent.split(/[\\s-]+/).length + 1;
}).map(it => it.textContent)
"""
"""What has more lines than words."""

_CUT: Final = """
[...document.querySelectorAll("svg")].filter(it => it.getBoundingClientRect().width)
  .flatMap(svg => [...svg.querySelectorAll(".block")]).flatMap(block => {
    const box = block.querySelector(".box").getBoundingClientRect();
    return [...block.querySelectorAll("text, .tile")].filter(it => {
      const own = it.getBoundingClientRect();
      return own.right > box.right || own.bottom > box.bottom || own.left < box.left;
    }).map(it => it.textContent || "a machine");
  })
"""
"""What stands out of its box in the drawing."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser for all tests here; without one they fail."""
    try:
        with chromium.running(tmp_path_factory.mktemp("profile")) as found:
            yield found
    except chromium.NoChromiumError as error:
        pytest.fail(f"The report can't be looked at here: {error}", pytrace=False)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of a Create of every example: name -> file."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name in pages.NAMES:
        made[name] = folder / f"{name}.html"
        made[name].write_text(page(pages.contents(name, "Create")), encoding="utf-8")
    return made


@pytest.mark.parametrize("width", [_WIDE, _NARROW])
@pytest.mark.parametrize("name", pages.NAMES)
def test_it_fits_asks_nobody_and_is_whole(
    browser: Browser, files: dict[str, Path], name: str, width: int
) -> None:
    browser.show(files[name], width=width)
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.value(_OVER) == []
    assert browser.value(_CUT) == []
    shown = browser.value(
        "[...document.querySelectorAll('svg')].filter(it => it.getBoundingClientRect().width)"
        ".map(it => it.classList[1])"
    )
    assert shown == ["wide" if width == _WIDE else "narrow"]
    assert browser.requested == [files[name].as_uri()]
    assert browser.complaints == []


def test_tables_fit_a_narrow_page_when_they_are_unfolded(
    browser: Browser, files: dict[str, Path]
) -> None:
    for file in files.values():
        browser.show(file, width=_NARROW)
        browser.value("document.querySelectorAll('details').forEach(it => { it.open = true })")
        assert browser.value("document.documentElement.scrollWidth") <= _NARROW
        assert browser.value(_OVER) == []


def test_it_is_dark_for_whom_wants_it_dark(browser: Browser, files: dict[str, Path]) -> None:
    def brightness() -> dict[str, float]:
        found = browser.value(
            "Object.fromEntries(['backgroundColor', 'color'].map(it => [it,"
            " getComputedStyle(document.body)[it].match(/\\d+/g).slice(0, 3)"
            ".reduce((sum, part) => sum + Number(part), 0) / 765]))"
        )
        return dict(found)

    browser.show(files["env.list"], width=_WIDE)
    light = brightness()
    browser.show(files["env.list"], width=_WIDE, dark=True)
    dark = brightness()
    assert (light["backgroundColor"] > 0.9, light["color"] < 0.2) == (True, True)
    assert (dark["backgroundColor"] < 0.2, dark["color"] > 0.8) == (True, True)


@pytest.mark.parametrize("name", pages.NAMES)
def test_printed_it_takes_three_pages_and_cuts_no_word(
    name: str, browser: Browser, files: dict[str, Path]
) -> None:
    browser.show(files[name], width=_PAPER)
    assert browser.printed() == 3  # what it is, how it went and what it costs, and the rest

    browser.command("Emulation.setEmulatedMedia", media="print")
    try:
        assert not browser.value(_OVER)
        assert not browser.value(_THIN)
        # Browsers print no backgrounds by default, and a bar is nothing else.
        kept = "getComputedStyle(document.querySelector('.bar span')).printColorAdjust"
        assert browser.value(kept) == "exact"
    finally:
        browser.command("Emulation.setEmulatedMedia", media="")


def test_it_reads_the_same_without_javascript(browser: Browser, files: dict[str, Path]) -> None:
    read = []
    for scripts in (True, False):
        browser.show(files["gke-a3-mega.env.list"], width=_WIDE, scripts=scripts)
        read.append(browser.value("document.body.innerText"))
    assert read[0] == read[1]
    for words in ("What it consists of", "How it went", "What it costs", "How to connect"):
        assert words in read[1]


def test_the_checks_above_see_what_is_wrong(browser: Browser, tmp_path: Path) -> None:
    """A page that asks, stands out and is cut is found out."""
    text = page(pages.contents("env.list"))
    wide = '<div style="width:2000px">wide</div><img src="http://127.0.0.1:9/x.png">'
    file = tmp_path / "bad.html"
    file.write_text(
        text.replace("default-src 'none'", "default-src *")
        .replace("img-src data:", "img-src *")
        .replace("<main>", f"<main>{wide}")
        .replace('class="title"', 'class="title" style="font-size: 60px"'),
        encoding="utf-8",
    )
    browser.show(file, width=_WIDE)
    assert browser.value(_OVER) != []
    assert browser.value(_CUT) != []
    assert "http://127.0.0.1:9/x.png" in browser.requested
