#!/usr/bin/env bash
# Runs every fuzzer of the sanitizer build for some seconds: fuzz.sh SECONDS
# Starts from fuzz/seeds/NAME where there are any. What crashes a fuzzer is kept in build/fuzz/NAME.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?usage: fuzz.sh SECONDS}
ran=0
for source in fuzz/*_fuzzer.cpp; do
  name=$(basename "$source" .cpp)
  binary=build/sanitize/fuzz/$name
  # One that is not built is a failure, not one to pass over.
  [[ -x $binary ]] || { echo "fuzz: $binary is not built" >&2; exit 1; }
  corpus=build/fuzz/$name
  mkdir -p "$corpus/corpus"
  folders=("$corpus/corpus")
  [[ -d fuzz/seeds/$name ]] && folders+=("fuzz/seeds/$name")
  echo "fuzz: $name for $seconds s"
  "$binary" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$corpus/" "${folders[@]}"
  ran=$((ran + 1))
done
echo "fuzz: $ran fuzzers ran clean for $seconds s each"
