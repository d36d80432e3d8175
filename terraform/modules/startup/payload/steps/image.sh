# shellcheck shell=bash
# The step image of startup.sh, which brings the functions that are used here: what later VMs of an
# image would install when they first want it. The task seal begins it, no boot does.

# shellcheck source=/dev/null
source "$PROGRAMS/steps/containers.sh"
# shellcheck source=/dev/null
source "$PROGRAMS/steps/mounts.sh"

run() {
  retry_for 300 install_gcsfuse || log "gcsfuse could not be installed: VMs of the image will try"
  retry_for 300 install_nfs || log "no NFS client could be installed: VMs of the image will try"
  bring
}
