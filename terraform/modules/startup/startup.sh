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

#---------------------------------------------------------------------------------- mounts

# Not pinned to a version: the repository keeps but the newest ones, signed by Google's key. The
# key is replaced every few years, so it's trusted as it comes by TLS.
install_gcsfuse() {
  local from=https://packages.cloud.google.com/apt key=/usr/share/keyrings/aiinfra-google.asc
  local codename
  command -v gcsfuse >/dev/null && return
  codename=$(os_release VERSION_CODENAME) &&
    fetch "$from/doc/apt-key.gpg" "$key" &&
    echo "deb [signed-by=$key] $from gcsfuse-$codename main" \
      >/etc/apt/sources.list.d/aiinfra-gcsfuse.list &&
    timeout 300 apt-get --quiet update &&
    apt_install gcsfuse
}

install_nfs() {
  command -v mount.nfs >/dev/null || apt_install nfs-common
}

mount_at() {
  mountpoint --quiet -- "$1" || timeout 60 mount -- "$1"
}

# systemd mounts what is in fstab at each boot; this looks whether it has, and does it if not.
step_mounts() {
  local types points point
  types=$(vm mounts types)
  [[ -n $types ]] || skip "no storage is mounted"
  if grep -qx gcsfuse <<<"$types"; then retry 4 install_gcsfuse; fi
  if grep -qx nfs <<<"$types"; then retry 4 install_nfs; fi
  vm mounts fstab /etc/fstab
  systemctl daemon-reload
  points=$(vm mounts points)
  while IFS= read -r point; do
    mkdir -p -- "$point"
    # A role that was just granted takes minutes to reach every server.
    retry 12 mount_at "$point" || fail "could not mount $point"
  done <<<"$points"
}

#----------------------------------------------------------------------------------- files

step_files() {
  local object sum destination archive marker=$KEPT/files.sha256
  object=$(setting files.object)
  [[ -n $object ]] || skip "no files were copied"
  sum=$(setting files.sha256)
  destination=$(setting files.destination)
  # Unpacked once: what was changed on the VM since then stays.
  if [[ -e $marker && $(<"$marker") == "$sum" ]]; then return; fi
  command -v gcloud >/dev/null || fail "this image has no gcloud to fetch the copied files with"
  archive=$KEPT/files.tar.gz
  retry 6 timeout 600 gcloud storage cp "gs://$(setting state.bucket)/$object" "$archive"
  echo "$sum  $archive" | sha256sum --check --status ||
    fail "gs://$(setting state.bucket)/$object is not what was copied: its checksum differs"
  mkdir -p -- "$destination"
  tar --extract --gzip --no-same-owner --same-permissions --file "$archive" \
    --directory "$destination"
  rm "$archive"
  echo "$sum" >"$marker"
}

#------------------------------------------------------------------------------------- gpu

# Whether the kernel has said that the driver refuses a GPU: the open module drives none before
# Turing (V100, P100, P4), and waiting does not change that.
refused_by_open_module() { dmesg 2>/dev/null | grep 'not supported by open nvidia.ko' >&2; }

driver_has_answered() { timeout 60 nvidia-smi -L || refused_by_open_module; }

# The Deep Learning VM images may install the driver at their first boot, which takes minutes.
step_gpu() {
  if [[ -n $(setting gpus.count) ]]; then
    retry 30 driver_has_answered ||
      fail "the NVIDIA driver does not answer: nvidia-smi -L fails, 15 minutes after the boot"
    timeout 60 nvidia-smi -L >/dev/null ||
      fail "this image has NVIDIA's open kernel module, which does not support this VM's GPUs:" \
        "choose an image with the proprietary driver"
  fi
  vm gpu_check
}

#------------------------------------------------------------------------------- ops-agent

# The major version is pinned. The installer itself has no versions; it comes by TLS, and the
# packages that it installs are signed.
install_ops_agent() {
  local installer=$KEPT/ops-agent.sh
  systemctl cat google-cloud-ops-agent.service >/dev/null 2>&1 && return
  fetch https://dl.google.com/cloudagents/add-google-cloud-ops-agent-repo.sh "$installer" &&
    timeout 300 bash "$installer" --also-install --version='2.*.*'
}

# DCGM, from which the agent has NVLink and pipe metrics, of the driver's CUDA version, from
# NVIDIA's repository, whose key is known by its fingerprint.
install_dcgm() {
  local id release cuda arch from key=/usr/share/keyrings/aiinfra-nvidia.asc
  local fingerprint=EB693B3035CD5710E231E123A4B469963BF863CC
  command -v nv-hostengine >/dev/null && return
  id=$(os_release ID)
  release=$(os_release VERSION_ID)
  cuda=$(timeout 60 nvidia-smi | sed -n 's/.*CUDA Version: *\([0-9]*\).*/\1/p')
  arch=$(uname -m)
  from=https://developer.download.nvidia.com/compute/cuda/repos/$id${release//./}/${arch/aarch64/sbsa}
  fetch "$from/3bf863cc.pub" "$key" &&
    gpg --batch --show-keys --with-colons "$key" | grep -q "^fpr:.*:$fingerprint:" &&
    echo "deb [signed-by=$key] $from/ /" >/etc/apt/sources.list.d/aiinfra-nvidia.list &&
    timeout 300 apt-get --quiet update &&
    apt_install --no-install-recommends "datacenter-gpu-manager-4-cuda$cuda" &&
    systemctl enable --now nvidia-dcgm.service
}

