#!/usr/bin/env bash
# What watching a quiet host costs: visperf sampling at 1 Hz with five logs in which nothing is written, beside
# prometheus-node-exporter scraped at 1 Hz over one kept connection, and gmond of ganglia-monitor, once with
# its own intervals and once collecting each second; all at the same time.
#
# idle.sh [SECONDS]   (60)
#
# The share is user and system time of the whole process against the clock, after a pause for starting up.
# What curl costs, which scrapes the exporter, is not counted.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/peers.sh"
require_visperf

SPAN=${1:-60}
SETTLE=10
declare -A PIDS BEFORE
ORDER=()

watch_process() {
    ORDER+=("$1")
    PIDS[$1]=$2
}

start_visperf() {
    local folder=$WORK/logs recorded filter
    mkdir -p "$folder"
    printf '[sensor]\nhost = "bench"\nzone = "UTC"\nsample_hz = 1.0\nfirst_start = "end"\n' >"$WORK/visperf.toml"
    while read -r filter recorded; do
        mkdir -p "$folder/$filter"
        cp "$LOGS/$recorded" "$folder/$filter/"
        printf '[[sensor.tail]]\npath = "%s"\nfilter = "%s"\n' "$folder/$filter/$(basename "$recorded")" "$filter" >>"$WORK/visperf.toml"
    done <<'QUIET'
slurmctld slurm/22.05.8-alpha/slurmctld.log
slurmd slurm/22.05.8-alpha/slurmd.wn01.log
slurmd slurm/22.05.8-alpha/slurmd.wn02.log
slurmd slurm/22.05.8-alpha/slurmd.wn03.log
slurm-jobcomp slurm/22.05.8-alpha/jobcomp.log
QUIET
    start_sensor visperf "$WORK/visperf.toml"
    curl -sf "http://$ADDRESS/api/v1/sensor.files" >"$WORK/files.json"
    python3 -c 'import json, sys; files = json.load(open(sys.argv[1]))["files"]; sys.exit(0 if len(files) == 5 else f"{len(files)} logs are followed, not five")' "$WORK/files.json"
    watch_process visperf "$PID"
}

start_exporter() {
    peer_program prometheus-node-exporter prometheus-node-exporter || { echo "prometheus-node-exporter is not there" >&2; return; }
    local port
    port=$(free_port)
    start_peer exporter "--web.listen-address=127.0.0.1:$port"
    watch_process prometheus-node-exporter "$PID"
    await 20 curl -sf -o /dev/null "http://127.0.0.1:$port/metrics" || die "the exporter does not answer"
    # One curl, one connection, a request each second.
    curl -sS --rate 60/m -o "$WORK/scrape" "http://127.0.0.1:$port/metrics?scrape=[1-$((SPAN + SETTLE + 30))]" >"$WORK/curl.out" 2>&1 &
    STARTED+=("$!")
    SCRAPER=$!
}

# start_gmond NAME INTERVALS: INTERVALS is "own" or "second".
start_gmond() {
    peer_program ganglia-monitor gmond || { echo "gmond is not there" >&2; return; }
    local conf=$WORK/$1.conf modules
    LD_LIBRARY_PATH=$PEER_LIBRARIES "$PROGRAM" -t >"$WORK/gmond.usual"
    modules=/usr/lib/$(uname -m)-linux-gnu/ganglia
    [ -z "$PEER_ROOT" ] || modules=$(peer_folder modcpu.so)
    python3 "$BENCHES/peers/gmond-config.py" "$WORK/gmond.usual" "$modules" "$(free_port)" "$2" >"$conf"
    start_peer "$1" --conf="$conf" --foreground --pid-file="$WORK/$1.pid"
    watch_process "$1" "$PID"
}

machine
start_visperf
start_exporter
start_gmond "gmond, its intervals" own
start_gmond "gmond, each second" second
sleep "$SETTLE"
for name in "${ORDER[@]}"; do
    alive "${PIDS[$name]}" || die "$name ended: $(tail -n 5 "$WORK/$name.out" "$WORK/exporter.out" 2>/dev/null)"
    BEFORE[$name]=$(threads_cpu_us "${PIDS[$name]}")
done
began=$(date +%s%N)
sleep "$SPAN"
took=$((($(date +%s%N) - began) / 1000000))
echo
echo "idle, $((took / 1000)) s at 1 Hz, load $(machine_load)"
printf '%-28s %10s %14s %10s %10s\n' program "CPU ms" "% of a core" "RSS MiB" "peak MiB"
for name in "${ORDER[@]}"; do
    pid=${PIDS[$name]}
    alive "$pid" || die "$name ended in between: $(tail -n 5 "$WORK/$name.out")"
    spent=$(($(threads_cpu_us "$pid") - ${BEFORE[$name]}))
    rss=$(memory_kib "$pid" VmRSS)
    awk -v name="$name" -v spent="$spent" -v took="$took" -v rss="$rss" -v peak="$(memory_kib "$pid" VmHWM)" \
        'BEGIN { printf "%-28s %10.1f %14.3f %10.1f %10.1f\n", name, spent / 1000, spent / 10 / took, rss / 1024, peak / 1024 }'
    if [ "$name" = visperf ]; then
        verdict=$(awk -v share="$((spent * 100 / took))" -v rss="$rss" 'BEGIN {
            printf "target: at most 0.5 %% of a core: %s; RSS at most 32 MiB: %s", (share <= 500 ? "met" : "MISSED"), (rss <= 32768 ? "met" : "MISSED") }')
        split=$(awk '/^Rss(Anon|File)/ { printf "%s %.1f MiB  ", $1, $2 / 1024 }' "/proc/$pid/status")
    fi
done
if [ -n "${SCRAPER:-}" ]; then
    kill -0 "$SCRAPER" 2>/dev/null || die "the scraping curl ended: $(tail -n 3 "$WORK/curl.out")"
    echo "exporter: $(grep -vc '^#' "$WORK/scrape") values a scrape; visperf: $(curl -sf "http://$ADDRESS/api/v1/sensor.metrics" | python3 -c 'import json, sys; answer = json.load(sys.stdin); print(len(answer["metrics"]), "values a sweep, sweeps slipped:", answer["slipped"])')"
fi
echo "visperf: $split"
echo "$verdict"
