"""Makes the site whole: what pages point at outside docs/ comes along, the index is the navigation.

mkdocs calls the functions that begin with `on_` by their names.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
STYLE: Final = "style.css"
DOCS: Final = "docs/"
INDEX: Final = "docs/index.md"
OUTSIDE: Final = "repository/"
"""Where on the site the files outside docs/ are."""
LINK: Final = re.compile(r"\[(?P<words>[^\]]*)\]\((?!\w+:|#)(?P<path>[^)#\s]+)")
_NAME: Final = re.compile(r"<code>(?=[^<\s]{1,24}</code>)")
"""The code of a name that fits on every line, a telephone's too."""
_GROUP: Final = re.compile(r"\*\*(?P<name>[^*]+)\*\*: ")


def on_config(config: Any) -> Any:
    """The groups of links in the index are the sections of the navigation."""
    config.nav = [
        {"Start": "index.md"},
        *({name: list(items)} for name, items in _sections((ROOT / INDEX).read_text("utf-8"))),
    ]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each thing outside docs/ that a page points at, and what that points at."""
    files.append(File.generated(config, STYLE, content=(HERE / STYLE).read_text("utf-8")))
    left = [DOCS + page.src_uri for page in files.documentation_pages()]
    seen = set(left)
    for path in left:  # which grows
        for link in LINK.finditer("" if _is_shown(path) else _text(path)):
            target = _target(path, link["path"])
            if target not in seen and (ROOT / target).exists():  # of others mkdocs warns
                seen.add(target)
                left.append(target)
                if files.get_file_from_path(_uri(target)) is None:
                    files.append(File.generated(config, _uri(target), content=_text(target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let each link lead to where its target is on the site."""
    uri = page.file.src_uri
    path = uri.removeprefix(OUTSIDE) if uri.startswith(OUTSIDE) else DOCS + uri

    def led(link: re.Match[str]) -> str:
        target = _uri(_target(path, link["path"]))
        return f"[{link['words']}]({posixpath.relpath(target, posixpath.dirname(uri) or '.')}"

    return LINK.sub(led, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Let the style know names in sentences."""
    return _NAME.sub('<code class="whole">', html)


def _sections(index: str) -> Iterator[tuple[str, Iterator[Any]]]:
    """Each group of links, and its items: the pages by the words of their links."""
    for block in index.split("\n\n"):
        name = _GROUP.match(block)
        if name or block.startswith("|"):
            yield name["name"] if name else "How to", filter(None, map(_item, LINK.finditer(block)))


def _item(link: re.Match[str]) -> Any:
    words = " ".join(link["words"].split())
    words = words[:1].upper() + words[1:]
    target = _target(INDEX, link["path"])
    if target.endswith("/"):
        pages = sorted((ROOT / target).glob("*.md"))
        return {words: [_uri(target), *(_uri(target + page.name) for page in pages)]}
    uri = _uri(target)
    return {words: uri} if uri.endswith(".md") else None


def _target(path: str, link: str) -> str:
    """What a link on a page leads to, from the top of the repository.

    Of a folder that is its README; one without ends with a slash.
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    readme = f"{target}/README.md"
    if (ROOT / readme).exists():
        return readme
    return f"{target}/" if (ROOT / target).is_dir() else target


def _uri(path: str) -> str:
    """Where on the site a file or folder is: what is no page of docs/ becomes one."""
    where = path.removeprefix(DOCS) if path.startswith(DOCS) else OUTSIDE + path
    if path.endswith("/"):
        return where + "index.md"
    return where + ".md" if _is_shown(path) else where


def _is_shown(path: str) -> bool:
    """Whether it is a file whose text is shown as it is, on a page that it gets."""
    return not (path.startswith(DOCS) or path.endswith((".md", "/")))


def _text(path: str) -> str:
    """What the page of a file or folder says."""
    at = ROOT / path
    if at.is_dir():
        names = sorted(it.name for it in at.iterdir() if not it.name.startswith((".", "_")))
        pages = {it for it in names if it.endswith(".md") or (at / it / "README.md").exists()}
        entries = (f"[{it}]({it})" if it in pages else f"`{it}`" for it in names)
        return "\n* ".join([f"# {path}\n", *entries])
    text = at.read_text("utf-8")
    return f"# {path}\n\n`````text\n{text}\n`````\n" if _is_shown(path) else text
