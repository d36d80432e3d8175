#!/bin/bash
# Run one action of the image on a VM of its own, unattended, and end with the action's exit code.
#
#   submit.sh IMAGE ENV_LIST SERVICE_ACCOUNT ACTION [OPTION...]      > result.json
#
# PROJECT_ID and ZONE of the env.list say where. The VM acts as SERVICE_ACCOUNT: no key leaves it. It
# is deleted when the action has ended, however it ended. What it says while it works goes to stderr;
# if the action fails, all that its VM has said is kept in LOGS (the folder one is in).
# After JOB_TIMEOUT seconds (4 hours) the VM is stopped and the exit code is 124.
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
vm=aiinfra-job-$prefix-$(date +%s)-$RANDOM
where=(--project="$project" --zone="$zone" --quiet)
here=$(dirname "$0")
log=${LOGS:-.}/$vm.log
hint=$(mktemp)

job() { # NAME: what the VM has said of itself
  # Until the VM has said something, gcloud fails; that is an empty answer, and asked again.
  gcloud compute instances get-guest-attributes "$vm" "${where[@]}" \
    --query-path="aiinfra-job/$1" --format='value(value)' 2>/dev/null || true
}

next=0
listen() { # add what the VM's serial port has said since the last time to the log, and show our part
  local new
  new=$(gcloud compute instances get-serial-port-output "$vm" "${where[@]}" --start="$next" \
    2>"$hint") || return 0
  next=$(sed -n 's/.*--start=\([0-9][0-9]*\).*/\1/p' "$hint" | tail -n 1)
  next=${next:-0}
  if [[ -n $new ]]; then
    printf '%s\n' "$new" >>"$log"
    # Before each line of a start-up script stands which program has logged it.
    sed -n 's/.*startup-script: //p' <<<"$new" >&2
  fi
}

# shellcheck disable=SC2329  # called by the trap
finish() {
  local code=$?
  gcloud compute instances delete "$vm" "${where[@]}" >&2 ||
    echo "The job's VM may be left, and billed: gcloud compute instances delete $vm ${where[*]}" >&2
  rm -f "$hint"
  if ((code == 0)); then
    rm -f "$log"
  elif [[ -s $log ]]; then
    echo "The log of the job's VM is kept: $log" >&2
  fi
  exit "$code"
}

trap finish EXIT
gcloud compute instances create "$vm" "${where[@]}" --machine-type=e2-small \
  --image-family=cos-stable --image-project=cos-cloud \
  --service-account="$account" --scopes=cloud-platform \
  --metadata="^;^enable-guest-attributes=TRUE;aiinfra-image=$image;aiinfra-arguments=$*" \
  --metadata-from-file="startup-script=$here/run-on-vm.sh,aiinfra-env-list=$env_list" >&2

code=
while [[ -z $code ]]; do
  if ((SECONDS >= ${JOB_TIMEOUT:-14400})); then
    echo "$1 has not ended after $SECONDS seconds: stopping its VM $vm" >&2
    # The shutdown reaches the program as SIGTERM: it ends in order, and the state stays whole.
    gcloud compute instances stop "$vm" "${where[@]}" >&2 || true  # it is deleted at the end
    listen
    exit 124
  fi
  sleep "${POLL_SECONDS:-15}"
  listen
  code=$(job exit-code)
done
listen
job result
exit "$code"
