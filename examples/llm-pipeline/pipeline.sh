#!/bin/bash
# A pipeline around a cluster: create it, run the work, destroy it again.
#
#   pipeline.sh IMAGE ENV_LIST SERVICE_ACCOUNT [WORK_COMMAND...]
#
# The work is JOB_COMMAND of the env.list, on the cluster (Run --create); or, where there is a
# WORK_COMMAND, that, here: it gets the result of Create, with the addresses of the machines, in the
# file that RESULT names. Between tries cluster, requests and job keep their place in Google's queue.
# At the end, and at a signal, the cluster goes away; the exit code is the first that is not 0.
#
#   CREATE_TIMEOUT   seconds that all Creates together may take (6 hours), the job of a Run included
#   TRIES            how often a Create is tried in one zone, waits for capacity aside (3)
#   RETRY_SECONDS    the pause between two tries (300)
#   OTHER_ZONES=yes  go to a zone that the result names, once one has no machines
set -uo pipefail

if (($# < 3)); then
  sed -n 's/^#   //p' "$0" >&2
  exit 2
fi
here=$(dirname "$0")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
env_list=$folder/env.list
cp "$2" "$env_list" || exit 2
on_vm=("$here/submit.sh" "$1" "$env_list" "$3")
shift 3
work=$#
RESULT=$folder/result.json
export RESULT

setting() { # NAME: its value in the env.list; the last one counts
  sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*\"\{0,1\}\([^\"[:space:]]*\).*/\1/p" "$env_list" | tail -n 1
}

move() { # ZONE: from now on the cluster is there
  echo "pipeline: goes to $1" >&2
  # The region follows from the zone.
  sed -i.before -e '/^[[:space:]]*ZONE[[:space:]]*=/d' -e '/^[[:space:]]*REGION[[:space:]]*=/d' "$env_list"
  printf '\nZONE=%s\n' "$1" >>"$env_list"
}

child=
begin() { # COMMAND...: run it so that a signal is heard meanwhile
  local code
  "$@" <&0 &
  child=$!
  wait "$child"
  code=$?
  child=
  return "$code"
}

pause() {
  begin sleep "${RETRY_SECONDS:-300}"
}

# Nobody else's job has this name, so that it is ours that is followed and ended.
name=$(sed -n 's/^[[:space:]]*JOB_OPTIONS=.*--name[ =]\([^[:space:]"]*\).*/\1/p' "$env_list" | tail -n 1)
name=${name:-pipeline}
name=${name:0:17}-$RANDOM
action=(Create --yes)
((work)) || action=(Run --create --yes --name "$name")
zones=("$(setting ZONE)")
tries=0
limit=${CREATE_TIMEOUT:-21600}
create() {
  local code choices next
  while true; do
    local -x JOB_TIMEOUT=$((limit - SECONDS))
    begin "${on_vm[@]}" "${action[@]}" >"$RESULT"
    code=$?
    if ((code == 0)); then
      return 0
    fi
    # In the order in which it is tried: again, another zone; settings are for a person to choose.
    choices=$("$here/decide.py" "$RESULT" "${zones[@]}")
    next=$(sed -n 's/^zone //p' <<<"$choices" | head -n 1)
    # 75: no capacity yet. A wait that has used its time is no failed try.
    ((code == 75)) || ((++tries))
    if ((SECONDS >= limit)); then
      echo "pipeline: the time for Create is over" >&2
      return "$code"
    fi
    if [[ $choices == @(again|follow)* ]] && ((tries < ${TRIES:-3})); then
      [[ $choices == again* ]] || action=(Logs "$name" --follow)
      echo "pipeline: tries again in ${RETRY_SECONDS:-300} seconds" >&2
      pause
    elif [[ -n $next && ${OTHER_ZONES:-} == yes ]]; then
      move "$next"
      zones+=("$next")
      tries=0
    else
      echo "pipeline: a person is needed; what can be done: ${choices//$'\n'/, }" >&2
      return "$code"
    fi
  done
}

# shellcheck disable=SC2329  # called by the trap
finish() {
  local code=$? destroyed left
  trap '' INT TERM HUP
  if [[ $child ]]; then
    kill "$child"
    wait "$child"
  fi
  # A job that goes on would keep its cluster.
  ((work || code == 0)) || begin "${on_vm[@]}" Cancel "$name" >"$RESULT"
  # What is not destroyed costs money: this is tried more often than anything else.
  for ((left = 5; left > 0; left--)); do
    begin "${on_vm[@]}" Destroy >"$RESULT"
    destroyed=$?
    if ((destroyed == 0)) || [[ $("$here/decide.py" "$RESULT") != again* ]]; then
      break
    fi
    pause
  done
  if ((destroyed)); then
    echo "pipeline: Destroy ended with $destroyed: something of the cluster may still cost money" >&2
  fi
  rm -rf "$folder"
  exit $((code ? code : destroyed))
}

trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
create || exit
if ((work)); then
  begin "$@"
fi