step_ops_agent() {
  local ours=$PROGRAMS/ops-agent/config.yaml theirs=/etc/google-cloud-ops-agent/config.yaml
  [[ -n $(setting ops_agent) ]] || skip "DISABLE_OPS_AGENT is set"
  retry 4 install_ops_agent || fail "the Ops Agent could not be installed"
  if ! cmp --quiet "$ours" "$theirs"; then
    install -D --mode=644 "$ours" "$theirs"
    timeout 120 systemctl restart google-cloud-ops-agent.service
  fi
  if [[ -n $(setting gpus.count) ]]; then
    retry 2 install_dcgm || fail "the Ops Agent runs, but without NVLink and pipe metrics:" \
      "NVIDIA's DCGM could not be installed"
  fi
}

#------------------------------------------------------------------------------------- ray

# The image's Python that has PyTorch, so that programs on Ray have it too; else the system's.
python_for_ray() {
  local candidate
  for candidate in /opt/conda/bin/python3 /opt/python/*/bin/python3 /usr/bin/python3; do
    if [[ -x $candidate ]] && timeout 120 "$candidate" -c 'import torch' >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  log "no Python of this image has PyTorch: programs on Ray have to bring it"
  command -v python3
}

make_venv() {
  "$1" -m venv --clear --system-site-packages "$PROGRAMS/ray" ||
    { apt_install python3-venv && "$1" -m venv --clear --system-site-packages "$PROGRAMS/ray"; }
}

# What Ray needs besides itself is pinned for the version that is the default, by
# ray-<version>.txt. Versions only: hashes for every platform would fill a VM's metadata.
install_ray() {
  local version=$1 pins=$PROGRAMS/ray-$1.txt
  local pip=("$PROGRAMS/ray/bin/python" -m pip install --quiet --no-input --only-binary=:all:)
  if [[ -e $pins ]]; then pip+=(--constraint "$pins"); fi
  make_venv "$(python_for_ray)" && timeout 600 "${pip[@]}" "ray[default]==$version"
}

step_ray() {
  local version marker=$KEPT/ray.version
  version=$(setting ray.version)
  [[ -n $version ]] || skip "ORCHESTRATOR_TYPE is not ray"
  if [[ ! -e $marker || $(<"$marker") != "$version" ]]; then
    retry 3 install_ray "$version" || fail "Ray $version could not be installed"
    echo "$version" >"$marker"
  fi
  install --mode=644 "$PROGRAMS/systemd/aiinfra-ray.service" /etc/systemd/system/
  systemctl daemon-reload
  systemctl enable aiinfra-ray.service
  # Returns when this VM is part of the Ray cluster, as its head or as a worker.
  timeout 900 systemctl start aiinfra-ray.service ||
    fail "this VM is not part of the Ray cluster: journalctl -u aiinfra-ray"
}

#-------------------------------------------------------------------------------- notebook

step_notebook() {
  [[ -n $(setting notebook) ]] || skip "ENABLE_NOTEBOOK is no"
  systemctl cat jupyter.service >/dev/null 2>&1 || skip "the image has no notebook"
  if id jupyter >/dev/null 2>&1; then chown -R jupyter: "$SAMPLES"; fi
  retry 10 systemctl is-active --quiet jupyter.service || fail "jupyter.service is not active"
}

#--------------------------------------------------------------------------------- command

# Once in the VM's life, at most: the marker is there before the command starts, as one that was
# cut off by a reboot, or reboots the VM itself, is not begun again.
step_command() {
  local script=$PROGRAMS/startup-command marker=$KEPT/command code=0
  [[ -n $(setting has_command) ]] || skip "STARTUP_COMMAND is not set"
  if [[ -e $marker ]]; then
    code=$(<"$marker")
    case $code in
      0) skip "it ran at an earlier boot" ;;
      '') skip "it was cut off at an earlier boot, and is not begun again" ;;
      *) fail "it ended with exit code $code at an earlier boot, and is not begun again" ;;
    esac
  fi
  # A file, not bash -c: a command may be longer than an argument.
  (umask 077 && attribute aiinfra-startup-command >"$script")
  if [[ -n $(setting secrets) ]]; then
    # Makes the marker itself: what could not read its secrets has not begun.
    (cd / && vm secrets "$marker" bash "$script") </dev/null || code=$?
    [[ -e $marker ]] || fail "STARTUP_COMMAND was not begun: it lacks its SECRETS"
  else
    : >"$marker"
    (cd / && bash "$script") </dev/null || code=$?
  fi
  echo "$code" >"$marker"
  ((code == 0)) || fail "STARTUP_COMMAND ended with exit code $code"
}

#------------------------------------------------------------------------------- all steps

run_step() {
  set -o errexit
  case $1 in
    mounts) step_mounts ;;
    files) step_files ;;
    gpu) step_gpu ;;
    ops-agent) step_ops_agent ;;
    ray) step_ray ;;
    notebook) step_notebook ;;
    command) step_command ;;
    *) fail "no such step: $1" ;;
  esac
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
