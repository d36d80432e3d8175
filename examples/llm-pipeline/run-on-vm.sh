#!/bin/bash
# Start-up script of a pipeline's job VM (Container-Optimized OS): runs one action of the image with
# the VM's own identity and leaves exit code and result where submit.sh reads them. What to run is in
# the VM's metadata: aiinfra-image, aiinfra-env-list, aiinfra-arguments.
set -uo pipefail

metadata=${METADATA_URL:-http://metadata.google.internal/computeMetadata/v1/instance}
# Root's home can't be written to on Container-Optimized OS.
HOME=$(mktemp -d)
export HOME

ask() {
  curl --silent --show-error --fail --retry 5 --header "Metadata-Flavor: Google" "$@"
}

tell() { # NAME, value on stdin: a guest attribute of this VM
  ask --request PUT --data-binary @- "$metadata/guest-attributes/aiinfra-job/$1"
}

job() {
  local image registry
  local -a arguments
  image=$(ask "$metadata/attributes/aiinfra-image") || return
  ask "$metadata/attributes/aiinfra-env-list" >"$HOME/env.list" || return
  read -ra arguments <<<"$(ask "$metadata/attributes/aiinfra-arguments")" || return
  registry=${image%%/*}
  if [[ $registry == *.pkg.dev ]]; then
    docker-credential-gcr configure-docker --registries="$registry" || return
  fi
  # The shutdown of the VM reaches the container as SIGTERM; it then has the time to end in order.
  docker run --rm --name aiinfra-job --stop-timeout 600 --env-file "$HOME/env.list" "$image" \
    "${arguments[@]}" --output json >"$HOME/result.json"
}

job
code=$?
# A guest attribute holds 256 kB; a result is some 10 kB.
if [[ -s $HOME/result.json ]]; then
  tell result <"$HOME/result.json"
fi
# Last: whoever waits for it finds the result.
printf '%s' "$code" | tell exit-code
exit "$code"
