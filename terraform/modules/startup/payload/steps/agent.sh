# shellcheck shell=bash
# The step agent of startup.sh, which brings the functions that are used here.

# How long the others may take: Create waits for all VMs to run before it waits for their start-up,
# but images differ in how long their first boot takes.
readonly AGREEMENT_SECONDS=300

# ssh between the nodes is a comfort: a VM that can't have it has its rank all the same.
set_up_node_ssh() {
  if [[ -n $(setting node_ssh) ]]; then vm node_ssh open; else vm node_ssh close; fi
}

run() {
  local lacking=""
  # Who jobs run as: nobody's administrator (ADR 54).
  make_user aiinfra-job 881 /var/lib/aiinfra-job/.home || lacking="the user aiinfra-job: no jobs"
  set_up_node_ssh || lacking="ENABLE_NODE_SSH: no ssh between the nodes, see above"
  install -D --mode=644 "$PROGRAMS/profile.d/aiinfra.sh" /etc/profile.d/aiinfra.sh
  install --mode=644 "$PROGRAMS"/systemd/aiinfra-{agent,job}.service /etc/systemd/system/
  systemctl daemon-reload
  systemctl enable aiinfra-agent.service
  # Also where it runs: its programs may be others since the last boot.
  systemctl restart aiinfra-agent.service
  vm peers wait "$AGREEMENT_SECONDS" || fail "the ranks of the group are not complete"
  if [[ -n $lacking ]]; then fail "$lacking"; fi
}
