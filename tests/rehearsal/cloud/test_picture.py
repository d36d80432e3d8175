import xml.etree.ElementTree as ET

from rehearsal import picture

_SVG = "{http://www.w3.org/2000/svg}"


def _rows(svg: str) -> list[list[tuple[str | None, str | None]]]:
    texts = ET.fromstring(svg).findall(f"{_SVG}text")  # noqa: S314 - made by us
    return [[(part.get("class"), part.text) for part in row] for row in texts]


def test_colours_and_their_end_are_kept_and_other_codes_are_not() -> None:
    line = "\x1b[1mbold\x1b[0m plain \x1b[1;32mgreen\x1b[39m\x1b[K\x1b]0;title\x07 <&>"
    assert _rows(picture.svg([line], "t")) == [
        [("c1", "bold"), (None, " plain "), ("c1 c32", "green"), (None, " <&>")]
    ]


def test_a_line_that_is_too_long_goes_on_below_with_its_colour() -> None:
    rows = _rows(picture.svg(["\x1b[31m" + "x" * 25 + "\x1b[0my"], "t", columns=10))
    assert rows == [[("c31", "x" * 10)], [("c31", "x" * 10)], [("c31", "x" * 5), (None, "y")]]


def test_a_line_is_broken_at_a_blank_where_it_has_one() -> None:
    rows = _rows(
        picture.svg(["\x1b[31mone two\x1b[0m three-four --tunnel-through"], "t", columns=10)
    )
    assert ["".join(text or "" for _, text in row).rstrip() for row in rows] == [
        *("one two", "three-four", "--tunnel-t", "hrough")
    ]
    assert rows[0][0] == ("c31", "one two")


def test_it_has_a_title_a_size_and_nothing_from_elsewhere() -> None:
    svg = picture.svg(["a", "", "b"], "What it is")
    root = ET.fromstring(svg)  # noqa: S314 - made by us
    assert root.findtext(f"{_SVG}title") == "What it is"
    assert len(root.findall(f"{_SVG}text")) == 3
    assert float(root.get("width") or 0) > 700
    assert "href" not in svg
    assert svg.count("http") == 1, "the name of SVG itself"
