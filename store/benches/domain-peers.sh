#!/usr/bin/env bash
# One metric of all hosts of a domain over a day, p95 of each minute by host: Prometheus and VictoriaMetrics beside the store.
#
#   store/benches/domain-peers.sh [HOSTS] [HOURS] [FOLDER]     500, 24, a folder below target
#
# The values are those that copies.rs makes up for `metric_1`, each 10 s on every host; the others have this metric alone, the store
# 200 of each host. Needs prometheus, promtool, victoria-metrics, curl, python3 and cargo, 4 GB of memory and 2 GB of disk, which are
# freed. Queries as in peers.sh; the store answers in its own process, the others over HTTP.
set -euo pipefail

HOSTS=${1:-500} HOURS=${2:-24} FOLDER=${3:-target/peers/domain}
HERE=$(dirname "$0")
PROMETHEUS_PORT=${PROMETHEUS_PORT:-19790} VICTORIA_PORT=${VICTORIA_PORT:-19791}

source "$HERE/programs.sh"
need prometheus promtool victoria-metrics

# The end is a whole hour in the past, so that all of it may be queried.
LAST=$(($(date +%s) / 7200 * 7200)) FIRST=$((LAST - HOURS * 3600))
RANGE="query=quantile_over_time(0.95,metric_1%5B1m%5D)&start=$((FIRST + 60))&end=$LAST&step=60"
echo "$HOSTS hosts, $HOURS h; load $(cut -d' ' -f1-3 /proc/loadavg)"

# It answers with at most 11,000 points a series.
if ((HOURS * 60 < 11000)); then
    for ((block = FIRST; block < LAST; block += 7200)); do
        python3 "$HERE/made_up.py" openmetrics "$HOSTS" "$FIRST" "$block" "$((block + 7200 < LAST ? block + 7200 : LAST))" >"$FOLDER/openmetrics/block.txt"
        promtool tsdb create-blocks-from openmetrics -q "$FOLDER/openmetrics/block.txt" "$FOLDER/prometheus" >/dev/null
    done
    start_prometheus
    query "Prometheus, p95 by host at 1 min" "$PROMETHEUS/api/v1/query_range?$RANGE"
    # It looks for blocks to merge once a minute.
    sleep 75
    query "Prometheus, once it has merged its blocks" "$PROMETHEUS/api/v1/query_range?$RANGE"
else
    echo "Prometheus refuses so many points"
fi
start_victoria
python3 "$HERE/made_up.py" victoria "$HOSTS" "$FIRST" "$FIRST" "$LAST" | fill_victoria
query "VictoriaMetrics, p95 by host at 1 min" "$VICTORIA/api/v1/query_range?$RANGE&nocache=1"
cargo bench -q -p store --bench copies -- "$HOSTS" "$HOURS"
