# Prometheus and VictoriaMetrics beside the store: started, awaited, queried and stopped.
#
# Sourced with FOLDER, PROMETHEUS_PORT and VICTORIA_PORT set; FOLDER is deleted at the start and at the end.
STARTED=()

# need PROGRAM…: each must be there.
need() {
    local program
    for program in curl python3 cargo "$@"; do
        command -v "$program" >/dev/null || { echo "$program is missing" >&2; exit 1; }
    done
}

cleanup() {
    local pid
    for pid in ${STARTED[@]+"${STARTED[@]}"}; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "${FOLDER:?}"
}
trap cleanup EXIT
rm -rf "$FOLDER"
mkdir -p "$FOLDER"/{openmetrics,prometheus,victoria,rrd}

# await URL: until it answers.
await() {
    for _ in $(seq 300); do
        curl -fsS "$1" >/dev/null 2>&1 && return
        sleep 0.2
    done
    echo "$1 does not answer" >&2
    exit 1
}

# query WHAT URL: median time of 11, and how many points are answered.
query() {
    local points
    points=$(curl -fsS "$2" | python3 -c 'import json, sys; print(sum(len(series["values"]) for series in json.load(sys.stdin)["data"]["result"]))')
    for _ in $(seq 11); do curl -fsS -o /dev/null -w '%{time_total}\n' "$2"; done | sort -g |
        awk -v what="$1" -v points="$points" 'NR == 6 { printf "%s: %.2f ms, %d points\n", what, $1 * 1000, points }'
}

# start_prometheus: on the blocks in $FOLDER/prometheus; PROMETHEUS is its address.
start_prometheus() {
    rm -rf "$FOLDER/prometheus/wal"
    echo 'global: {}' >"$FOLDER/prometheus.yml"
    prometheus --config.file="$FOLDER/prometheus.yml" --storage.tsdb.path="$FOLDER/prometheus" --storage.tsdb.retention.time=100y \
        --web.listen-address="127.0.0.1:$PROMETHEUS_PORT" >"$FOLDER/prometheus.log" 2>&1 &
    STARTED+=($!)
    PROMETHEUS=http://127.0.0.1:$PROMETHEUS_PORT
    await "$PROMETHEUS/-/ready"
}

# start_victoria: VICTORIA is its address.
start_victoria() {
    victoria-metrics -storageDataPath="$FOLDER/victoria" -retentionPeriod=100y -httpListenAddr="127.0.0.1:$VICTORIA_PORT" \
        -search.maxPointsPerTimeseries=100000 >"$FOLDER/victoria.log" 2>&1 &
    STARTED+=($!)
    VICTORIA=http://127.0.0.1:$VICTORIA_PORT
    await "$VICTORIA/health"
}

# fill_victoria: from lines of /api/v1/import on its standard input, merged.
fill_victoria() {
    curl -fsS -T - -X POST "$VICTORIA/api/v1/import"
    curl -fsS "$VICTORIA/internal/force_flush"
    curl -fsS "$VICTORIA/internal/force_merge"
    sleep 15
}
