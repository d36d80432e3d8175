# shellcheck shell=bash
# The step notebook of startup.sh, which brings the functions that are used here.

run() {
  [[ -n $(setting notebook) ]] || skip "ENABLE_NOTEBOOK is no"
  systemctl cat jupyter.service >/dev/null 2>&1 || skip "the image has no notebook"
  if id jupyter >/dev/null 2>&1; then chown -R jupyter: "$SAMPLES"; fi
  retry_for 180 systemctl is-active --quiet jupyter.service || fail "jupyter.service is not active"
}
