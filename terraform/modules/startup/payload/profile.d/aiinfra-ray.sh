# shellcheck shell=sh
# Ray for who logs in: its programs, and the token without which it lets nobody in. The path of the
# token wins over a ~/.ray/auth_token that is of another cluster.
case ":$PATH:" in
  *:/opt/aiinfra/ray/bin:*) ;;
  *) PATH=/opt/aiinfra/ray/bin:$PATH ;;
esac
# Else ray.init() would make a Ray of this VM alone, while the cluster's is not there yet.
export RAY_ADDRESS=auto
export PATH RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH=/run/aiinfra-ray/token
