# shellcheck shell=bash
# The step notebook of startup.sh, which brings the functions that are used here.

run() {
  [[ -n $(setting notebook) ]] || skip "ENABLE_NOTEBOOK is no"
  systemctl cat jupyter.service >/dev/null 2>&1 || skip "the image has no notebook"
  # As that user, who may have links in its home. What people change in their samples stays.
  if id jupyter >/dev/null 2>&1; then
    # shellcheck disable=SC2016  # of the inner shell
    runuser -u jupyter -- sh -c \
      'cd ~jupyter && { [ -e aiinfra-sample ] || cp -R "$0" aiinfra-sample; }' "$PROGRAMS/samples" ||
      log "no samples in the home of jupyter"
  fi
  retry_for 180 systemctl is-active --quiet jupyter.service || fail "jupyter.service is not active"
}
