#!/usr/bin/env bash
# Bytes a value of the same recording in Prometheus, VictoriaMetrics and RRDtool, beside the store.
#
#   store/benches/peers.sh RECORDING [HOURS] [FOLDER]     24, a folder below target
#   EVEN=1 store/benches/peers.sh RECORDING               with times exactly a second apart
#
# RECORDING has the format that series.rs reads; it is repeated as there until it has so many hours; 0: once. Needs prometheus,
# promtool, victoria-metrics, rrdtool, curl, python3 and cargo, of Debian's packages for instance; installs and downloads nothing
# else than what cargo needs for the store. Needs 200 MB of disk for each two hours, and deletes them.
#
# Prometheus: blocks of two hours by `promtool tsdb create-blocks-from openmetrics`, no WAL; then what Prometheus
# itself makes of them when it is started on them. VictoriaMetrics: `/api/v1/import`, merged, stopped. RRDtool: a
# file a metric, a row a second. Queries: one metric over the whole time, a step a minute, median of 11, at the client,
# without the caches of answers.
set -euo pipefail

RECORDING=${1:?a recording} HOURS=${2:-24} FOLDER=${3:-target/peers/history}
HERE=$(dirname "$0")
PROMETHEUS_PORT=${PROMETHEUS_PORT:-19790} VICTORIA_PORT=${VICTORIA_PORT:-19791}
METRIC=node_load1

source "$HERE/programs.sh"
need prometheus promtool victoria-metrics rrdtool

# row WHAT BYTES VALUES
row() {
    awk -v what="$1" -v bytes="$2" -v values="$3" 'BEGIN { printf "%-44s %12d %8.3f\n", what, bytes, bytes / values }'
}

# files FOLDER: bytes of the files in it, whatever their blocks on the disk.
files() {
    find "$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }'
}

# count WHAT URL: all values of the metric must be there.
count() {
    local found
    found=$(curl -fsS -G "$2/api/v1/query" --data-urlencode "query=sum(count_over_time($METRIC[${SPAN}s]))" \
        --data-urlencode "time=$LAST" --data-urlencode nocache=1 |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["result"][0]["value"][1])')
    [ "$found" = "$SWEEPS" ] || echo "$1 has $found values of $METRIC" >&2
}

if [ "${EVEN:-0}" = 1 ]; then
    python3 "$HERE/repeated.py" even "$RECORDING" >"$FOLDER/recording"
    RECORDING=$FOLDER/recording
else
    # It may still be written.
    cp "$RECORDING" "$FOLDER/recording"
    RECORDING=$FOLDER/recording
fi
read -r FIRST LAST VALUES SWEEPS < <(python3 "$HERE/repeated.py" span "$RECORDING" "$HOURS")
echo "$SWEEPS sweeps, $VALUES values; load $(cut -d' ' -f1-3 /proc/loadavg)"
SPAN=$(awk -v first="$FIRST" -v last="$LAST" 'BEGIN { print int(last - first) + 2 }')
RANGE="query=$METRIC&start=$FIRST&end=$LAST&step=60"

python3 "$HERE/repeated.py" openmetrics "$RECORDING" "$HOURS" "$FOLDER/openmetrics"
for file in "$FOLDER"/openmetrics/*.txt; do
    promtool tsdb create-blocks-from openmetrics -q "$file" "$FOLDER/prometheus" >/dev/null
    rm "$file"
done
row "Prometheus, blocks of two hours" "$(files "$FOLDER/prometheus")" "$VALUES"
row "  of these the samples" "$(find "$FOLDER/prometheus" -path '*/chunks/*' -printf '%s\n' | awk '{ sum += $1 } END { print sum }')" "$VALUES"
start_prometheus
count Prometheus "$PROMETHEUS"
query "Prometheus, one metric, all time at 1 min" "$PROMETHEUS/api/v1/query_range?$RANGE"
# It looks for blocks to merge once a minute.
sleep 75
row "Prometheus, once it has merged them" "$(find "$FOLDER/prometheus" -type f -path '*/01*' -printf '%s\n' | awk '{ sum += $1 } END { print sum }')" "$VALUES"
query "Prometheus, the same then" "$PROMETHEUS/api/v1/query_range?$RANGE"

start_victoria
python3 "$HERE/repeated.py" victoria "$RECORDING" "$HOURS" | fill_victoria
count VictoriaMetrics "$VICTORIA"
query "VictoriaMetrics, one metric, all time at 1 min" "$VICTORIA/api/v1/query_range?$RANGE&nocache=1"
# Only then is everything in files.
kill "${STARTED[-1]}"
wait "${STARTED[-1]}" || true
row "VictoriaMetrics, merged" "$(files "$FOLDER/victoria/data")" "$VALUES"
row "  with its index of names" "$(($(files "$FOLDER/victoria/data") + $(files "$FOLDER/victoria/indexdb")))" "$VALUES"

python3 "$HERE/repeated.py" rrd "$RECORDING" "$HOURS" "$FOLDER/rrd" | rrdtool - >"$FOLDER/rrd.log"
grep -m 3 ERROR "$FOLDER/rrd.log" || true
row "RRDtool, of ten metrics" "$(files "$FOLDER/rrd")" "$((SWEEPS * 10))"

cargo bench -q -p store --bench series -- "$(realpath "$RECORDING")" "$HOURS"
