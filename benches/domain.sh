#!/usr/bin/env bash
# What representing a domain costs: made-up members, each with a certificate and a connection of its own, report to
# an ordinary sensor over the real transport on loopback. The representative has one core, everything else another.
#
# domain.sh ingest [ROUNDS] [SECONDS]   20 members as fast as it takes their sweeps: samples a CPU second, bytes a sample
# domain.sh members [ROUNDS] [SECONDS]  500 members of 200 metrics each second: CPU and memory, with half an hour of
#                                       history, which is filled in some minutes by quicker sweeps
# domain.sh peers [ROUNDS] [SECONDS]    Prometheus that scrapes as many samples, gmetad that polls them from one gmond
#
# Bytes on the wire are those that TCP carried: frames, Noise and Yamux, without the headers of TCP and IP.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/peers.sh"
source "$(dirname "$0")/domain-daemons.sh"
require_visperf

METRICS=200 DOMAIN_MEMBERS=500
PART=${1:-members} ROUNDS=${2:-3} SPAN=${3:-10}

# start_members COUNT PHASES: made-up members of the head's domain, which all report; MEMBERS_PID is their process.
start_members() {
    taskset -c "$OTHER_CORE" "$MEMBERS" "$STATES/head" "127.0.0.1:$HEAD_PORT" "$1" "$2" >"$WORK/members.out" 2>&1 </dev/null &
    MEMBERS_PID=$!
    STARTED+=("$MEMBERS_PID")
    await 150 grep -q '^ready' "$WORK/members.out" || die "the members are not ready: $(tail -n 5 "$WORK/members.out" "$WORK/head.out")"
}

# Samples that the head has taken so far.
samples_taken() {
    curl -sf "http://$HEAD/api/v1/daemon.info" | python3 -c 'import json, sys; print(json.load(sys.stdin)["statistics"]["reporting"]["samples_taken_total"])'
}

# Bytes that TCP has brought to the head's overlay.
received_bytes() {
    ss -tinH state established "( sport = :$HEAD_PORT )" | awk '{ while (match($0, /bytes_received:[0-9]+/)) {
        sum += substr($0, RSTART + 15, RLENGTH - 15); $0 = substr($0, RSTART + RLENGTH) } } END { printf "%d\n", sum }'
}

# span SECONDS: CPU_US, SAMPLES, BYTES and TOOK_US of the head within it.
span() {
    local began=$EPOCHREALTIME cpu samples bytes
    cpu=$(threads_cpu_us "$HEAD_PID")
    samples=$(samples_taken) || die "the head does not answer: $(tail -n 5 "$WORK/head.out")"
    bytes=$(received_bytes)
    sleep "$1"
    TOOK_US=$((${EPOCHREALTIME/./} - ${began/./}))
    CPU_US=$(($(threads_cpu_us "$HEAD_PID") - cpu))
    SAMPLES=$(samples_taken) || die "the head does not answer: $(tail -n 5 "$WORK/head.out")"
    SAMPLES=$((SAMPLES - samples)) BYTES=$(($(received_bytes) - bytes))
    [ "$SAMPLES" -gt 0 ] || die "no samples came: $(tail -n 5 "$WORK/members.out" "$WORK/head.out")"
}

# verdict AIM LEAST: in words, of the figure that is read, where more is better.
verdict() {
    awk -v aim="$1" -v least="$2" '{ print ($1 >= aim ? "met" : $1 >= least ? "the least is met, the aim MISSED" : "MISSED") }'
}

ingest() {
    local hz round figures
    echo "20 members x $METRICS metrics, $ROUNDS rounds of $SPAN s, load $(machine_load)"
    printf '%8s %14s %14s %16s %14s\n' "Hz each" "samples/s" "% of a core" "samples/CPU s" "bytes/sample"
    for hz in 50 250 1000; do
        for ((round = 0; round < ROUNDS; round++)); do
            start_head taskset -c "$MEASURED_CORE"
            start_members 20 "$hz:$((SPAN + 4))"
            sleep 1
            span "$SPAN"
            echo "$hz $((SAMPLES * 1000000 / CPU_US)) $SAMPLES $TOOK_US $CPU_US $BYTES" >>"$WORK/ingest"
            drop_domain
        done
        figures=$(awk -v hz="$hz" '$1 == hz' "$WORK/ingest" | sort -nk2 | awk '{ line[NR] = $0 } END { print line[int((NR + 1) / 2)] }')
        # shellcheck disable=SC2086
        set -- $figures
        awk -v hz="$1" -v rate="$2" -v samples="$3" -v took="$4" -v cpu="$5" -v bytes="$6" 'BEGIN {
            printf "%8d %14.0f %14.1f %16.0f %14.2f\n", hz, samples * 1e6 / took, cpu * 100 / took, rate, bytes / samples }'
    done
    echo "target: 1,000,000 samples a CPU second, at least 500,000: $(awk '$1 == 250 { print $2 }' "$WORK/ingest" | median | verdict 1000000 500000)"
}

drop_domain() {
    stop "$MEMBERS_PID"
    stop "$HEAD_PID"
    rm -rf "$STATES/head"
}

