#!/bin/bash
# A pipeline around a cluster: create it, run the work, destroy it again.
#
#   pipeline.sh IMAGE ENV_LIST SERVICE_ACCOUNT WORK_COMMAND...
#
# The work gets the result of Create, with the addresses of the machines, in the file that RESULT
# names. The cluster goes away however the work ends; the exit code is the first that is not 0.
set -uo pipefail

if (($# < 4)); then
  sed -n 's/^#   //p' "$0" >&2
  exit 2
fi
job=("$1" "$2" "$3")
shift 3
submit=$(dirname "$0")/submit.sh
RESULT=$(mktemp)
export RESULT

"$submit" "${job[@]}" Create --yes >"$RESULT"
code=$?
# 75: no capacity yet, and everything is kept. Create waits on from where it stopped.
while ((code == 75)); do
  "$submit" "${job[@]}" Create --yes >"$RESULT"
  code=$?
done
if ((code == 0)); then
  "$@"
  code=$?
fi
"$submit" "${job[@]}" Destroy >/dev/null
destroyed=$?
exit $((code ? code : destroyed))
