#!/usr/bin/env bash
# Formats every C++ source; with --check only tells which are not formatted, and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

options=(-i)
[[ ${1-} == --check ]] && options=(--dry-run --Werror)
clang_format=$(scripts/llvm-tool.sh clang-format)

folders=()
for folder in src tests fuzz bench; do
  [[ -d $folder ]] && folders+=("$folder")
done
mapfile -d '' -t sources < <(find "${folders[@]}" \( -name '*.cpp' -o -name '*.h' \) -print0 | sort -z)
((${#sources[@]})) || { echo "format: no sources found" >&2; exit 1; }
"$clang_format" "${options[@]}" "${sources[@]}"
echo "format: ${#sources[@]} files"
