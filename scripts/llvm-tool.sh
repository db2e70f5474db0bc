#!/usr/bin/env bash
# Prints the path of an LLVM tool of version 16, which decides the formatting, or the next newer one.
# usage: llvm-tool.sh clang++|clang-format|clang-tidy
set -euo pipefail

tool=${1:?usage: llvm-tool.sh TOOL}
for version in 16 17 18 19; do
  if path=$(command -v "$tool-$version"); then
    echo "$path"
    exit 0
  fi
done
echo "llvm-tool: no $tool-16 or newer; scripts/install-deps.sh --ci installs one" >&2
exit 1
