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
# A step's exit code for "there is nothing to do", with the reason as its last line.
readonly SKIPPED=77
# A step's exit code for "a unit goes on with it, and reports the rest".
readonly LEFT_RUNNING=79
# Lines of a failed step's output that go to the console, which serial port 1 shows.
readonly SHOWN=200
# What a command that is tried again returns when trying is of no use.
readonly HOPELESS=78
# The exit code of `report over` for "a moment ago something was told: ask again".
readonly NOT_YET=75
# What all steps before the command may take together, in seconds: one that begins late has less
# than its own limit. Create waits a little longer than that (AT_MOST of kinds/vms/startup.py).
readonly START_UP=2400

# Name, limit in seconds, and whether a failure stops the steps after it. The last one only starts
# the unit of the user's command, which may be a training that takes days.
readonly STEPS=(
  "way-out 330 stop"
  "local-ssd 600 go-on"
  "mounts 900 stop"
  "files 1800 stop"
  "gpu 1200 stop"
  "fabric 1500 stop"
  "ops-agent 600 go-on"
  "agent 420 go-on"
  "ray 1800 stop"
  "slurm 900 stop"
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

# uptime: whole seconds since the boot. A VM's clock may be set meanwhile, and more than once.
uptime() {
  local seconds
  read -r seconds _ </proc/uptime
  echo "${seconds%.*}"
}

# time_left: the seconds that this step may still take, less some to tell how it ended; at least 1.
time_left() {
  local left=$((STEP_ENDS - $(uptime) - 15))
  echo $((left > 1 ? left : 1))
}

# retry_for SECONDS COMMAND...: try until it succeeds or the time is up, that of the step included,
# or it is hopeless, waiting 2, 4, 8, 16, then 30 seconds, and up to half as long again, so that a
# thousand VMs don't ask at the same moments. The command is one program, or a function that joins
# its own with &&: errexit is off inside it.
retry_for() {
  local pause=2 seconds=$1 left nap code ends
  shift
  left=$(time_left)
  ends=$(($(uptime) + (seconds < left ? seconds : left)))
  while true; do
    code=0
    "$@" || code=$?
    left=$((ends - $(uptime)))
    if ((code == 0 || code == HOPELESS || left <= 0)); then return "$code"; fi
    nap=$((pause + RANDOM % (pause / 2 + 1)))
    sleep $((nap < left ? nap : left))
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

# mirrored URL: where that is for this VM, which may be below APT_MIRROR.
mirrored() { vm outbound mirrored "$1"; }

# setting PATH: a value of the configuration, such as ray.version; nothing where it's null or false.
setting() { vm configuration "$1"; }

# os_release NAME: what the image says that it is.
os_release() { sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}\$/\1/p" /etc/os-release; }

report() { vm report "$@" || log "could not report: $1 ${2-}"; }

# report_last over STATE [STEP], or flush: the last words of a start-up, for which Create waits. They
# come late rather than above Google's rate, where they may be dropped.
report_last() {
  local code
  for _ in {1..10}; do
    code=0
    vm report "$@" || code=$?
    if ((code != NOT_YET)); then break; fi
    sleep 3
  done
  ((code == 0)) || log "could not report: $*"
}

# fetch URL FILE: a download, whole or not at all.
fetch() {
  curl --silent --show-error --fail --location --proto '=https' --max-time 120 \
    --output "$2.part" "$1" && mv "$2.part" "$2"
}

# apt_get ARGUMENTS...: apt-get, once nobody else is at it, for as long as the step may. It waits for
# dpkg's lock itself; of those on the lists and the downloads it says "Could not get lock" at once.
# An image's first boot, its own updates and people may hold them.
apt_get() {
  local said=$PROGRAMS/apt.log left code
  command -v apt-get >/dev/null || {
    echo "this image has no apt-get, for: $*. Choose one of Ubuntu or Debian, or one that has it" >&2
    return 1
  }
  while true; do
    left=$(time_left) code=0
    LC_ALL=C timeout "$left" apt-get --quiet --yes -o DPkg::Lock::Timeout="$left" "$@" 2>&1 |
      tee "$said" >&2 || code=$?
    if ((code == 0)); then return 0; fi
    grep -Eq 'Could not get lock|Unable to (acquire|lock)' "$said" || return "$code"
    if (($(time_left) < 10)); then return "$code"; fi
    sleep 5
  done
}

# apt_install PACKAGE...: from the package lists as they are; if that fails, from newer ones.
apt_install() { apt_get install "$@" || { apt_get update && apt_get install "$@"; }; }

# apt_install_from NAME LINE PACKAGE...: install from a package source that is there for no longer:
# one that vanishes, or whose key does, would break apt on the VM for good.
apt_install_from() {
  local file=/etc/apt/sources.list.d/aiinfra-$1.list line=$2 code=0
  shift 2
  echo "$line" >"$file"
  if apt_get update -o "Dir::Etc::SourceList=$file" -o Dir::Etc::SourceParts=- \
    -o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any; then
    apt_install "$@" || code=$?
  else
    code=$?
    echo "this package source cannot be read, and was taken away again: $line" >&2
    # Of the suite of a new release, which may come months later, or not.
    if grep -q 'does not have a Release file' "$PROGRAMS/apt.log"; then code=$HOPELESS; fi
  fi
  rm -f "$file"
  return "$code"
}

# Also those of a step or a boot that was cut off, or of an older version of this script.
remove_sources() { rm -f /etc/apt/sources.list.d/aiinfra-*.list; }

# keep_running: no update of the image may stop what runs here. needrestart, which Ubuntu has, restarts
# services whose libraries were replaced, since 24.04 without asking (Canonical, "needrestart changes
# in Ubuntu 24.04: service restarts"): not ours, and not those that containers and GPUs live by. And
# apt's own timers do nothing while a command or a job runs, or ever, by OS_UPDATES.
keep_running() {
  local timer condition=false units=/sys/fs/cgroup/system.slice
  if [[ -n $(setting os_updates) ]]; then
    condition="! grep -qs \"populated 1\" $units/aiinfra-{command,job}.service/cgroup.events"
  fi
  for timer in "${UPDATES[@]}"; do
    install --directory "/etc/systemd/system/$timer.service.d"
    printf '%s\n' '[Service]' "ExecCondition=/bin/bash -c '$condition'" \
      >"/etc/systemd/system/$timer.service.d/aiinfra.conf"
  done
  systemctl daemon-reload
  install --directory /etc/needrestart/conf.d
  cat >/etc/needrestart/conf.d/aiinfra.conf <<'PERL'
# What runs on this VM is not restarted by updates. Written at each boot.
$nrconf{override_rc}{qr(^(aiinfra-|google-startup-scripts|docker|containerd|nvidia-|nv-))} = 0;
PERL
}

# Updates by the image's own timers wait until start-up is over. One that is under way goes on,
# and apt_get waits for it: ended halfway, it would leave packages half installed. What is stopped
# and masked here is so until the next boot at most, also if this script is killed.
readonly UPDATES=(apt-daily apt-daily-upgrade)
HELD_TIMERS=()
hold_updates() {
  local name
  for name in "${UPDATES[@]}"; do
    if systemctl is-active --quiet "$name.timer"; then
      HELD_TIMERS+=("$name.timer")
      systemctl stop "$name.timer"
    fi
  done
  systemctl mask --runtime "${UPDATES[@]/%/.service}"
}

release_updates() {
  systemctl unmask --runtime "${UPDATES[@]/%/.service}"
  if ((${#HELD_TIMERS[@]})); then systemctl start "${HELD_TIMERS[@]}"; fi
}

# make_user NAME NUMBER HOME: who a program of users runs as. Of the same number on every VM, as
# shares know users by number: one that neither useradd nor adduser gives to others for a long time.
# Expired, so that cron, at and systemd begin nothing in its name when its program is over; useradd
# leaves --expiredate out with --system (shadow 4.13, tried 2026-11-29).
make_user() {
  local make=(useradd --system --user-group --no-create-home --shell /usr/sbin/nologin
    --home-dir "$3")
  id "$1" >/dev/null 2>&1 && return
  "${make[@]}" --uid "$2" "$1" || "${make[@]}" "$1" || return
  chage --expiredate 1 "$1"
}

#------------------------------------------------------------------------------- all steps

# run_step NAME LIMIT: each step is a file of the payload that defines `run`, and is sourced here.
run_step() {
  set -o errexit
  # A proxy, and whose certificates count.
  if [[ -e $PROGRAMS/outbound.env ]]; then
    set -o allexport
    # shellcheck source=/dev/null
    source "$PROGRAMS/outbound.env"
    set +o allexport
  fi
  # Without a limit, it is what nobody waits for.
  STEP_ENDS=$(($(uptime) + ($2 ? $2 : 10 ** 9)))
  readonly STEP_ENDS
  # shellcheck source=/dev/null
  source "$PROGRAMS/steps/$1.sh"
  run
}

# supervise NAME LIMIT: run a step as a process of its own, and report how it ended.
supervise() {
  local name=$1 limit=$2 code=0 output=$LOGS/step-$1.log
  log "$name"
  report begin "$name"
  timeout --kill-after=30 "$limit" bash "${BASH_SOURCE[0]}" step "$name" "$limit" \
    >"$output" 2>&1 </dev/null 9>&- || code=$?
  case $code in
    0) report end "$name" "done" "$output" ;;
    "$SKIPPED") report end "$name" skipped "$output" && code=0 ;;
    143)
      # systemd ends this script too: the next boot reports, and this one is not its failure.
      if [[ $(systemctl is-system-running) == stopping ]]; then
        log "the VM goes down during $name"
        exit 0
      fi
      ;;
    124 | 137) echo "stopped: it took too long; its limit is $limit seconds" >>"$output" ;;
  esac
  remove_sources
  if ((code != 0 && code != LEFT_RUNNING)); then
    report end "$name" failed "$output"
    tail --lines="$SHOWN" "$output" | sed "s/^/aiinfra: $name: /" >&2
  fi
  log "$name: exit code $code"
  return "$code"
}

# What all steps need: the configuration and the tool's own files. Each is replaced whole or not at
# all, as services of an earlier boot read them at the same moment.
unpack() {
  install --directory "$PROGRAMS" "$KEPT" && install --directory --mode=750 "$LOGS" &&
    attribute aiinfra-config >"$PROGRAMS/config.json.new" &&
    attribute aiinfra-payload >"$PROGRAMS/payload" &&
    python3 - "$PROGRAMS" <<'PYTHON'
import base64
import gzip
import json
import pathlib
import sys

programs = pathlib.Path(sys.argv[1])
drafts = [programs / "config.json.new"]
packed = base64.b64decode((programs / "payload").read_bytes())
for name, text in json.loads(gzip.decompress(packed).decode()).items():
    draft = programs / f"{name}.new"
    draft.parent.mkdir(parents=True, exist_ok=True)
    draft.write_text(text, "utf-8")
    drafts.append(draft)
for draft in drafts:
    draft.replace(draft.with_suffix(""))
PYTHON
}

# Nothing of the tool's own is there yet, so the document has no more than this.
report_no_start() {
  curl --silent --max-time 30 --request PUT --header 'Metadata-Flavor: Google' --data \
    '{"state": "failed", "step": null, "at": "'"$(date --utc +%Y-%m-%dT%H:%M:%SZ)"'", "steps": {}}' \
    "$METADATA/instance/guest-attributes/aiinfra/startup"
}

main() {
  local step name limit after code left ends=$(($(uptime) + START_UP))
  exec 9>/run/aiinfra-startup.lock
  flock --nonblock 9 || fail "another run of this script is not over yet"
  unpack || {
    report_no_start
    fail "configuration and programs could not be read from the metadata"
  }
  remove_sources
  report boot
  # Tells what is new meanwhile: a step may begin a moment after another, and then take an hour.
  vm report relay 9>&- &
  RELAY=$!
  trap 'kill "$RELAY"; release_updates' EXIT
  hold_updates
  keep_running
  for step in "${STEPS[@]}"; do
    read -r name limit after <<<"$step"
    left=$((ends - $(uptime)))
    if ((limit && limit > left)); then limit=$((left > 1 ? left : 1)); fi
    code=0
    supervise "$name" "$limit" || code=$?
    if ((code == LEFT_RUNNING)); then
      report_last flush
      return
    fi
    if ((code != 0)) && [[ $after == stop ]]; then
      report_last over failed "$name"
      fail "start-up failed at $name"
    fi
  done
  report_last over "done"
}

if [[ ${1-} == step ]]; then run_step "$2" "$3"; else main; fi
