"""Google's limits on the number of machines and on their run time, each in one place."""

from __future__ import annotations

from typing import Final

LONGEST_RUN: Final = 7 * 86400
"""The longest run duration of a machine, in seconds (MAX_RUN_DURATION), and the default with flex
start. Google's documentation of DWS: "up to seven days" (rules M3, F7, Q9)."""

SHORTEST_GROUP_RUN: Final = 600
"""The shortest run duration in a VM template or resize request, in seconds (rule M3)."""

MOST_REQUESTED: Final = 1000
"""The maximum number of VMs in one resize request (rule M9)."""

MOST_NODES: Final = 1000
"""The maximum number of nodes in one GKE node pool."""

MOST_CLUSTER_NODES: Final = 4096
"""The maximum number of nodes for the cluster's pod range: it is a /12, and a node needs a /24."""
