#!/usr/bin/env bash
# Runs clang-tidy on every source of the program, with the headers it includes. Needs the compile
# commands of the release build.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release
[[ -f $build/compile_commands.json ]] || { echo "tidy: configure $build first" >&2; exit 1; }
clang_tidy=$(scripts/llvm-tool.sh clang-tidy)

mapfile -d '' -t sources < <(find src -name '*.cpp' -print0 | sort -z)
((${#sources[@]})) || { echo "tidy: no sources found" >&2; exit 1; }
# The count of warnings suppressed in system headers is noise, but its lines are all that is dropped.
printf '%s\0' "${sources[@]}" |
  xargs -0 -n 1 -P "${JOBS:-$(nproc)}" "$clang_tidy" --quiet -p "$build" \
    --extra-arg=-Wno-unknown-warning-option 2> >(
    grep -v '^[0-9]* warnings\? generated\.$' >&2 || true
  )
echo "tidy: ${#sources[@]} files"
