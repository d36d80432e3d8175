"""Reads a page as a browser would, as far as its structure goes."""

from html.parser import HTMLParser
from typing import Final

VOID: Final = frozenset({"meta", "link", "br", "img", "input", "hr"})
_SILENT: Final = frozenset({"style", "title", "desc"})
_SHOWN: Final = frozenset(
    {"h1", "h2", "caption", "th", "td", "p", "li", "dt", "dd", "summary", "text"}
)


class Reader(HTMLParser):
    """Every element of a page, whether they are nested as they should, and an outline of texts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == [], f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self._open[-1] if self._open else "", data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every element of a name."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def text(self) -> str:
        """All that can be read."""
        return "\n".join(text for tag, text in self.texts if tag != "style")


class Outline(HTMLParser):
    """What can be read, a line each: headings as they are, rows of tables with bars between."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._open: list[str] = []
        self._line = ""
        self._narrow = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self._open.append(tag)
        if tag == "small":
            self._line += " "
        if tag == "svg":
            kind = dict(attrs)["class"] or ""
            self._narrow = "narrow" in kind
            self.lines.append(f"[{kind}]")

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()
        if tag == "svg":
            self._narrow = False
        if tag in {"th", "td"}:
            self._line += " | "
        in_row = "tr" in self._open
        if tag == "tr" or (not in_row and tag in _SHOWN):
            self._end()

    def handle_data(self, data: str) -> None:
        hidden = self._narrow or not self._open or _SILENT.intersection(self._open)
        if data.strip() and not hidden:
            self._line += ("" if self._line.endswith((" ", "")) else " ") + data

    def _end(self) -> None:
        line = " ".join(self._line.split()).strip(" |")
        if line:
            self.lines.append(line)
        self._line = ""
