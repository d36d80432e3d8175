"""Who may depend on whom, and who alone may do what; CONTRIBUTING has it in words."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "provision"
# The rehearsal is a world of its own; it uses the program, the program does not know it.
PROGRAM = sorted(
    path for path in PACKAGE.rglob("*.py") if "rehearsal" not in path.relative_to(PACKAGE).parts
)

# Upper ones may use lower ones, never the other way round.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["actions"],
    ["arrival", "copied_folder", "gke_arrival"],
    ["connection", "debug_folder", "removal", "rollout", "status"],
    ["bandwidth_check", "gke_status"],
    ["exclusion", "flex_start", "ownership", "preflight"],
    ["run"],
    ["cloud"],
    ["deployment"],
    ["control_plane", "gpu_check", "leftovers", "vms"],
    [
        "adoption",
        "clusters",
        "kubernetes",
        "pending",
        "resize_requests",
        "runs",
        "startup",
        "unfinished",
        "waits",
    ],
    ["terraform", "state", "auth", "plans", "logs", "console", "report"],
    ["capacity"],
    ["google_api"],
    ["rest"],
    [
        "credential_refusals",
        "locks",
        "login",
        "metadata_server",
        "patience",
        "permissions",
        "retries",
    ],
    ["documentation"],
    ["settings"],
    ["node_pools"],
    ["files", "gpu_networks"],
    [
        "__init__",
        "machines",
        "location",
        "places",
        "record",
        "stopping",
        "names",
        "errors",
        "clock",
        "masking",
        "libterraform_launcher",
        "filestores",
        "gke_versions",
        "stored_gzip",
    ],
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def _imports(path: Path) -> set[str]:
    """Every module that a file imports at run time, by its full name."""
    found = set()
    for node in _run_time(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _run_time(tree: ast.AST) -> list[ast.AST]:
    """All nodes but those under `if TYPE_CHECKING`, which never run."""
    nodes = [tree]
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        nodes += _run_time(child)
    return nodes


def _noun(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


@pytest.mark.parametrize("path", PROGRAM, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_depends_on_one_above_it(path: Path) -> None:
    own = LEVEL[_noun(path)]
    used = {name.split(".")[1] for name in _imports(path) if name.startswith("provision.")}
    above = {name for name in used if LEVEL.get(name, own) < own}
    assert above == set()


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        ("subprocess", {"terraform", "debug_folder", "login"}),
        ("google.auth", {"auth", "metadata_server", "rest", "state"}),
        ("google.cloud", {"state"}),
        ("requests", {"rest"}),
        ("python_terraform", {"terraform"}),
        ("rich", {"console"}),
        ("provision.rehearsal", {"cli"}),
    ],
)
def test_only_one_place_uses(library: str, allowed: set[str]) -> None:
    users = {
        _noun(path)
        for path in PROGRAM
        for name in _imports(path)
        if name == library or name.startswith(library + ".")
    }
    assert users == allowed


def test_only_the_console_prints_and_only_the_command_line_exits() -> None:
    found = set()
    for path in PROGRAM:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "sys.exit", "os._exit") or "stdout.write" in called:
                    found.add((_noun(path), called))
    assert found <= {
        ("console", "sys.stdout.write"),
        ("cli", "sys.exit"),
        # Programs of their own: Terraform's launcher and front end, and the generator of tables.
        ("libterraform_launcher", "sys.exit"),
        ("terraform", "sys.exit"),
        ("documentation", "sys.exit"),
    }
