#!/bin/bash
# Sets up a VM at each of its boots, one step after the other, and reports every step to the VM's
# guest attributes. The same text for every cluster: what differs is in the VM's metadata.
#
# Every step is a process of its own with a limit on its time, so that none hangs for ever and
# none takes the others down; every step may be repeated, as it is at each boot. GCE_METADATA_HOST
# names another metadata server, as it does for Google's own libraries.

set -o nounset -o pipefail
umask 022
# Google's guest agent starts scripts with hardly any environment. Ubuntu has gcloud as a snap.
export HOME=${HOME:-/root} PATH=$PATH:/snap/bin DEBIAN_FRONTEND=noninteractive CLOUDSDK_CORE_DISABLE_PROMPTS=1

readonly METADATA="http://${GCE_METADATA_HOST:-metadata.google.internal}/computeMetadata/v1"
readonly PROGRAMS=/opt/aiinfra KEPT=/var/lib/aiinfra LOGS=/var/log/aiinfra
readonly SAMPLES=/home/jupyter/aiinfra-sample
# A step's exit code for "there is nothing to do", with the reason as its last line.
readonly SKIPPED=77

# Name, limit in seconds, and whether a failure stops the steps after it. The user's command has
# no limit (0): it may be a training that takes days, and only its owner knows.
readonly STEPS=(
  "local-ssd 600 go-on"
  "mounts 900 stop"
  "files 1800 stop"
  "gpu 1200 stop"
  "ops-agent 600 go-on"
  "ray 1800 stop"
  "notebook 420 go-on"
  "command 0 stop"
)

log() { printf 'aiinfra: %s\n' "$*" >&2; }

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

skip() {
  printf '%s\n' "$*" >&2
  exit "$SKIPPED"
}

# retry TRIES COMMAND...: try until it succeeds, waiting 2, 4, 8, 16, then 30 seconds, and up to
# half as long again, so that a thousand VMs don't ask at the same moments. The command is one
# program, or a function that joins its own with &&: errexit is off inside it.
retry() {
  local left=$1 pause=2
  shift
  until "$@"; do
    left=$((left - 1))
    if ((left <= 0)); then return 1; fi
    sleep $((pause + RANDOM % (pause / 2 + 1)))
    pause=$((pause < 16 ? pause * 2 : 30))
  done
}

# attribute NAME: a value of the VM's metadata, byte for byte.
attribute() {
  curl --silent --show-error --fail --max-time 30 --retry 8 --retry-connrefused \
    --header 'Metadata-Flavor: Google' "$METADATA/instance/attributes/$1"
}

# vm PROGRAM ARGUMENTS...: one of the programs that came with the metadata (-S: they need no more).
vm() {
  local program=$1
  shift
  PYTHONPATH=$PROGRAMS/lib python3 -S -m "aiinfra_vm.$program" "$@"
}

# setting PATH: a value of the configuration, such as ray.version; nothing where it's null or false.
setting() { vm configuration "$1"; }

# os_release NAME: what the image says that it is.
os_release() { sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" /etc/os-release; }

report() { vm report "$@" || log "could not report: $1 ${2-}"; }

# fetch URL FILE: a download, whole or not at all.
fetch() {
  curl --silent --show-error --fail --location --proto '=https' --max-time 120 \
    --output "$2.part" "$1" && mv "$2.part" "$2"
}

# apt_install PACKAGE...: from the package lists as they are; if that fails, from newer ones.
# dpkg may be busy with the image's own first boot.
apt_install() {
  local apt=(timeout 300 apt-get --quiet --yes -o DPkg::Lock::Timeout=240)
  command -v apt-get >/dev/null || {
    echo "this image has no apt-get to install $* with: choose one that has them" >&2
    return 1
  }
  "${apt[@]}" install "$@" || { "${apt[@]}" update && "${apt[@]}" install "$@"; }
}

#------------------------------------------------------------------------------- all steps

# run_step NAME: each step is a file of the payload that defines `run`, and is sourced here.
run_step() {
  set -o errexit
  # shellcheck source=/dev/null
  source "$PROGRAMS/steps/$1.sh"
  run
}

# supervise NAME LIMIT: run a step as a process of its own, and report how it ended.
supervise() {
  local name=$1 limit=$2 code=0 output=$LOGS/$1.log
  log "$name"
  report begin "$name"
  timeout --kill-after=30 "$limit" bash "${BASH_SOURCE[0]}" step "$name" \
    >"$output" 2>&1 </dev/null 9>&- || code=$?
  case $code in
    0) report end "$name" "done" "$output" ;;
    "$SKIPPED") report end "$name" skipped "$output" && code=0 ;;
    124 | 137) echo "stopped: it took too long; its limit is $limit seconds" >>"$output" ;;
  esac
  if ((code != 0)); then report end "$name" failed "$output"; fi
  log "$name: exit code $code"
  return "$code"
}

# What all steps need: the configuration and the tool's own files.
unpack() {
  install --directory "$PROGRAMS" "$KEPT" && install --directory --mode=750 "$LOGS" &&
    attribute aiinfra-config >"$PROGRAMS/config.json" &&
    attribute aiinfra-payload >"$PROGRAMS/payload.json" &&
    python3 - "$PROGRAMS" <<'PYTHON'
import json
import pathlib
import sys

programs = pathlib.Path(sys.argv[1])
for name, text in json.loads((programs / "payload.json").read_text("utf-8")).items():
    file = programs / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, "utf-8")
PYTHON
}

# Nothing of the tool's own is there yet, so the document is this constant.
report_no_start() {
  curl --silent --max-time 30 --request PUT --header 'Metadata-Flavor: Google' --data \
    '{"state": "failed", "step": null, "boot": "", "at": "1970-01-01T00:00:00Z"}' \
    "$METADATA/instance/guest-attributes/aiinfra/startup"
}

main() {
  local step name limit after
  exec 9>/run/aiinfra-startup.lock
  flock --nonblock 9 || fail "another run of this script is not over yet"
  unpack || {
    report_no_start
    fail "configuration and programs could not be read from the metadata"
  }
  # What people change in their samples stays.
  if [[ ! -e $SAMPLES ]]; then
    mkdir -p "${SAMPLES%/*}" && cp -R "$PROGRAMS/samples" "$SAMPLES"
  fi
  for step in "${STEPS[@]}"; do
    read -r name limit after <<<"$step"
    if ! supervise "$name" "$limit" && [[ $after == stop ]]; then
      report over failed "$name"
      fail "start-up failed at $name"
    fi
  done
  report over "done"
}

if [[ ${1-} == step ]]; then run_step "$2"; else main; fi
