#!/usr/bin/env bash
# What the history costs a sensor: CPU and memory of one that stores metrics, processes and calls, beside one that stores nothing.
#
# history.sh [ROUNDS] [SECONDS]   both at the same time, each on its own core, which they exchange after each round
set -euo pipefail
source "$(dirname "$0")/measure.sh"
require_visperf
ROUNDS=${1:-4} SPAN=${2:-60}

start_one() { # NAME TOML
    printf '[sensor.history]\n%s\n' "$2" >"$WORK/$1.toml"
    mkdir -m 700 "$WORK/$1"
    "$VISPERF" sensor --config "$WORK/$1.toml" --state "$WORK/$1" --listen 127.0.0.1:0 >"$WORK/$1.out" 2>&1 </dev/null &
    PID=$!
    STARTED+=("$PID")
    await 30 test -s "$WORK/$1/listen" || die "$1 wrote no address: $(tail -n 5 "$WORK/$1.out")"
}

machine
start_one without 'on = false'
WITHOUT=$PID
start_one with 'on = true'
WITH=$PID
# The first block of samples is sealed after 17 minutes: the memory is that of a sensor that runs for long.
SETTLE=${SETTLE:-1100}
sleep "$SETTLE"
cores=("$MEASURED_CORE" "$OTHER_CORE")
for ((round = 0; round < ROUNDS; round++)); do
    taskset -a -p -c "${cores[$((round % 2))]}" "$WITH" >/dev/null
    taskset -a -p -c "${cores[$(((round + 1) % 2))]}" "$WITHOUT" >/dev/null
    with=$(threads_cpu_us "$WITH") without=$(threads_cpu_us "$WITHOUT")
    sleep "$SPAN"
    echo "$(($(threads_cpu_us "$WITH") - with)) $(($(threads_cpu_us "$WITHOUT") - without))" |
        awk -v secs="$SPAN" '{ printf "%.3f %.3f\n", $1 / secs / 1e4, $2 / secs / 1e4 }' | tee -a "$WORK/shares"
done
with=$(memory_kib "$WITH" VmRSS) without=$(memory_kib "$WITHOUT" VmRSS)
awk '{ print $1 - $2 }' "$WORK/shares" | median | awk '{ printf "with a history: %.3f %% of a core more (aim: 0.1)\n", $1 }'
awk -v with="$with" -v without="$without" 'BEGIN {
    printf "RSS: %.1f MiB with, %.1f without: %.1f MiB more (aim: 8)\n", with / 1024, without / 1024, (with - without) / 1024 }'
