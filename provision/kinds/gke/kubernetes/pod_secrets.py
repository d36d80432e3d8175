"""Secrets of Secret Manager as variables of a job: read in its pod, and kept in its memory alone.

An init container reads them as the pods' service account; no object and no Terraform state has a
value, and a secret's new version reaches the next pod. GKE's add-on for it would need a cluster
setting and kinds of its own, and gives files all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.kinds.gke.kubernetes.objects import Object

NAME: Final = "read-secrets"
IMAGE: Final = "gcr.io/google.com/cloudsdktool/google-cloud-cli:578.0.0-slim"

FOLDER: Final = "/run/aiinfra-secrets"
"""Where a job finds them, one file for each variable; in memory."""

_VOLUME: Final = "secrets"

EXPORT: Final = f'for file in {FOLDER}/*; do export "${{file##*/}}=$(cat "${{file}}")"; done'
"""What sets the variables, for bash; to be joined by && or a new line."""

# GKE's metadata server takes some seconds until it knows a new pod.
_SCRIPT: Final = """\
set -eu
read_secret() {{
  for _ in 1 2 3 4 5 6; do
    if gcloud secrets versions access "$4" --project="$2" --secret="$3" \\
      --out-file="{folder}/$1"; then
      return
    fi
    sleep 10
  done
  echo "could not read projects/$2/secrets/$3:$4 for $1: does it exist, and has {account}" \\
    "the role roles/secretmanager.secretAccessor on it?" >&2
  exit 1
}}
{calls}
"""


def container(facts: ClusterFacts) -> Object:
    """The init container that reads them."""
    calls = [f"read_secret {it.name} {it.project} {it.secret} {it.version}" for it in facts.secrets]
    script = _SCRIPT.format(folder=FOLDER, account=facts.workload_account, calls="\n".join(calls))
    return {
        "name": NAME,
        "image": IMAGE,
        "command": ["/bin/bash", "-c", script],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [mount()],
    }


def volume() -> Object:
    """The volume of a pod that has them."""
    return {"name": _VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}


def mount() -> Object:
    """The mount of that volume."""
    return {"name": _VOLUME, "mountPath": FOLDER}
