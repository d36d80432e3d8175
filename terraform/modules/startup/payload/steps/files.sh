# shellcheck shell=bash
# The step files of startup.sh, which brings the functions that are used here.

run() {
  local object sum destination archive marker=$KEPT/files.sha256
  object=$(setting files.object)
  [[ -n $object ]] || skip "no files were copied"
  sum=$(setting files.sha256)
  destination=$(setting files.destination)
  # Unpacked once: what was changed on the VM since then stays.
  if [[ -e $marker && $(<"$marker") == "$sum" ]]; then return; fi
  archive=$KEPT/files.tar.gz
  retry_for 600 timeout 600 env PYTHONPATH="$PROGRAMS/lib" \
    python3 -S -m aiinfra_vm.storage "$(setting state.bucket)" "$object" "$archive"
  echo "$sum  $archive" | sha256sum --check --status ||
    fail "gs://$(setting state.bucket)/$object is not what was copied: its checksum differs"
  mkdir -p -- "$destination"
  tar --extract --gzip --no-same-owner --same-permissions --file "$archive" \
    --directory "$destination"
  rm "$archive"
  echo "$sum" >"$marker"
}
