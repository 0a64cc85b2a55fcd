#!/usr/bin/env bash
# Memory of a representative and of a sensor in no domain: before, during and after churn.
#
#   benches/memory.sh [SUBSCRIPTIONS] [CONNECTIONS] [PEERS] [MINUTES]     7500 47500 100 10
#
# Churn: so many subscriptions with filters and scripts, and connections that ask, follow and are abandoned, at each of
# both, as fast as they answer; meanwhile so many peers join the domain and are killed (SIGKILL). Then an attack by
# subscriptions with scripts; then MINUTES of rest. "Before" is WARM_MINUTES after the start, when
# a sensor's history of metrics is full; a representative's takes half an hour, so it still grows meanwhile. RSS is VmRSS, "anonymous" is RssAnon, "peak" is VmHWM.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/domain-daemons.sh"
require_visperf

SUBSCRIPTIONS=${1:-7500} CONNECTIONS=${2:-47500} PEERS=${3:-100} MINUTES=${4:-10}
MEMBERS=2
# More than the five minutes for which a sensor keeps its metrics.
WARM_MINUTES=${WARM_MINUTES:-6}
# RSS ten minutes after the churn, of that before.
GROWTH_MAX_PERCENT=150
CLIENT=(/usr/bin/python3 "$BENCHES/memory.py")

# start_lone: a sensor in no domain; LONE answers queries, LONE_PID is its number.
start_lone() {
    config_of lone "$(free_port)"
    start_daemon lone taskset -c "$MEASURED_CORE"
    LONE_PID=$PID LONE=$(sensor_address "$STATES/lone")
}

# peers_come_and_go: each joins, reports for a moment, is killed.
peers_come_and_go() {
    local token nth killed=0
    [ "$PEERS" -gt 0 ] || return 0
    token=$("$VISPERF" token create --uses "$PEERS" --ttl 1h --state "$STATES/head" --address "127.0.0.1:$HEAD_PORT" 2>/dev/null | grep -o 'visperf1-[^ ]*')
    for ((nth = 0; nth < PEERS; nth++)); do
        config_of "peer$nth" "$(free_port)"
        "$VISPERF" join "$token" --host "peer$nth" --state "$STATES/peer$nth" >/dev/null 2>&1 || continue
        "$VISPERF" sensor --config "$WORK/peer$nth.toml" --state "$STATES/peer$nth" --listen 127.0.0.1:0 >/dev/null 2>&1 </dev/null &
        PID=$!
        await 30 test -s "$STATES/peer$nth/listen" || true
        sleep 1
        kill -9 "$PID"
        wait "$PID" 2>/dev/null || true
        killed=$((killed + 1))
        rm -rf "$STATES/peer$nth"
    done
    echo "$killed peers joined and were killed"
}

mib() {
    awk -v kib="$(memory_kib "$1" "$2")" 'BEGIN { printf "%.1f", kib / 1024 }'
}

# row WHAT: a line of the table, of both.
row() {
    printf '%-18s %9s %11s %9s %9s %11s %9s\n' "$1" "$(mib "$HEAD_PID" VmRSS)" "$(mib "$HEAD_PID" RssAnon)" "$(mib "$HEAD_PID" VmHWM)" \
        "$(mib "$LONE_PID" VmRSS)" "$(mib "$LONE_PID" RssAnon)" "$(mib "$LONE_PID" VmHWM)"
}

# verdict WHAT PID BEFORE_KIB
verdict() {
    awk -v what="$1" -v before="$3" -v after="$(memory_kib "$2" VmRSS)" -v most="$GROWTH_MAX_PERCENT" 'BEGIN {
        printf "%s: %.2f times as much as before; target: at most %.2f: %s\n", what, after / before, most / 100, (after * 100 <= before * most ? "met" : "MISSED") }'
}

churn() {
    local at clients=()
    peers_come_and_go >"$WORK/peers.out" &
    clients+=("$!")
    "${CLIENT[@]}" "$HEAD" churn "$SUBSCRIPTIONS" "$CONNECTIONS" "${HOSTS[@]}" >"$WORK/head.churn" &
    clients+=("$!")
    "${CLIENT[@]}" "$LONE" churn "$SUBSCRIPTIONS" "$CONNECTIONS" >"$WORK/lone.churn" &
    clients+=("$!")
    for at in "${clients[@]}"; do
        wait "$at"
    done
    echo "representative: $(cat "$WORK/head.churn"), $(cat "$WORK/peers.out"); sensor: $(cat "$WORK/lone.churn"); $SECONDS s, load $(machine_load)"
}

attack() {
    "${CLIENT[@]}" "$HEAD" attack 20 >"$WORK/head.attack" &
    local other=$!
    "${CLIENT[@]}" "$LONE" attack 20 >"$WORK/lone.attack"
    wait "$other"
}

machine
start_head taskset -c "$MEASURED_CORE"
HOSTS=()
for ((nth = 0; nth < MEMBERS; nth++)); do
    join_domain "member$nth"
    HOSTS+=("member$nth")
done
start_lone
await 60 hosts_live $((MEMBERS + 1)) || die 'the members do not report'
sleep 30
printf '%-18s %31s %31s\n' '' 'representative, MiB' 'sensor in no domain, MiB'
printf '%-18s %9s %11s %9s %9s %11s %9s\n' '' RSS anonymous peak RSS anonymous peak
row started
sleep $((WARM_MINUTES * 60))
row before
head_before=$(memory_kib "$HEAD_PID" VmRSS) lone_before=$(memory_kib "$LONE_PID" VmRSS)
SECONDS=0
churned=$(churn)
row 'after churn'
attack
row 'after the attack'
for ((minute = 1; minute <= MINUTES; minute++)); do
    sleep 60
    row "$minute min later"
done
echo "$churned; attack: $(cat "$WORK/head.attack"), $(cat "$WORK/lone.attack")"
verdict representative "$HEAD_PID" "$head_before"
verdict sensor "$LONE_PID" "$lone_before"
