"""What Terraform takes for a template, and what it takes as it is written."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from provision.terraform import configuration
from tests.terraform.conftest import Terraform

TEXTS = ['${file("secret")}', "%{ if true }x%{ endif }", "$${a}", "a$$${b", "%%{c", "$", "${", "%{"]


@pytest.fixture
def root(terraform: Terraform, tmp_path: Path) -> Terraform:
    """An empty root."""
    (tmp_path / "secret").write_text("told")
    return replace(terraform, folder=tmp_path)


def _evaluated(root: Terraform, expression: str) -> object:
    done = subprocess.run(
        [*root.command, "console"],
        cwd=root.folder,
        env=root.environment,
        input=f"jsonencode({expression})\n",
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(json.loads(done.stdout))


def test_a_text_of_a_configuration_means_itself_once_it_is_literal(root: Terraform) -> None:
    document = {"locals": {"texts": TEXTS, "raw": TEXTS[0]}}
    escaped = configuration.literal({"locals": {"texts": TEXTS}})
    document["locals"]["texts"] = escaped["locals"]["texts"]
    (root.folder / "a.tf.json").write_text(json.dumps(document))

    assert _evaluated(root, "local.texts") == TEXTS
    assert _evaluated(root, "local.raw") == "told"


def test_a_value_of_a_variable_is_no_template(root: Terraform) -> None:
    (root.folder / "a.tf.json").write_text(
        json.dumps({"variable": {"texts": {"type": "list(string)"}}})
    )
    (root.folder / "a.auto.tfvars.json").write_text(json.dumps({"texts": TEXTS}))

    assert _evaluated(root, "var.texts") == TEXTS


def test_a_setting_of_a_backend_is_no_template(root: Terraform) -> None:
    backend = {"terraform": {"backend": {"local": {"path": '${file("secret")}.tfstate'}}}}
    (root.folder / "a.tf.json").write_text(json.dumps(backend))

    subprocess.run(
        [*root.command, "init", "-input=false"], cwd=root.folder, env=root.environment, check=True
    )

    kept = json.loads((root.folder / ".terraform/terraform.tfstate").read_text())
    assert kept["backend"]["config"]["path"] == '${file("secret")}.tfstate'
