"""The way out of machines: what VMs set up, and by which names images are fetched."""

import pytest

from provision.intake import load
from provision.spec import outbound
from provision.spec.outbound import Outbound
from tests.unit.conftest import MANDATORY

PLACE = "us-docker.pkg.dev/p/mirror"
DIGEST = "sha256:" + 64 * "a"


def _way(**settings: str) -> Outbound:
    found = load(MANDATORY | settings).settings
    assert found is not None
    return Outbound.of(found)


@pytest.mark.parametrize(
    ("name", "mirrored"),
    [
        ("registry.k8s.io/kueue/kueue:v0.17.3", f"{PLACE}/kueue/kueue:v0.17.3"),
        (f"gcr.io/a/b:v1@{DIGEST}", f"{PLACE}/a/b:v1@{DIGEST}"),
        ("rayproject/ray:2.60.0", f"{PLACE}/rayproject/ray:2.60.0"),
        ("busybox:1.37", f"{PLACE}/library/busybox:1.37"),
        ("nvcr.io/nvidia/pytorch:25.01", "mirror:5000/nvidia/pytorch:25.01"),
        ("localhost/x", f"{PLACE}/x"),
        ("gke.gcr.io/pause:3.8", "gke.gcr.io/pause:3.8"),
    ],
)
def test_an_image_keeps_its_path_its_tag_and_its_digest(name: str, mirrored: str) -> None:
    assert outbound.image(name, [PLACE, "nvcr.io=mirror:5000"]) == mirrored


def test_a_registry_without_a_mirror_stays() -> None:
    assert outbound.image("gcr.io/a/b:1", ["nvcr.io=m"]) == "gcr.io/a/b:1"
    assert outbound.image("ray", ["docker.io=m/hub"]) == "m/hub/library/ray"


def test_all_images_of_an_object_are_the_mirrors_but_the_one_that_the_user_named() -> None:
    pod = {
        "initContainers": [{"image": "gcr.io/a:1", "args": ["gcr.io/a:1"]}],
        "containers": [{"image": "ghcr.io/mine:1"}, {"name": "image"}],
    }

    made = outbound.images([pod], [PLACE], but="ghcr.io/mine:1")

    assert made == [
        {
            "initContainers": [{"image": f"{PLACE}/a:1", "args": ["gcr.io/a:1"]}],
            "containers": [{"image": "ghcr.io/mine:1"}, {"name": "image"}],
        }
    ]
    assert outbound.images(pod, ()) is pod


def test_vms_are_told_nothing_where_they_go_out_as_all_do() -> None:
    assert _way().on_vms(None) is None
    assert _way(HTTPS_PROXY="http://localhost:3128").on_vms(None) is None
    assert _way(IMAGE_MIRROR=PLACE).on_vms(None) is None


def test_vms_never_ask_a_proxy_for_their_metadata() -> None:
    found = _way(HTTPS_PROXY="http://proxy:3128", NO_PROXY=".example.com").on_vms("PEM")

    assert found is not None
    assert found["proxy"] == "http://proxy:3128"
    assert found["certificates"] == "PEM"
    assert found["no_proxy"].split(",") == [".example.com", *outbound.ALWAYS_AROUND]
