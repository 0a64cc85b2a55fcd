#!/usr/bin/env bash
# What a directory of a grid costs: thousands of made-up domains, each with a connection of its own, state their
# records each 5 seconds while look-ups are asked, by other daemons over those connections and by clients over
# HTTP (wrk). The directory has one core. So many daemons in one process need more than the other: they have both.
#
# directory.sh [SECONDS] [DOMAINS] [LOOKUPS]   (10 for each row, 5000, 20000 a second; a directory has three quarters of 16,384 descriptors)
set -euo pipefail
source "$(dirname "$0")/measure.sh"
require_visperf
command -v wrk >/dev/null || die "wrk is not there; run-all.sh installs it"

SPAN=${1:-10} DOMAINS=${2:-5000} LOOKUPS=${3:-20000}
REPRESENTATIVES=${REPRESENTATIVES:-$(bench_program domains)}
ulimit -n "$(ulimit -Hn)"
PORT=$(free_port)
STATE=$WORK/directory.state
"$REPRESENTATIVES" admit "$STATE/directory" "$DOMAINS"
printf '[overlay]\nlisten = "127.0.0.1:%s"\n' "$PORT" >"$WORK/directory.toml"
start directory "$VISPERF" directory --config "$WORK/directory.toml" --state "$STATE" --listen 127.0.0.1:0
DIRECTORY_PID=$PID
await 30 test -s "$STATE/listen" || die "the directory wrote no address: $(tail -n 5 "$WORK/directory.out")"
ADDRESS=$(sensor_address "$STATE")
CONTACT=$(awk '{ print $3 }' "$STATE/key")@127.0.0.1:$PORT

# row LABEL CALLS SECONDS COMMAND...: what the directory spends while the command runs; CALLS are the look-ups asked.
row() {
    local label=$1 cpu began took spent
    shift
    cpu=$(threads_cpu_us "$DIRECTORY_PID") began=$(date +%s%N)
    "$@"
    took=$((($(date +%s%N) - began) / 1000)) spent=$(($(threads_cpu_us "$DIRECTORY_PID") - cpu))
    awk -v label="$label" -v spent="$spent" -v took="$took" -v rss="$(memory_kib "$DIRECTORY_PID" VmRSS)" 'BEGIN {
        printf "%-34s %10.1f %% of a core, RSS %.0f MiB\n", label, spent * 100 / took, rss / 1024 }'
    SPENT_US=$spent TOOK_US=$took
}

machine
echo "$DOMAINS domains, load $(machine_load)"
# At rest, look-ups over the overlay, and a while for those over HTTP.
taskset -c "0-$((CORES - 1))" "$REPRESENTATIVES" state "$CONTACT" "$DOMAINS" "0:$((SPAN + 6)),$LOOKUPS:$((SPAN + 2)),0:$((2 * SPAN + 10))" >"$WORK/domains.out" 2>&1 </dev/null &
STARTED+=("$!")
DOMAINS_PID=$!
says() { grep -q "^$1" "$WORK/domains.out" || ! alive "$DOMAINS_PID"; }
await 600 says ready || die "not all domains are stated: $(tail -n 3 "$WORK/domains.out" "$WORK/directory.out")"
alive "$DOMAINS_PID" || die "the domains ended: $(cat "$WORK/domains.out")"
cat "$WORK/domains.out"
sleep 3
row "renewals alone" sleep "$SPAN"
await 60 says 'phase of 0' || die "the first phase does not end"
row "and $LOOKUPS look-ups/s, overlay" sleep "$SPAN"
await 60 says "phase of $LOOKUPS" || die "the second phase does not end"
sleep 1
lookups_by_http() {
    DOMAINS=$DOMAINS taskset -c "$OTHER_CORE" wrk -t1 -c64 -d"${SPAN}s" --timeout 10s -s "$BENCHES/peers/resolve.lua" "http://$ADDRESS" | grep '^figures' >"$WORK/wrk.out"
}
row "and look-ups over HTTP, as many as go" lookups_by_http
awk -v spent="$SPENT_US" '{ printf "HTTP: %.0f look-ups/s, p50 %.2f ms, p99 %.2f ms, %d errors\n", $2 * 1e6 / $3, $4 / 1000, $5 / 1000, $7 + $8 }' "$WORK/wrk.out"
stop "$DOMAINS_PID"
cat "$WORK/domains.out"
echo "peak RSS $(($(memory_kib "$DIRECTORY_PID" VmHWM) / 1024)) MiB; load $(machine_load) at the end"
