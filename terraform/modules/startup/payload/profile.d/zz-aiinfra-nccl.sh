# shellcheck shell=sh
# NCCL's settings on this VM, for login shells; for containers: docker run --env-file /etc/aiinfra/nccl.env
# By its name it comes last. Google's images have files here that set NCCL up for gIB on every VM, and
# where that is not there, each NCCL program ends with "network gIB not found".
# What the file sets comes back with it. On RDMA that is not set up here (A4X), gIB is somebody's own.
aiinfra_rest=${LD_LIBRARY_PATH-}
if [ -z "$(ls -A /sys/class/infiniband 2>/dev/null)" ] || grep -qs ^NCCL_NET= /etc/aiinfra/nccl.env; then
  for aiinfra_name in $(env | sed -n -E -e 's,^(NCCL_[A-Z0-9_]+)=.*/usr/local/gib/.*,\1,p' \
    -e 's,^(NCCL_(NET|(NET|TUNER|IB)_[A-Z0-9_]+|CROSS_NIC|NVLS_CHUNKSIZE|P2P_[A-Z]+_CHUNKSIZE))=.*,\1,p'); do
    unset "$aiinfra_name"
  done
  # Of the libraries, what is neither gIB's nor ours.
  aiinfra_rest=$(printf '%s\n' "$aiinfra_rest" | tr : '\n' |
    sed -e '/^$/d' -e '\,^/usr/local/gib,d' -e '\,^/var/lib/tcpxo,d' | paste -s -d : -)
fi
unset LD_LIBRARY_PATH
if [ -r /etc/aiinfra/nccl.env ]; then
  set -a
  # shellcheck source=/dev/null
  . /etc/aiinfra/nccl.env
  set +a
fi
if [ -n "$aiinfra_rest" ]; then
  export LD_LIBRARY_PATH="${LD_LIBRARY_PATH-}${LD_LIBRARY_PATH:+:}$aiinfra_rest"
fi
unset aiinfra_name aiinfra_rest