members() {
    local round rss
    start_head taskset -c "$MEASURED_CORE"
    # 1,900 sweeps of each host: more than are kept.
    start_members "$DOMAIN_MEMBERS" "8:240,1:$(((SPAN + 3) * ROUNDS + 20))"
    echo "$DOMAIN_MEMBERS members x $METRICS metrics, load $(machine_load); RSS $(($(memory_kib "$HEAD_PID" VmRSS) / 1024)) MiB when all had joined"
    await 300 grep -q '^phase of 8 Hz' "$WORK/members.out" || die "the history is not filled"
    grep '^phase' "$WORK/members.out"
    sleep 5
    for ((round = 0; round < ROUNDS; round++)); do
        span "$SPAN"
        echo "$CPU_US $TOOK_US $SAMPLES $BYTES" >>"$WORK/share"
        awk -v cpu="$CPU_US" -v took="$TOOK_US" -v samples="$SAMPLES" -v bytes="$BYTES" 'BEGIN {
            printf "%.1f %% of a core, %.0f samples/s, %.2f bytes/sample\n", cpu * 100 / took, samples * 1e6 / took, bytes / samples }'
    done
    rss=$(memory_kib "$HEAD_PID" VmRSS)
    awk '{ print $1 * 100 / $2 }' "$WORK/share" | median | awk '{ printf "median %.1f %% of a core\n", $1 }'
    echo "RSS $((rss / 1024)) MiB, peak $(($(memory_kib "$HEAD_PID" VmHWM) / 1024)) MiB; load $(machine_load)"
    echo "target: RSS at most 150 MiB: $(echo "$((-rss))" | verdict $((-150 * 1024)) $((-150 * 1024)))"
    drop_domain
}

# watch_peer NAME: its share of a core and memory, medians of rounds; ASKED counts what it took of the hosts.
watch_peer() {
    local round cpu began asked took
    for ((round = 0; round < ROUNDS; round++)); do
        cpu=$(cpu_ms "$PID") began=$(date +%s%N) asked=$(cut -d' ' -f"$2" "$WORK/counts")
        sleep "$SPAN"
        took=$((($(date +%s%N) - began) / 1000000))
        echo "$(($(cpu_ms "$PID") - cpu)) $took $((($(cut -d' ' -f"$2" "$WORK/counts") - asked) * $3))"
    done | sort -n | awk '{ line[NR] = $0 } END { print line[int((NR + 1) / 2)] }' >"$WORK/figures"
    alive "$PID" || die "$1 ended: $(tail -n 5 "$WORK/$1.out")"
    awk -v name="$1" -v rss="$(memory_kib "$PID" VmRSS)" -v peak="$(memory_kib "$PID" VmHWM)" '{
        printf "%-12s %14.0f %14.1f %16.0f %10.0f %10.0f\n", name, $3 * 1000 / $2, $1 * 100 / $2, $3 * 1000 / ($1 ? $1 : 1), rss / 1024, peak / 1024 }' "$WORK/figures"
}

peers() {
    local http xml
    http=$(free_port) xml=$(free_port)
    taskset -c "$OTHER_CORE" python3 "$BENCHES/peers/made-up-hosts.py" "$http" "$xml" "$DOMAIN_MEMBERS" "$WORK/counts" >"$WORK/hosts.out" 2>&1 &
    STARTED+=("$!")
    await 20 test -s "$WORK/counts" || die "the made-up hosts do not answer: $(tail -n 5 "$WORK/hosts.out")"
    echo "$DOMAIN_MEMBERS hosts x $METRICS metrics, $ROUNDS rounds of $SPAN s, load $(machine_load)"
    printf '%-12s %14s %14s %16s %10s %10s\n' program "samples/s" "% of a core" "samples/CPU s" "RSS MiB" "peak MiB"
    if peer_program prometheus prometheus; then
        python3 "$BENCHES/peers/prometheus-config.py" "$http" "$DOMAIN_MEMBERS" >"$WORK/prometheus.yml"
        start_peer prometheus --config.file="$WORK/prometheus.yml" --storage.tsdb.path="$WORK/prometheus" --web.listen-address="127.0.0.1:$(free_port)"
        sleep 30
        watch_peer prometheus 1 "$METRICS"
        stop "$PID"
    else
        echo "prometheus is not there" >&2
    fi
    if peer_program gmetad gmetad; then
        mkdir -p "$WORK/rrds"
        printf 'data_source "bench" 1 127.0.0.1:%s\nrrd_rootdir "%s"\nwrite_rrds off\nsetuid off\nxml_port %s\ninteractive_port %s\n' \
            "$xml" "$WORK/rrds" "$(free_port)" "$(free_port)" >"$WORK/gmetad.conf"
        start_peer gmetad --conf="$WORK/gmetad.conf" --debug=1
        sleep 15
        watch_peer gmetad 2 "$((METRICS * DOMAIN_MEMBERS))"
        stop "$PID"
    else
        echo "gmetad is not there" >&2
    fi
}

case $PART in
ingest | members) MEMBERS=${MEMBERS:-$(bench_program members)} ;;
peers) ;;
*) die "expected ingest, members or peers, found $PART" ;;
esac
machine
"$PART"
