"""Bake: an image of one's own, and nothing else that is left of it, whatever happens."""

import contextlib
import signal
import time
from typing import Any

import pytest

from rehearsal import session
from rehearsal.cloud.compute.resources import IMAGE
from rehearsal.cloud.store import Database
from tests.runs import rights
from tests.runs.conftest import Rehearsal, Rehearse

IMAGES = "compute/v1/projects/my-project/global/images"


def _images(rehearsal: Rehearsal) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rehearsal.google("GET", IMAGES).get("items", [])
    return found


def _left(rehearsal: Rehearsal) -> list[str]:
    """What the cloud holds beside images and the bucket, and what is in that beside logs."""
    resources = [it for it in rehearsal.resources() if not it.startswith("storage/")]
    live = {it for it in rehearsal.objects() if it.startswith("b/") and "/logs/" not in it}
    return [*(it for it in resources if "/images/" not in it), *live]


def _delay_images(rehearsal: Rehearsal, seconds: float) -> None:
    """Let Google still be at work on the images after so many seconds."""
    database = Database(rehearsal.folder / session.DATABASE)
    with contextlib.closing(database), database.transaction() as store:
        for name, image in list(store.list(IMAGE.stored)):
            store.put(IMAGE.stored, name, image | {"_ready": time.time() + seconds})


@pytest.mark.slow(sibling="::test_without_a_seal_there_is_no_image")
def test_an_image_is_made_and_used_and_listed_and_stays(rehearsal: Rehearsal) -> None:
    asked = {"STARTUP_COMMAND": "docker run hello", "INSTANCE_COUNT": "2", "PROTECT": "yes"}
    baked = rehearsal.run("Bake", behind=("mine",), **asked)
    assert baked.code == 0, baked.said
    (image,) = baked.document["images"]
    (google,) = _images(rehearsal)
    assert (image["name"], image["state"], google["status"]) == ("mine", "READY", "READY")
    assert google["labels"]["aiinfra-has"] == "docker"
    assert google["labels"]["aiinfra-from"].startswith("pytorch-")
    assert "IMAGE_PROJECT=my-project" in baked.said
    assert "IMAGE_NAME=mine" in baked.said
    assert baked.document["plan"]["change"] == "new"
    assert "Ready after" in baked.said
    assert not _left(rehearsal)
    role = rehearsal.run("Validate", "--role", **asked).document["role"]
    assert "compute.images.create" in role
    assert rights.of(rehearsal.requests()) - set(role) == set()

    again = rehearsal.run("Bake", behind=("mine",), **asked)
    assert (again.code, again.problem["code"]) == (4, "name-taken")
    use = {**asked, "IMAGE_PROJECT": "my-project", "IMAGE_NAME": "mine", "PROTECT": "no"}
    created = rehearsal.run("Create", **use)
    assert created.code == 0, created.said
    assert [it for it in created.document["notes"] if it["code"] == "image-unsuitable"] == []
    listed = rehearsal.run("Status", NAME_PREFIX="")
    assert [it["name"] for it in listed.document["images"]] == ["mine"]
    assert rehearsal.run("Destroy", **use).code == 0
    assert [it["name"] for it in _images(rehearsal)] == ["mine"]


_SLOW = pytest.mark.slow(sibling="::test_without_a_seal_there_is_no_image")


@_SLOW
@pytest.mark.parametrize("moment", ["/instanceGroupManagers", "/stopInstances", "/global/images"])
def test_after_a_kill_the_next_destroy_leaves_a_whole_image_or_none(
    rehearse: Rehearse, moment: str
) -> None:
    rehearsal = rehearse(rate=0.02)
    started = rehearsal.start("Bake", behind=("mine",))
    rehearsal.when_asked("POST", moment)
    rehearsal.kill(started)
    _delay_images(rehearsal, 15)
    # As after any kill while Terraform runs, it takes a word to release the lock.
    destroyed = rehearsal.run("Destroy", "--yes")
    assert destroyed.code == 0, destroyed.said
    assert not _left(rehearsal)
    made = [(it["name"], it["status"]) for it in _images(rehearsal)]
    assert made == ([("mine", "READY")] if moment == "/global/images" else [])


@_SLOW
def test_what_a_killed_bake_has_left_is_destroyed_by_the_next(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=0.002)
    started = rehearsal.start("Bake", behind=("mine",))
    rehearsal.when_asked("POST", "/stopInstances")
    rehearsal.kill(started)
    baked = rehearsal.run("Bake", behind=("other",))
    assert baked.code == 0, baked.said
    assert "an earlier Bake has left" in baked.said
    assert [it["name"] for it in _images(rehearsal)] == ["other"]
    assert not _left(rehearsal)


def test_ctrl_c_leaves_nothing(rehearse: Rehearse) -> None:
    rehearsal = rehearse(rate=0.02)
    started = rehearsal.start("Bake")
    deadline = time.monotonic() + 600
    while "image" not in rehearsal.said(started):
        assert time.monotonic() < deadline, rehearsal.said(started)
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    ended = rehearsal.finish(started)
    assert ended.code == 130, ended.said
    assert not _left(rehearsal)
    assert not _images(rehearsal)


def test_without_a_seal_there_is_no_image(rehearsal: Rehearsal) -> None:
    ended = rehearsal.run("Bake", JOB_OPTIONS="--image ghcr.io/a/missing:1")
    assert (ended.code, ended.problem["code"]) == (8, "image-not-made"), ended.said
    assert "can't be pulled" in ended.problem["why"]
    assert ended.problem["why"].endswith("the cluster is destroyed")
    assert not _left(rehearsal)
    assert not _images(rehearsal)


@pytest.mark.slow(sibling="::test_without_a_seal_there_is_no_image")
def test_without_machines_nothing_is_left(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="stockout")
    ended = rehearsal.run("Bake", CAPACITY_TIMEOUT="60s")
    assert ended.code == 7, ended.said
    assert not _left(rehearsal)
    assert not _images(rehearsal)


def test_gke_boots_no_image_of_ones_own(rehearsal: Rehearsal) -> None:
    refused = rehearsal.run("Bake", ORCHESTRATOR_TYPE="gke")
    assert (refused.code, refused.problem["setting"]) == (2, "ORCHESTRATOR_TYPE")
    wrong = rehearsal.run("Bake", behind=("Not_a_name",))
    assert (wrong.code, wrong.problem["code"]) == (2, "invalid-command-line")
    assert not rehearsal.writes()
