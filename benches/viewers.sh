#!/usr/bin/env bash
# Viewers of a domain at a proxy's door, each with a connection of its own by TLS: how long the quick ones wait while others are
# slow and some read nothing, what that costs, and how long all of them are without an answer when the representative is killed.
#
# viewers.sh [follow|ask] [SECONDS] [HZ] [VIEWERS...]   (follow, 90 s, 2 answers a second each, 100 1000 5000 10000 viewers)
#
# Those that follow log in once and are sent the answers; those that ask log in with each question. Of each number nine in a
# hundred are slow, and one stalls. Everything runs on this machine, the viewers too. The last number is also that under which
# the representative is killed.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/site.sh"
require_visperf

WAY=follow
case ${1:-} in follow | ask)
    WAY=$1
    shift
    ;;
esac
SPAN=${1:-90} HZ=${2:-2}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- 100 1000 5000 10000
VIEWERS=${VISPERF_VIEWERS:-$(proxy_bench viewers)}
# Viewers of one process and one address: as many as a door takes of one.
EACH=2000
taskset -cp "0-$((CORES - 1))" $$ >/dev/null
ulimit -n "$(ulimit -Hn)"

# watch COUNT PATH: rows of what the processes of so many viewers saw, in $WORK/seen.*; they begin when $WORK/go is there.
watch() {
    local left=$1 count slow stalled number=0
    WATCHING=()
    # Those before count where they were until the proxy has seen them go.
    await 60 no_follower || die 'viewers that are gone still follow'
    rm -f "$WORK"/seen.* "$WORK/go"
    while [ "$left" -gt 0 ]; do
        count=$((left < EACH ? left : EACH)) left=$((left - EACH)) number=$((number + 1))
        stalled=$((count / 100)) slow=$((count * 9 / 100))
        : >"$WORK/seen.$number"
        "$VIEWERS" "$WAY" "127.0.0.1:$DOOR" "$CERTIFICATE" "$WORK/accounts" "$2" "$HZ" "$SPAN" \
            $((count - slow - stalled)) "$slow" "$stalled" $((number + 1)) "$WORK/go" \
            >>"$WORK/seen.$number" 2>"$WORK/viewers.err.$number" </dev/null &
        WATCHING+=("$!")
        STARTED+=("$!")
    done
    for number in "$WORK"/seen.*; do
        await 180 grep -q '^ready' "$number" || die "the viewers did not come in: $(tail -qn 3 "$WORK"/viewers.err.* "$WORK/proxy.err")"
    done
}

no_follower() {
    curl -sf --noproxy '*' "http://$(cat "$WORK/proxy/listen")/api/v1/daemon.info" | grep -Eq '"followers": ?0[,}]'
}

watched() {
    local pid
    for pid in "${WATCHING[@]}"; do
        wait "$pid" || die "$(tail -qn 3 "$WORK"/viewers.err.*)"
    done
}

# Bytes that the proxy's end of the fullest connection holds in the system, unsent or not taken (ss, Send-Q).
fullest() { ss -Htn state established "sport = :$DOOR" | awk '$2 > most { most = $2 } END { print most + 0 }'; }

# The figures of what the viewers saw, then the questions that the sensor was asked.
row() {
    local count=$1 proxy head began fill=0 now
    watch "$count" /d/BENCH/api/v1/domain.hosts
    # What their coming in took is over.
    sleep 3
    touch "$WORK/go"
    proxy=$(cpu_ms "$PROXY") head=$(cpu_ms "$HEAD") began=$SECONDS
    while [ $((SECONDS - began)) -lt $((SPAN - 5)) ]; do
        sleep 5
        now=$(fullest)
        fill=$((now > fill ? now : fill))
    done
    proxy=$(($(cpu_ms "$PROXY") - proxy)) head=$(($(cpu_ms "$HEAD") - head)) began=$((SECONDS - began))
    watched
    grep -hv '^ready' "$WORK"/seen.* | awk -v count="$count" -v span="$SPAN" -v proxy="$proxy" -v head="$head" -v took="$began" \
        -v rss="$(memory_kib "$PROXY" VmHWM)" -v fill="$fill" -v load="$(machine_load)" '{ answers += $1; failures += $2
            if ($3 > p50) p50 = $3; if ($4 > p99) p99 = $4; split($6, cut, "/"); gone += cut[1]; stalled += cut[2]
            if ($7 > longest) longest = $7; skipped += $8; ended += $9 } END {
        printf "%8d %10.0f %9d %8.1f %9.1f %6.0f %6.1f %9.0f %9.1f %9d %6d/%d %8d %6d %6s\n", count, answers / span, failures, p50, p99,
            proxy / took / 10, head / took / 10, rss / 1024, fill / 1024, skipped, gone, stalled, longest, ended, load }'
}

machine
start_site 1
for ((number = 0; number < ($(printf '%s\n' "$@" | sort -n | tail -n 1) + 15) / 16; number++)); do
    printf 'viewer%d:%s\n' "$number" "$("$VISPERF" account add "viewer$number" --domain BENCH --json --state "$WORK/proxy" |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["secret"])')"
done >"$WORK/accounts"
# The proxy takes up new accounts within a second.
sleep 3
printf '\n%s %s times a second each, %s s, load %s\n' "$WAY" "$HZ" "$SPAN" "$(machine_load)"
printf '%8s %10s %9s %8s %9s %6s %6s %9s %9s %9s %6s %8s %6s %6s\n' viewers "answers/s" faults "p50 ms" "p99 ms" \
    "proxy%" "head%" "peak MiB" "queue KiB" skipped "cut" "within s" ended load
for count in "$@"; do
    row "$count"
done
if [ "$WAY" = follow ]; then
    printf '\n'
    curl -sf --noproxy '*' "http://$(cat "$WORK/proxy/listen")/api/v1/daemon.info" |
        python3 -c 'import json, sys; counts = json.load(sys.stdin)["statistics"]["queries"]; print(", ".join(f"{name} {counts[name]}" for name in counts if "follow" in name or "update" in name or name == "calls_total"))'
fi

printf '\nthe representative is killed while %s viewers %s, load %s:\n' "$count" "$WAY" "$(machine_load)"
watch "$count" /d/BENCH/api/v1/domain.hosts
touch "$WORK/go"
sleep $((SPAN / 4))
kill -9 "$HEAD"
wait "$HEAD" 2>>"$WORK/tried" || true
run head "$VISPERF" sensor --config "$WORK/head.toml" --state "$WORK/head" --listen 127.0.0.1:0
HEAD=$PID
watched
grep -hv '^ready' "$WORK"/seen.* | awk '{ if ($5 > most) most = $5; ended += $9; faults += $2 } END {
    printf "99 in a hundred had an answer again within %.1f s; %d faults were reported, %d connections ended\n", most / 1000, faults, ended }'
