"""What `make docs` writes into the READMEs of `terraform/`: tables of inputs and outputs.

They are made of the .tf files, and are all of a README from its heading "Inputs" on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import hcl2

SOURCES: Final = Path(__file__).parents[1] / "terraform"
_HEADING: Final = "## Inputs\n"


def readmes() -> list[Path]:
    """The READMEs of roots and modules."""
    return sorted(
        file.with_name("README.md")
        for file in SOURCES.rglob("variables.tf")
        if ".terraform" not in file.parts
    )


def renewed(readme: Path) -> str:
    """The README with tables of what its folder declares now."""
    by_hand = readme.read_text(encoding="utf-8").split(_HEADING)[0].rstrip("\n")
    inputs = [
        [f"`{name}`", _code(body["type"]), _default(body), _cell(body["description"])]
        for name, body in _blocks(readme.with_name("variables.tf"), "variable")
    ]
    outputs = [
        [f"`{name}`", _cell(body["description"])]
        for name, body in _blocks(readme.with_name("outputs.tf"), "output")
    ]
    # What must be given comes first.
    inputs.sort(key=lambda row: row[2] != "")
    return "\n".join(
        [
            by_hand,
            "",
            _HEADING,
            *_table(["variable", "type", "default", "what it is"], inputs),
            "",
            "## Outputs",
            "",
            *_table(["output", "what it is"], outputs),
            "",
        ]
    )


def _blocks(file: Path, kind: str) -> list[tuple[str, dict[str, Any]]]:
    blocks: list[dict[str, Any]] = hcl2.loads(file.read_text(encoding="utf-8")).get(kind, [])
    return [(name.strip('"'), body) for block in blocks for name, body in block.items()]


def _default(body: dict[str, Any]) -> str:
    return f"`{_hcl(body['default'])}`" if "default" in body else ""


def _hcl(value: Any) -> str:
    """A value as it is written; the parser keeps the quotes of texts."""
    match value:
        case None | bool():
            return json.dumps(value)
        case list():
            return f"[{', '.join(map(_hcl, value))}]"
        case dict():
            inner = ", ".join(f"{key} = {_hcl(one)}" for key, one in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case _:
            return str(value)


def _code(declared: str) -> str:
    return f"`{declared.removeprefix('${').removesuffix('}').replace('|', chr(92) + '|')}`"


def _cell(description: str) -> str:
    text: str = json.loads(description)
    return text.replace("|", "\\|")


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    ruled = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(row)} |".replace("|  |", "| |") for row in ruled]


if __name__ == "__main__":
    for one in readmes():
        one.write_text(renewed(one), encoding="utf-8")
