# shellcheck shell=sh
# This VM's rank and its peers, for login shells; /run/aiinfra/peers.env says how they are now.
if [ -r /run/aiinfra/peers.env ]; then
  set -a
  # shellcheck source=/dev/null
  . /run/aiinfra/peers.env
  set +a
fi
