#!/usr/bin/env bash
# What one subscriber costs that wants every change of 300 processes 64 times a second: the daemon, beyond what it takes to sweep as
# often, and the subscriber, `visperf watch`, which takes packed entries, beside `visperf watch --json`, which takes JSON. As root.
#
# stream.sh [SECONDS] [ROUNDS]   (10 3)
#
# 270 of the processes are idle; 30 work a little every 20 ms. "none" has a subscription that no process passes, so that the sensor
# sweeps as often; the difference to it is what the stream costs the daemon. Medians of the rounds.
set -euo pipefail
source "$(dirname "$0")/measure.sh"

SPAN=${1:-10}
ROUNDS=${2:-3}
require_visperf

for _ in $(seq 270); do
    sleep 100000 &
    STARTED+=("$!")
done
for _ in $(seq 30); do
    taskset -c "$OTHER_CORE" python3 -c 'import time
while True:
    sum(range(2000))
    time.sleep(0.02)' &
    STARTED+=("$!")
done

start sensor "$VISPERF" sensor --state "$WORK/state" --listen 127.0.0.1:0 --socket "$WORK/s.sock"
SENSOR=$PID
until [ -S "$WORK/s.sock" ]; do sleep 0.1; done
sleep 2

# watched FILTER [OPTION...]: CPU in ms of the daemon and of the subscriber in SPAN seconds.
watched() {
    local before after of_daemon filter=$1
    shift
    taskset -c "$OTHER_CORE" "$VISPERF" watch --connect "unix:$WORK/s.sock" --rate 64 --filter "$filter" --changes "$@" >/dev/null 2>&1 &
    local client=$!
    STARTED+=("$client")
    sleep 2
    before=$(cpu_ms "$SENSOR") of_daemon=$(cpu_ms "$client")
    sleep "$SPAN"
    after=$(cpu_ms "$SENSOR")
    echo "$((after - before)) $(($(cpu_ms "$client") - of_daemon))"
    stop "$client"
}

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

for round in $(seq "$ROUNDS"); do
    watched 'name = "no such process"' >>"$WORK/none"
    watched 'name = "sleep" and pid > 0' >>"$WORK/idle"
    watched 'pid > 0' >>"$WORK/packed"
    watched 'pid > 0' --json >>"$WORK/json"
done
share() { awk -v ms="$1" -v secs="$SPAN" 'BEGIN { printf "%.2f %%", ms / secs / 10 }'; }
none=$(cut -d' ' -f1 "$WORK/none" | median)
for row in none idle packed json; do
    daemon=$(cut -d' ' -f1 "$WORK/$row" | median) client=$(cut -d' ' -f2 "$WORK/$row" | median)
    echo "  $row: daemon $(share "$daemon") of a core, $(share "$((daemon - none))") more than none; client $(share "$client")"
done
