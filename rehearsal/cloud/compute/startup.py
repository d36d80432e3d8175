"""What the VMs of a cluster tell of their start-up, played in the time of the cloud.

The real VMs run the tool's start-up script, which reads the metadata `aiinfra-config` and writes
one guest attribute again and again. Here nothing runs: what a VM will have told by any moment is
known when it is made. The steps are in `startup_steps`, what a VM finds out in `startup_checks`,
and what it has told by a moment in `startup_told`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rehearsal.cloud import policies
from rehearsal.cloud.compute import (
    images,
    properties,
    startup_checks,
    startup_steps,
    startup_told,
)

if TYPE_CHECKING:
    from rehearsal.cloud.compute.resources import Call, Resource
    from rehearsal.cloud.facts import images as image_facts

_CONFIG = "aiinfra-config"
_COMMAND = "aiinfra-startup-command"

_VICTIMS = "scenarios/startup-fails"

_BOOT_SECONDS = 20.0

_PROXY_SECONDS = 60.0
"""How long after its start-up a notebook gets its URL."""

# Google's roles with compute.instances.setMetadata that an account may have in a project.
_METADATA_ROLES = frozenset(
    {"roles/compute.admin", "roles/compute.instanceAdmin.v1", "roles/editor", "roles/owner"}
)

_ORDER_OF_FAILURE = ("command", "gpu")


def plan(  # noqa: PLR0913, PLR0917 - which VM, of what, and which of its boots
    call: Call,
    member: str,
    group: str,
    template: Resource,
    running: float,
    before: Resource | None = None,
) -> Resource:
    """What a VM will tell of a boot, to be kept with it; {} for one that is not of the tool's.

    `running`: when it runs (Unix epoch). `before`: what it has told of its last boot, with the
    number of that; None for a new VM.
    """
    wanted = template["properties"]
    text = properties.item(wanted["metadata"], _CONFIG)
    if text is None:
        return {}
    _, image = images.of_boot_disk(call, wanted)
    public = image.public if image else None
    content = startup_checks.prepared(public)
    config = {
        **json.loads(text),
        "_has_notebook": content is not None and content.jupyter,
        "_local_ssds": startup_checks.local_ssds(wanted),
    }
    skipped = {
        step.name: reason for step in startup_steps.STEPS if (reason := step.why_not(config))
    }
    failing = _failing_step(call, member, group, skipped)
    if failing == "gpu" and before:
        failing = None  # a GPU that fell off its bus is back after a boot
    unreadable = "" if "command" in skipped else startup_checks.unreadable(call, config, wanted)
    pace = call.request.rate
    begins = running + _BOOT_SECONDS * pace
    told: Resource = {"begins": begins, "pace": pace, "skipped": skipped, "failing": failing}
    if image and image.baked:
        told["baked"] = True
    if content != public and not before:
        told["installs"] = True
    told |= {
        "number": (before or {}).get("number", 0) + 1,
        "before": (before or {}).get("document"),
    }
    if failing == "command" and config.get("restart", "never") != "never":
        told["again"] = True
    told["fabric"] = (config.get("fabric") or {}).get("kind", "")
    told["ray"] = bool(config.get("ray"))
    told["idle"] = config.get("idle_seconds")
    told["went-on"] = startup_checks.went_on(call, config, wanted)
    told["shared"] = [config["state"]["bucket"], config["state"]["folder"]]
    command = properties.item(wanted["metadata"], _COMMAND) or ""
    missing = startup_checks.not_found(content, command)
    if (unreadable or missing) and failing != "gpu":
        told |= {"failing": "command", "failure": unreadable or missing}
        if missing and not unreadable and config.get("restart", "never") != "never":
            told |= {"again": True, "code": 127}
    told |= startup_checks.checks(content, config, wanted, told)
    if "notebook" not in skipped and _may_tell_url(call, content, wanted):
        told["proxy"] = begins + (startup_steps.length(skipped) + _PROXY_SECONDS) * pace
    return {"_startup": told}


def again(call: Call, member: str, vm: Resource, template: Resource, running: float) -> Resource:
    """What a VM will tell once it has booted again, and until then what it has told before."""
    number = (vm.get("_startup") or {}).get("number", 0)
    before = {"number": number, "document": startup_told.document(vm, call.now)}
    return plan(call, member, vm["_group"], template, running, before)


def _failing_step(call: Call, member: str, group: str, skipped: Resource) -> str | None:
    """The step in which `startup-fails` lets this VM fail: one VM of a group, always the same."""
    if "startup-fails" not in call.request.scenarios:
        return None
    victim = call.store.get(_VICTIMS, group)
    if victim is None:
        victim = {"vm": member}
        call.store.put(_VICTIMS, group, victim)
    if victim["vm"] != member:
        return None
    return next((name for name in _ORDER_OF_FAILURE if name not in skipped), None)


def _may_tell_url(call: Call, content: image_facts.PublicImage | None, wanted: Resource) -> bool:
    """Whether a VM gets an address from the proxy and can write it into its metadata.

    Its script runs the proxy's agent with docker, which of these images those with PyTorch alone
    are said to have, and then changes the VM's metadata as the VM's account.
    """
    has_docker = content is not None and content.family.startswith("pytorch-")
    if not properties.item(wanted["metadata"], "proxy-mode") or not has_docker:
        return False
    policy = policies.get(call.store, f"projects/{call.project}", {})
    accounts = {f"serviceAccount:{it['email']}" for it in wanted.get("serviceAccounts") or []}
    return any(
        binding["role"] in _METADATA_ROLES and accounts & set(binding["members"])
        for binding in policy.get("bindings", [])
    )
