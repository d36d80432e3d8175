#!/bin/bash
# Run one action of the image on a VM of its own, unattended, and end with the action's exit code.
#
#   submit.sh IMAGE ENV_LIST SERVICE_ACCOUNT ACTION [OPTION...]      > result.json
#
# PROJECT_ID and ZONE of the env.list say where. The VM acts as SERVICE_ACCOUNT: no key leaves it. It
# is deleted when the action has ended, however it ended.
set -euo pipefail

if (($# < 4)); then
  sed -n 's/^#   //p' "$0" >&2
  exit 2
fi
image=$1 env_list=$2 account=$3
shift 3

setting() { # NAME: its value in the env.list; the last one counts
  sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\"\{0,1\}\([^\"[:space:]]*\).*/\1/p" "$env_list" | tail -n 1
}

project=$(setting PROJECT_ID)
zone=$(setting ZONE)
prefix=$(setting NAME_PREFIX)
vm=aiinfra-job-$prefix-$(date +%s)
where=(--project="$project" --zone="$zone" --quiet)
here=$(dirname "$0")

job() { # NAME: what the VM has said of itself
  # Until the VM has said something, gcloud fails; that is an empty answer, and asked again.
  gcloud compute instances get-guest-attributes "$vm" "${where[@]}" \
    --query-path="aiinfra-job/$1" --format='value(value)' 2>/dev/null || true
}

gcloud compute instances create "$vm" "${where[@]}" --machine-type=e2-small \
  --image-family=cos-stable --image-project=cos-cloud \
  --service-account="$account" --scopes=cloud-platform \
  --metadata="^;^enable-guest-attributes=TRUE;aiinfra-image=$image;aiinfra-arguments=$*" \
  --metadata-from-file="startup-script=$here/run-on-vm.sh,aiinfra-env-list=$env_list" >&2
trap 'gcloud compute instances delete "$vm" "${where[@]}" >&2' EXIT

code=
while [[ -z $code ]]; do
  sleep "${POLL_SECONDS:-15}"
  code=$(job exit-code)
done
job result
exit "$code"
