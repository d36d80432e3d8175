"""What a fork of the program has imported already: all that an action may need.

Whoever imports this ignores an ImportError; the fork then meets it again.
"""

import importlib
import pkgutil

import provision

_NOT_YET = ("provision.__main__", "provision.terraform.__main__")

for module in pkgutil.walk_packages(provision.__path__, "provision."):
    if module.name not in _NOT_YET:
        importlib.import_module(module.name)
for name in ("google.cloud.storage", "google.auth.transport.requests", "rich.traceback"):
    importlib.import_module(name)
