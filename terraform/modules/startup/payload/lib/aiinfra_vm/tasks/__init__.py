"""What a VM can be asked to do by the object task.json: a closed set, each a module here.

A kind is a module with `run(arguments) -> answer`, both objects of JSON.
"""

from __future__ import annotations

KINDS = {
    "bandwidth": "aiinfra_vm.tasks.bandwidth",
    "check": "aiinfra_vm.tasks.check",
}
"""Kind -> its module."""
