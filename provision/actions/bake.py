"""Bake: make an image of a machine that has done its start-up, so that others boot faster.

It is a Create of a cluster of one machine, which is sealed, of whose disk the image is made, and
which is destroyed whatever happened, as by `Run --create --destroy-after`.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from provision.actions.create import create
from provision.actions.destroy import after_all, destroy
from provision.catalogue import names
from provision.codes import Code
from provision.context import connect
from provision.errors import SettingsError
from provision.kinds import registry
from provision.lifecycle import ownership, phases
from provision.lifecycle.phases import Phase
from provision.screens import project as screen
from provision.settings.choices import KIND

if TYPE_CHECKING:
    from collections.abc import Collection

    from provision.context import Context
    from provision.deployment.kind import Images
    from provision.settings.model import Settings


def settings(of: Settings) -> tuple[dict[str, str], Collection[str]]:
    """The settings of the cluster of one machine, and those that mean nothing to it."""
    images = _images(of)
    prefix = names.for_image(of.name_prefix)
    return {**images.instead, "NAME_PREFIX": prefix}, images.without


def bake(context: Context) -> None:
    """Make the cluster of one machine, and an image of that; destroy the cluster."""
    images = _images(context.settings)
    name = context.job or f"{context.settings.name_prefix}-{dt.datetime.now(dt.UTC):%Y%m%d-%H%M%S}"
    images.require_name(name)
    cloud = connect(context)
    images.require_free(cloud, context.settings.project_id, name)
    if ownership.deployed(context, cloud) is not None:
        context.console.progress("What an earlier Bake has left is destroyed first")
        destroy(context)
    after_all(context, lambda: _make(context, images, name), str)
    context.console.show(screen.made(context.report.images or (), context.console.width))


def _make(context: Context, images: Images, name: str) -> None:
    create(context, copies=False)
    cloud = connect(context)
    record = ownership.existing(context, cloud, registry.ALL, "to make an image of")
    with phases.during(Phase.STANDING, cloud):
        context.report.images = [images.make(context, cloud, record, name)]


def _images(of: Settings) -> Images:
    kind: Any = registry.of(of)
    found: Images | None = kind.images
    if found is None:
        raise SettingsError(
            f"Bake makes no image for a {kind.called}",
            code=Code.WITHOUT_EFFECT,
            why="its machines boot images of Google's alone",
            fix=f"set {KIND} to none, ray or slurm, or leave Bake out",
            setting=KIND,
        )
    return found
