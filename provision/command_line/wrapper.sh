#!/bin/sh
# Runs aiinfra in its container: in this folder, as you, with your login at Google. Made by
#     docker run --rm IMAGE wrapper >aiinfra && chmod +x aiinfra
# AIINFRA_IMAGE=NAME runs another image; AIINFRA_ENGINE=podman chooses between two engines.
set -eu

image=${AIINFRA_IMAGE:-@IMAGE@}

stop() {
  echo "aiinfra: $1" >&2
  exit 2
}

# The folder is at the same place in the container, so that the paths in messages are yours.
case $PWD in
  / | /tmp | /bin* | /dev* | /etc* | /lib* | /opt* | /proc* | /run* | /sbin* | /sys* | /usr*)
    stop "$PWD is a folder of the image, too: run it in a folder of your own" ;;
esac

engine=
for name in ${AIINFRA_ENGINE:-docker podman}; do
  if command -v "$name" >/dev/null 2>&1; then
    engine=$name
    break
  fi
done
[ -n "$engine" ] || stop "there is no ${AIINFRA_ENGINE:-docker or podman} on PATH: install one of them"

# The last that is put in front comes first: image and arguments are at the end.
case " $* " in
  *" --rehearse"*) volume=aiinfra-rehearsal:/var/lib/aiinfra/rehearsal ;;
  *) volume= ;;
esac
set -- "$image" "$@"
bind() { # bind FROM TO [MORE]: --volume would stumble over a colon, and a comma needs the quotes
  mount="type=bind,\"source=$1\",\"target=$2\"${3-}"
}
bind "$PWD" "$PWD"
set -- --mount "$mount" --workdir "$PWD" "$@"
gcloud=${CLOUDSDK_CONFIG:-${HOME-}/.config/gcloud}
if [ -d "$gcloud" ]; then
  bind "$gcloud" /root/.config/gcloud
  set -- --mount "$mount" "$@"
fi
if [ -n "${GOOGLE_APPLICATION_CREDENTIALS-}" ]; then
  bind "$GOOGLE_APPLICATION_CREDENTIALS" /credentials.json ,readonly
  set -- --mount "$mount" --env GOOGLE_APPLICATION_CREDENTIALS=/credentials.json "$@"
fi
if [ -n "$volume" ]; then
  set -- --volume "$volume" "$@"
fi
# By name alone: values stay out of the list of processes, and what is not set here is not there.
for name in CI HTTPS_PROXY NO_COLOR NO_PROXY TERM GOOGLE_IMPERSONATE_SERVICE_ACCOUNT GOOGLE_OAUTH_ACCESS_TOKEN; do
  set -- --env "$name" "$@"
done
# Where the engine does not translate users, what the run writes would be root's. You need none of
# root's capabilities; a root that is you elsewhere would lose those by which it reads your files.
case "$(uname) $("$engine" --version) $("$engine" info --format '{{.SecurityOptions}}' 2>/dev/null || :)" in
  *[Pp]odman* | *rootless*) ;;
  Linux*) set -- --user "$(id -u):$(id -g)" --cap-drop ALL "$@" ;;
esac
# A terminal only where all three are one: with --tty the engine mixes stdout and stderr.
if [ -t 0 ] && [ -t 1 ] && [ -t 2 ]; then
  set -- --interactive --tty "$@"
fi
# SELinux keeps containers out of home folders. A stopped run saves its state: ten seconds are few.
# A volume of its own, and not memory, as a copied folder may have gigabytes; it goes with the run.
exec "$engine" run --rm --stop-timeout 600 --read-only --volume /tmp \
  --security-opt no-new-privileges --security-opt label=disable "$@"
