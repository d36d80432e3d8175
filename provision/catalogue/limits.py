"""Google's limits on machines, their run time and their metadata, each in one place."""

from __future__ import annotations

from typing import Final

LONGEST_RUN: Final = 7 * 86400
"""The longest run duration of a machine, in seconds (MAX_RUN_DURATION), and the default with flex
start. Google's documentation of DWS: "up to seven days" (rules M3, F7, Q9)."""

SHORTEST_GROUP_RUN: Final = 600
"""The shortest run duration in a VM template or resize request, in seconds (rule M3), and so of
GKE's nodes of flex start and queues."""

SHORTEST_CALENDAR: Final = 86400
LONGEST_CALENDAR: Final = 90 * 86400
"""Seconds that calendar mode is bought for (Google's page on it, undated: 1 to 90 days)."""
CALENDAR_LEAD: Final = 87 * 3600
"""Seconds before which its capacity does not begin (the same page)."""
CALENDAR_AHEAD: Final = 60 * 86400
"""Seconds ahead for which Google tells what there is (the same page)."""

MOST_VMS: Final = 1000
"""The maximum number of VMs in one resize request (rule M9), and in a group of a zone, unless it
lists them by pages (Google's sample compute-zonal-instance-group-manager-paginated-tag,
undated)."""

MOST_NODES: Final = 1000
"""The maximum number of nodes in one GKE node pool."""

USUAL_PODS: Final = 110
"""The most pods of a GKE node, unless fewer are asked for (GKE, "Flexible Pod CIDR", undated)."""
LEAST_PODS: Final = 8
"""The fewest that can be asked for (the same page)."""

MOST_CLUSTER_NODES: Final = 4096
"""The maximum number of nodes for the usual range of pods: it is a /12, and a node needs a /24."""

SECRETS: Final = 20
"""Bindings of one role to one account that differ by their conditions alone, in one policy."""

JOB_NAME: Final = r"[a-z]([-a-z0-9]{0,21}[a-z0-9])?"
"""The name of jobs without the number that each gets: with up to four digits it has 28 characters,
which is what GKE's names of pods leave of it."""

SHORTEST_IDLE: Final = 600
LONGEST_IDLE: Final = 30 * 86400
"""Seconds of IDLE_TIMEOUT: a shorter one ends VMs between two commands of a person."""

CONTAINER_IMAGE: Final = (
    r"(?=.{1,512}$)(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:(?:\.|__?|-+|/)[a-z0-9]+)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
"""A container image, as container registries name them (distribution/reference)."""

METADATA_KEY: Final = 127
"""Characters of a metadata key. Google's documentation: "less than 128 bytes in length"."""

METADATA_BYTES: Final = 512 * 1024
"""Bytes that Google takes as the metadata of one VM, keys and values together; one value has at
most half of them. They are shared out below: what is left over is for the tool's own files."""

USERS_METADATA_BYTES: Final = 184 * 1024
"""Bytes of the values of METADATA, all together. `terraform/modules/gpu-mig` has the same."""

COMMAND_BYTES: Final = 128 * 1024
"""Bytes of STARTUP_COMMAND. `terraform/modules/startup` has the same."""

CERTIFICATES_BYTES: Final = 16 * 1024
"""Bytes of what CA_BUNDLE names."""
