#!/usr/bin/env bash
# Viewers of a domain at a proxy's door, each with a connection of its own by TLS and a login with each question: how long
# the quick ones wait while others are slow and some read nothing, and how long all of them are without an answer when the
# representative is killed.
#
# viewers.sh [SECONDS] [HZ] [VIEWERS...]   (20 s, 2 questions a second each, 100 500 1000 2000 viewers)
#
# Of each number nine in a hundred are slow, and one stalls. Everything runs on this machine, the viewers too.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/site.sh"
require_visperf

SPAN=${1:-20} HZ=${2:-2}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 100 500 1000 2000
VIEWERS=${VISPERF_VIEWERS:-$(proxy_bench viewers)}
# Viewers of one process: it has some 20,000 descriptors at most, and one thread.
EACH=2500
taskset -cp "0-$((CORES - 1))" $$ >/dev/null
ulimit -n "$(ulimit -Hn)"

# watch COUNT PATH: rows of what the processes of so many viewers saw, in $WORK/seen.*
watch() {
    local left=$1 count slow stalled number=0
    WATCHING=()
    rm -f "$WORK"/seen.*
    while [ "$left" -gt 0 ]; do
        count=$((left < EACH ? left : EACH)) left=$((left - EACH)) number=$((number + 1))
        stalled=$((count / 100)) slow=$((count * 9 / 100))
        "$VIEWERS" "127.0.0.1:$DOOR" "$CERTIFICATE" "$WORK/accounts" "$2" "$HZ" "$SPAN" \
            $((count - slow - stalled)) "$slow" "$stalled" >"$WORK/seen.$number" 2>"$WORK/viewers.err" </dev/null &
        WATCHING+=("$!")
        STARTED+=("$!")
    done
    for number in "$WORK"/seen.*; do
        await 120 grep -q '^ready' "$number" || die "the viewers did not come in: $(tail -n 3 "$WORK/viewers.err" "$WORK/proxy.err")"
    done
}

watched() {
    local pid
    for pid in "${WATCHING[@]}"; do
        wait "$pid" || die "$(tail -n 3 "$WORK/viewers.err")"
    done
}

row() {
    local count=$1 cpu began
    watch "$count" /d/BENCH/api/v1/domain.hosts
    cpu=$(cpu_ms "$PROXY") began=$EPOCHREALTIME
    watched
    grep -hv '^ready' "$WORK"/seen.* | awk -v count="$count" -v span="$SPAN" -v cpu="$(($(cpu_ms "$PROXY") - cpu))" \
        -v rss="$(memory_kib "$PROXY" VmHWM)" -v head="$(memory_kib "$HEAD" VmHWM)" '{ answers += $1; failures += $2
            if ($3 > p50) p50 = $3; if ($4 > p99) p99 = $4; split($6, cut, "/"); gone += cut[1]; stalled += cut[2]
            if ($7 > longest) longest = $7 } END {
        printf "%8d %10.0f %9d %8.1f %9.1f %9.0f %9.0f %9.0f %6d/%d %6d\n", count, answers / span, failures, p50, p99,
            cpu / span / 10, rss / 1024, head / 1024, gone, stalled, longest }'
}

machine
start_site 1
for ((number = 0; number < ($(printf '%s\n' "$@" | sort -n | tail -n 1) + 15) / 16; number++)); do
    printf 'viewer%d:%s\n' "$number" "$("$VISPERF" account add "viewer$number" --domain BENCH --json --state "$WORK/proxy" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["secret"])')"
done >"$WORK/accounts"
# The proxy takes up new accounts within a second.
sleep 3
printf '\n%s questions/s each, %s s, load %s\n' "$HZ" "$SPAN" "$(machine_load)"
printf '%8s %10s %9s %8s %9s %9s %9s %9s %9s %6s\n' viewers "answers/s" failures "p50 ms" "p99 ms" "proxy CPU%" "proxy MiB" "head MiB" "cut off" "within s"
for count in "$@"; do
    row "$count"
done

echo
echo "the representative is killed while $1 viewers ask:"
watch "$1" /d/BENCH/api/v1/domain.hosts
sleep $((SPAN / 4))
kill -9 "$HEAD"
wait "$HEAD" 2>>"$WORK/tried" || true
run head "$VISPERF" sensor --config "$WORK/head.toml" --state "$WORK/head" --listen 127.0.0.1:0
HEAD=$PID
watched
grep -hv '^ready' "$WORK"/seen.* | awk '{ if ($5 > most) most = $5 } END { printf "99 in a hundred had an answer again within %.1f s\n", most / 1000 }'
