from pathlib import Path

import hcl2
import pytest

from provision.deployment import workspace
from provision.terraform import configuration

TREE = Path(__file__).parents[3] / "terraform"


def test_every_resource_of_every_module_is_declared_by_a_root() -> None:
    named = {".".join(it.split(".")[-2:]) for it in workspace.declares()}
    blocks = [
        block
        for file in TREE.rglob("*.tf")
        if not {".terraform", "examples"} & {*file.parts}
        for block in hcl2.loads(file.read_text(encoding="utf-8")).get("resource", [])
    ]
    made = {
        f"{type_}.{name}".replace('"', "")
        for block in blocks
        for type_, bodies in block.items()
        for name in bodies
    }
    assert len(made) > 20
    assert named == made


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a module in a module, and with what it once had."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "main.tf").write_text(
        'module "a" {\n  for_each = toset([])\n  source   = "../outer"\n}\n'
        'resource "google_x" "own" {\n}\n'
        "moved {\n  from = google_x.before\n  to   = google_x.own\n}\n"
        "removed {\n  from = module.gone\n\n  lifecycle {\n    destroy = false\n  }\n}\n"
    )
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "main.tf").write_text('module "b" {\n  source = "../inner"\n}\n')
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "main.tf").write_text('resource "google_y" "it" {\n}\n')
    return tmp_path / "root"


@pytest.mark.parametrize(
    "address",
    [
        *("google_x.own", "google_x.own[3]", "google_x.before"),
        'module.a["x].\\"y"].module.b.google_y.it["z.q"]',
        "module.gone.module.c.google_y.it",
    ],
)
def test_an_address_is_known_with_any_key_and_by_the_name_that_it_had(
    root: Path, address: str
) -> None:
    known = frozenset(configuration.addresses(root))
    assert configuration.has(known, address)
    others = ("google_x.other", "google_y.it", "module.a.google_y.it", "google_storage_bucket.x")
    for other in (*others, "module.a.module.b.google_z.it"):
        assert not configuration.has(known, other)
