#!/usr/bin/env bash
# Runs the fuzz targets with libFuzzer and AddressSanitizer, with the stable toolchain and nothing
# else installed.
#
#   tools/fuzz.sh                    every target for 10 seconds
#   tools/fuzz.sh 600 pickle spm     these two for ten minutes each
#   KEEP=found tools/fuzz.sh 300     also keeps the inputs that reached new code in found/TARGET, from
#                                    where a later run goes on; tools/fuzz_coverage.py reads them
#
# A target starts from the seeds in fuzz/corpus/TARGET and does not change them. What makes it fail
# is left in fuzz/artifacts/TARGET.
set -euo pipefail
[ -z "${KEEP:-}" ] || { mkdir -p "$KEEP"; keep=$(cd "$KEEP" && pwd); }
cd "$(dirname "$0")/../fuzz"

seconds=${1:-10}
shift || true
target=$(rustc -vV | sed -n 's/^host: //p')

# Coverage feedback for libFuzzer, as cargo-fuzz sets it up. Those flags are unstable, hence
# RUSTC_BOOTSTRAP; --target keeps them away from build scripts and macros, which run on the host.
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
flags+=" -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
flags+=" --cfg fuzzing -Zsanitizer=address -Cdebug-assertions=yes -Coverflow-checks=yes"
RUSTC_BOOTSTRAP=1 RUSTFLAGS="$flags" cargo build --release --locked --target "$target"

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for file in fuzz_targets/*.rs; do names+=("$(basename "$file" .rs)"); done
fi
if [ -n "${KEEP:-}" ]; then
  found=$keep
else
  found=$(mktemp -d)
  trap 'rm -rf "$found"' EXIT
fi
# One target, with what it prints in a log of its own.
fuzz_one() {
  local name=$1 log=$found/$1.log
  mkdir -p "artifacts/$name" "$found/$name" "corpus/$name"
  # A seed takes milliseconds: one that needs ten seconds, or 2 GB, is a finding.
  "target/$target/release/$name" "$found/$name" "corpus/$name" -artifact_prefix="artifacts/$name/" \
    -seed=1 -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_funcs=0 \
    -print_final_stats=1 >"$log" 2>&1 || { echo "== $name failed"; tail -n 60 "$log"; return 1; }
  echo "== $name, $seconds s"
  grep -E '^stat::(number_of_executed_units|average_exec_per_sec|peak_rss_mb)' "$log"
}
export -f fuzz_one
export found target seconds
# Each target has one thread: as many run at a time as there are cores.
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one {}'
