# shellcheck shell=bash
# The step command of startup.sh, which brings the functions that are used here.

# Once in the VM's life, at most: the marker is there before the command starts, as one that was
# cut off by a reboot, or reboots the VM itself, is not begun again.
run() {
  local script=$PROGRAMS/startup-command marker=$KEPT/command code=0
  [[ -n $(setting has_command) ]] || skip "STARTUP_COMMAND is not set"
  if [[ -e $marker ]]; then
    code=$(<"$marker")
    case $code in
      0) skip "it ran at an earlier boot" ;;
      '') skip "it was cut off at an earlier boot, and is not begun again" ;;
      *) fail "it ended with exit code $code at an earlier boot, and is not begun again" ;;
    esac
  fi
  # A file, not bash -c: a command may be longer than an argument.
  (umask 077 && attribute aiinfra-startup-command >"$script")
  if [[ -n $(setting secrets) ]]; then
    # Makes the marker itself: what could not read its secrets has not begun.
    (cd / && vm secrets "$marker" bash "$script") </dev/null || code=$?
    [[ -e $marker ]] || fail "STARTUP_COMMAND was not begun: it lacks its SECRETS"
  else
    : >"$marker"
    (cd / && bash "$script") </dev/null || code=$?
  fi
  echo "$code" >"$marker"
  ((code == 0)) || fail "STARTUP_COMMAND ended with exit code $code"
}
