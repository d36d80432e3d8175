"""`terraform validate`: the sources and the READMEs' examples are valid, planted errors are not."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from provision import __version__
from tests.terraform.conftest import Terraform

SOURCES = Path(__file__).parents[2] / "terraform"
MODULES = sorted(folder.name for folder in (SOURCES / "modules").iterdir())
DIRECTORIES = ["mig", *(f"modules/{module}" for module in MODULES)]

# Where a README tells its readers to take a module from: a tag of the repository.
SOURCE = f"git::https://github.com/OWNER/REPOSITORY.git//terraform/modules/{{}}?ref=v{__version__}"

# What is planted into the module `network`: one error each, as Terraform passes over what depends
# on a block that fails.
PLANTED = [
    pytest.param("mtu = 8896", "mut = 8896", "Unsupported argument", id="misspelt_argument"),
    pytest.param("log_config {", "logs {", "Unsupported block type", id="misspelt_block"),
    pytest.param(
        "google_compute_router.new[0].region",
        "google_compute_router.net[0].region",
        "Reference to undeclared resource",
        id="misspelt_reference",
    ),
    pytest.param(
        "mtu = 8896", 'mtu = "jumbo"', "Incorrect attribute value type", id="value_of_another_type"
    ),
    pytest.param(
        'direction     = "INGRESS"', 'direction     = "INWARD"', "direction", id="unknown_word"
    ),
    pytest.param(
        "ip_cidr_range = var.ip_range",
        'gateway_address = "10.0.0.1"',
        "gateway_address",
        id="value_that_google_decides",
    ),
    pytest.param(
        "  router                             = google_compute_router.new[0].name\n",
        "",
        "Missing required argument",
        id="missing_argument",
    ),
]


def _validate(terraform: Terraform, directory: str) -> dict[str, Any]:
    terraform.init(directory)
    verdict: dict[str, Any] = json.loads(terraform.run(directory, "validate", "-json").stdout)
    return verdict


@pytest.mark.parametrize("directory", DIRECTORIES)
def test_a_directory_is_valid(terraform: Terraform, directory: str) -> None:
    verdict = _validate(terraform, directory)

    assert verdict["diagnostics"] == []
    assert verdict["valid"]


def test_the_examples_of_the_readmes_are_valid(terraform: Terraform) -> None:
    folder = terraform.folder / "readmes"
    folder.mkdir()
    shutil.copy(SOURCES / "mig/versions.tf", folder)
    for module in MODULES:
        readme = (SOURCES / "modules" / module / "README.md").read_text(encoding="utf-8")
        (example,) = re.findall(r"```hcl\n(.*?)```", readme, re.DOTALL)
        assert SOURCE.format(module) in example
        example = example.replace(SOURCE.format(module), f"../modules/{module}")
        (folder / f"{module}.tf").write_text(example, encoding="utf-8")

    assert _validate(terraform, folder.name)["diagnostics"] == []
    how = (SOURCES / "examples/README.md").read_text(encoding="utf-8")
    assert SOURCE.format("network") in how


def test_the_example_beside_a_cluster_reads_what_the_root_tells() -> None:
    beside = (SOURCES / "examples/beside/main.tf").read_text(encoding="utf-8")
    told = (SOURCES / "mig/outputs.tf").read_text(encoding="utf-8")
    read = re.findall(r"local\._vms\.([\w.]+)", beside)
    assert len(read) == 2
    for name in read:
        output, _, part = name.partition(".")
        assert re.search(rf'output "{output}" {{[^}}]*{part and rf"{part} +="}', told), name


@pytest.mark.parametrize(("right", "wrong", "complaint"), PLANTED)
def test_a_planted_error_is_refused(
    terraform: Terraform, request: pytest.FixtureRequest, right: str, wrong: str, complaint: str
) -> None:
    terraform.init("modules/network")
    planted = terraform.copy("modules/network", request.node.callspec.id)
    files = (terraform.folder / planted).glob("*.tf")
    (file,) = [file for file in files if right in file.read_text(encoding="utf-8")]
    file.write_text(file.read_text(encoding="utf-8").replace(right, wrong, 1), encoding="utf-8")

    verdict = _validate(terraform, planted)

    assert not verdict["valid"]
    said = [f"{found['summary']} {found['detail']}" for found in verdict["diagnostics"]]
    assert [text for text in said if complaint in text] != [], said
