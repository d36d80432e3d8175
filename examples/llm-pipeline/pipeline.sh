#!/bin/bash
# A pipeline around a cluster: create it, run the work, destroy it again.
#
#   pipeline.sh IMAGE ENV_LIST SERVICE_ACCOUNT [WORK_COMMAND...]
#
# The work is JOB_COMMAND of the env.list, on the cluster (Run --create --destroy-after); or, where
# there is a WORK_COMMAND, that, here: it gets the result of Create, with the addresses of the
# machines, in the file that RESULT names. The cluster goes away however the work ends; the exit
# code is the first that is not 0.
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
submit=$here/submit.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
env_list=$folder/env.list
cp "$2" "$env_list" || exit 2
job=("$1" "$env_list" "$3")
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

zones=("$(setting ZONE)")
tries=0
limit=${CREATE_TIMEOUT:-21600}
create() {
  local code choices next
  while true; do
    local -x JOB_TIMEOUT=$((limit - SECONDS))
    if ((work)); then
      "$submit" "${job[@]}" Create --yes >"$RESULT"
    else
      "$submit" "${job[@]}" Run --create --destroy-after >"$RESULT"
    fi
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
    if [[ $choices == again* ]] && ((tries < ${TRIES:-3})); then
      echo "pipeline: tries again in ${RETRY_SECONDS:-300} seconds" >&2
      sleep "${RETRY_SECONDS:-300}"
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

create
code=$?
if ((code == 0 && work)); then
  "$@"
  code=$?
fi

# What is not destroyed costs money: this is tried more often than anything else.
for ((left = 5; left > 0; left--)); do
  "$submit" "${job[@]}" Destroy >"$RESULT"
  destroyed=$?
  if ((destroyed == 0)) || [[ $("$here/decide.py" "$RESULT") != again* ]]; then
    break
  fi
  sleep "${RETRY_SECONDS:-300}"
done
if ((destroyed)); then
  echo "pipeline: Destroy ended with $destroyed: something of the cluster may still cost money" >&2
fi
exit $((code ? code : destroyed))
