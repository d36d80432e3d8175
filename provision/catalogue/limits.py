"""Google's limits on machines, their runs and their metadata, each in one place."""

from __future__ import annotations

from typing import Final

LONGEST_RUN: Final = 7 * 86400
"""Seconds that a machine with a run duration may run (MAX_RUN_DURATION), and that one of flex
start runs unasked. Google's documentation of DWS: "up to seven days" (rules M3, F7, Q9)."""

SHORTEST_GROUP_RUN: Final = 600
"""Seconds; the least run duration of a VM template and of a resize request (rule M3)."""

MOST_REQUESTED: Final = 1000
"""The most VMs that one resize request asks for (rule M9)."""

MOST_NODES: Final = 1000
"""The most nodes of one GKE node pool."""

MOST_CLUSTER_NODES: Final = 4096
"""The nodes that the cluster's range for pods has room for: a /12, of which each takes a /24."""

SECRETS: Final = 20
"""Bindings of one role to one account that differ by their conditions alone, in one policy."""

METADATA_KEY: Final = 127
"""Characters of a metadata key. Google's documentation: "less than 128 bytes in length"."""

METADATA_BYTES: Final = 512 * 1024
"""Bytes that Google takes as the metadata of one VM, keys and values together; one value has at
most half of them. They are shared out below: what is left over is for the tool's own files."""

USERS_METADATA_BYTES: Final = 256 * 1024
"""Bytes of the values of METADATA, all together. `terraform/modules/gpu-mig` has the same."""

COMMAND_BYTES: Final = 128 * 1024
"""Bytes of STARTUP_COMMAND. `terraform/modules/startup` has the same."""
