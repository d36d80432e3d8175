"""Makes the folder `schema/`, from what the google provider says of itself.

To raise the provider's version, on a network that reaches its registry:

1. `terraform providers schema -json > schema.json` in a root that requires the new version.
2. Renew the semantics file: per field what that output lacks (ForceNew, defaults, enums, conflicts
   ...), read from the provider's own schema in Go.
3. `python -m rehearsal.provider.trim schema.json semantics.json` and read the difference.
4. Read CustomizeDiff of each type again: `tests/rehearsal/provider/customize_diff.tsv`.

A message that a field gives to a nonsense value ("refuses") becomes the name of a check of
`validation.py`; one that is not known here stops the trimming, so that no rule is lost unseen.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from rehearsal.provider.resources import DATA_SOURCES, RESOURCES

Json = dict[str, Any]

ADDRESS: Final = "registry.terraform.io/hashicorp/google"
FOLDER: Final = Path(__file__).parent / "schema"

RULES: Final = (
    "force_new",
    "default",
    "enum",
    "conflicts_with",
    "exactly_one_of",
    "at_least_one_of",
    "required_with",
)
"""What is taken from the semantics as it stands."""

REFUSALS: Final = (
    (r"in the range \((-?\d+) - (-?\d+)\)", "range"),
    (r"to be at least \((-?\d+)\)", "at_least"),
    (r"doesn't match regexp \"(.*)\"$", "regexp"),
    (r"valid IP CIDR range", "cidr"),
    (r"contain a valid Value.*CIDR address", "cidr_or_empty"),
    (r"in the format HH:00", "full_hour"),
    (r"in the format HH:mm", "time_of_day"),
    (r"^parsing time", "timestamp"),
    (r"duration", "duration"),
    (r"RFC6996", "private_asn"),
    (r"major\.minor format", "major_minor"),
    (r"JSON credentials", "credentials"),
    (r"invalid JSON", "json"),
    (r"base64", "base64"),
    (r"JWT format", "jwt"),
    (r"service account email", "service_account_email"),
)
"""How a message to a nonsense value reads, and the check that gives it."""

GCE_NAME: Final = ["regexp", "^(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)$"]
UNSEEN: Final[dict[str, dict[str, list[Any]]]] = {
    "google_compute_firewall": {"name": GCE_NAME},
    "google_compute_instance_template": {
        "name": ["at_most_long", 63],
        "name_prefix": ["at_most_long", 54],
    },
    "google_compute_network": {"name": GCE_NAME},
    "google_compute_router": {"name": GCE_NAME},
    "google_compute_subnetwork": {"name": GCE_NAME},
    "google_container_cluster": {"name": ["cluster_name"]},
    "google_service_account": {
        "account_id": ["regexp", "^[a-z](?:[-a-z0-9]{4,28}[a-z0-9])$"],
    },
}
"""Checks that the nonsense value happened to pass, as provider 7.45.0 was seen to make them."""


def check_of(message: str) -> list[Any]:
    """The check behind a provider's message, and its arguments; ValueError if none speaks so."""
    for pattern, name in REFUSALS:
        if found := re.search(pattern, message, re.DOTALL):
            return [name, *(_argument(group) for group in found.groups())]
    raise ValueError(f"no check is known for the message: {message}")


def _argument(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?\d+", text) else text.replace("\\\\", "\\")


def trim_block(published: Json, semantics: Json, checks: dict[str, list[Any]]) -> Json:
    """One block: attributes and nested blocks in one table, by name."""
    fields: Json = {}
    for name, attribute in published.get("attributes", {}).items():
        meaning = semantics.get(name, {})
        fields[name] = {"type": attribute["type"], "flags": _flags(attribute)}
        fields[name] |= {key: True for key in ("sensitive", "deprecated") if attribute.get(key)}
        fields[name] |= _rules(meaning, checks.get(name))
        fields[name] |= {key: meaning[key] for key in ("min", "max") if key in meaning}
    for name, nested in published.get("block_types", {}).items():
        meaning = semantics.get(name, {})
        fields[name] = {"nesting": nested["nesting_mode"], "flags": meaning.get("flags", "o")}
        fields[name] |= {
            key: nested[f"{key}_items"] for key in ("min", "max") if f"{key}_items" in nested
        }
        fields[name] |= _rules(meaning, checks.get(name))
        fields[name]["block"] = trim_block(nested["block"], meaning.get("block", {}), {})
    return dict(sorted(fields.items()))


def _flags(attribute: Json) -> str:
    return "".join(key[0] for key in ("required", "optional", "computed") if attribute.get(key))


def _rules(meaning: Json, check: list[Any] | None) -> Json:
    rules = {key: meaning[key] for key in RULES if key in meaning}
    if any(value.startswith("https://") for value in rules.get("enum", ())):
        # The words of a refusal that points to a page, taken for an enumeration.
        del rules["enum"]
        check = ["iam_member"]
    if check is None and "refuses" in meaning:
        check = check_of(meaning["refuses"])
    return rules | ({"check": check} if check else {})


def write(path: Path, version: int, block: Json, timeouts: Json | None = None) -> None:
    """Write one type: one line per field of the first level, so that differences can be read."""
    head = f'"version":{version},'
    if timeouts:
        head += f'"timeouts":{json.dumps(timeouts, separators=(",", ":"))},'
    lines = ",\n".join(
        f"{json.dumps(name)}:{json.dumps(field, separators=(',', ':'))}"
        for name, field in block.items()
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{{head}"block":{{\n{lines}\n}}}}\n', encoding="utf-8")


def trim(published: Json, semantics: Json, folder: Path) -> None:
    """Write `folder`: provider.json, resources/<type>.json and data/<type>.json."""
    provider = published["provider"]
    write(folder / "provider.json", 0, trim_block(provider["block"], semantics["provider"], {}))
    kinds = (
        ("resources", "resource_schemas", RESOURCES),
        ("data", "data_source_schemas", DATA_SOURCES),
    )
    for kind, key, types in kinds:
        for name in types:
            schema = published[key][name]
            known = semantics[kind].get(name, {})
            fields = known.get("schema", {})
            checks = UNSEEN.get(name, {}) if kind == "resources" else {}
            block = trim_block(schema["block"], fields, checks)
            path = folder / kind / f"{name}.json"
            write(path, schema.get("version", 0), block, known.get("timeouts"))


def main(argv: list[str]) -> None:
    """Read the two files named on the command line and renew `schema/`."""
    parser = argparse.ArgumentParser(prog="trim", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("schema", type=Path, help="output of `terraform providers schema -json`")
    parser.add_argument("semantics", type=Path, help="what that output lacks, per field")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to write")
    arguments = parser.parse_args(argv)
    published = json.loads(arguments.schema.read_text(encoding="utf-8"))
    semantics = json.loads(arguments.semantics.read_text(encoding="utf-8"))
    trim(published["provider_schemas"][ADDRESS], semantics, arguments.folder)


if __name__ == "__main__":
    main(sys.argv[1:])
