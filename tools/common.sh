# shellcheck shell=bash
# Shared by the scripts of this folder. Source it; it changes to the root of the
# repository.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# phase TEXT COMMAND...: prints one line on stderr. Prints the output of the
# command only if it fails.
phase() {
  local text=$1 log start=$SECONDS
  shift
  log=$(mktemp)
  printf '%s ... ' "$text" >&2
  if "$@" >"$log" 2>&1 </dev/null; then
    printf 'done (%d s)\n' $((SECONDS - start)) >&2
    rm -f "$log"
  else
    local status=$?
    printf 'failed\n' >&2
    tail -n 60 "$log" >&2
    rm -f "$log"
    return "$status"
  fi
}

# newest_llvm PROGRAM: prints its name in the newest installed version of LLVM,
# 15 or newer: 14 cannot read the C++20 headers of g++ 12. Fails if there is
# none.
newest_llvm() {
  local candidate
  for candidate in "$1"-{21,20,19,18,17,16,15} "$1"; do
    if command -v "$candidate" >/dev/null &&
      (($("$candidate" --version | grep -oE 'version [0-9]+' | cut -c 9-) >= 15)); then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# configure PRESET [OPTION...]: runs CMake if the build folder has not been
# configured with these options yet. Ninja runs it again when a CMakeLists.txt
# changes.
configure() {
  local preset=$1 stamp="build/$1/configured-with"
  shift
  if [[ -f "build/$preset/build.ninja" && -f "$stamp" &&
    "$(cat "$stamp")" == "$*" ]]; then
    return
  fi
  phase "configure build/$preset" cmake --preset "$preset" "$@"
  echo "$*" >"$stamp"
}
