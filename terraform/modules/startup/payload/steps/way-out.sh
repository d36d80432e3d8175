# shellcheck shell=bash
# The step way-out of startup.sh: how this VM goes out, before any other step fetches something. It
# also takes away what an earlier boot, or the VM that the image was made of, has left of another way.

run() {
  vm outbound up
  [[ -n $(setting outbound) ]] || skip "no proxy, certificates or mirrors are set"
}
