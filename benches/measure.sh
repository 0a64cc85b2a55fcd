# What every measurement needs: a folder of its own, processes that end with it, processor time, memory.
#
# Sourced, with `set -euo pipefail`. Processor time is user and system of all threads of a process, as the
# kernel accounts it; the clock says nothing on a machine that others use. MEASURED_CORE runs what is
# measured, OTHER_CORE everything else: clients, pollers, this script.

BENCHES=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(dirname "$BENCHES")
LOGS=${VISPERF_LOGS:-$ROOT/log-filters/logs}
VISPERF=${VISPERF:-${CARGO_TARGET_DIR:-$ROOT/target}/release/visperf}
RECORDED=$LOGS/slurm/22.05.8-alpha/slurmctld.log
CORES=$(nproc)
MEASURED_CORE=$((CORES - 1))
OTHER_CORE=0
TICKS_PER_SECOND=$(getconf CLK_TCK)

WORK=$(mktemp -d "${TMPDIR:-/tmp}/visperf-bench.XXXXXX")
STARTED=()

# ask_to_end PID: what it started too, as a command such as unshare passes no signal on.
ask_to_end() {
    pkill -TERM --parent "$1" || true
    kill "$1" 2>/dev/null || true
}

# End what this script started, and only that; remove its folder.
finish() {
    local pid
    for pid in "${STARTED[@]}"; do
        ask_to_end "$pid"
    done
    for pid in "${STARTED[@]}"; do
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$WORK"
}
trap finish EXIT
trap 'exit 130' INT TERM

die() {
    echo "$(basename "$0"): $*" >&2
    exit 1
}

require_visperf() {
    [ -x "$VISPERF" ] || die "no program at $VISPERF; build it with: cargo build --release -p visperf"
    [ -r "$RECORDED" ] || die "no recorded log at $RECORDED; VISPERF_LOGS says where the recorded logs are"
}

# start NAME COMMAND...: run it on the measured core; its number is in PID, what it says in $WORK/NAME.out.
start() {
    local name=$1
    shift
    taskset -c "$MEASURED_CORE" "$@" >"$WORK/$name.out" 2>&1 </dev/null &
    PID=$!
    STARTED+=("$PID")
}

# stop PID: ask it to end, wait until it has.
stop() {
    ask_to_end "$1"
    wait "$1" 2>/dev/null || true
    local pid kept=()
    for pid in "${STARTED[@]}"; do
        [ "$pid" = "$1" ] || kept+=("$pid")
    done
    STARTED=("${kept[@]}")
}

alive() {
    [ -r "/proc/$1/stat" ] && [ "$(cut -d' ' -f3 "/proc/$1/stat" 2>/dev/null)" != Z ]
}

# Processor time of a process since it began, in milliseconds.
cpu_ms() {
    local stat
    stat=$(<"/proc/$1/stat")
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    echo $(((${12} + ${13}) * 1000 / TICKS_PER_SECOND))
}

# The same in microseconds, of the threads that are alive: for spans in which no thread ends.
threads_cpu_us() {
    cat "/proc/$1/task/"*/schedstat 2>/dev/null | awk '{ sum += $1 } END { printf "%d\n", sum / 1000 }'
}

# memory_kib PID VmHWM|VmRSS
memory_kib() {
    awk -v key="$2:" '$1 == key { print $2 }' "/proc/$1/status"
}

# await SECONDS COMMAND...: until the command succeeds.
await() {
    local seconds=$1 began=$SECONDS
    shift
    until "$@"; do
        [ $((SECONDS - began)) -lt "$seconds" ] || return 1
        sleep 0.2
    done
}

median() {
    sort -n | awk '{ v[NR] = $1 } END { if (NR) print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

# The address that a sensor wrote in its state folder.
sensor_address() {
    head -n 1 "$1/listen" 2>/dev/null
}

# start_sensor NAME CONFIG: PID and ADDRESS of a sensor on loopback that answers.
start_sensor() {
    local state=$WORK/$1.state
    start "$1" "$VISPERF" sensor --config "$2" --state "$state" --listen 127.0.0.1:0
    if ! await 30 test -s "$state/listen"; then
        cat "$WORK/$1.out" >&2
        die "the sensor wrote no address within 30 s"
    fi
    ADDRESS=$(sensor_address "$state")
    await 30 curl -sf -o /dev/null "http://$ADDRESS/api/v1/daemon.info" || die "the sensor does not answer at $ADDRESS"
}

# A port of loopback that is free now.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# bench_program NAME: where the built program of this benchmark of visperf's is.
bench_program() {
    (cd "$ROOT" && cargo bench -q --no-run --message-format=json -p visperf --bench "$1") |
        python3 -c 'import json, sys; print(next(built["executable"] for built in map(json.loads, sys.stdin) if built.get("executable") and built["target"]["name"] == sys.argv[1]))' "$1"
}

machine() {
    echo "machine: $CORES cores ($(awk -F': ' '/model name/ { print $2; exit }' /proc/cpuinfo)), $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), load $(cut -d' ' -f1-3 /proc/loadavg)"
}

machine_load() {
    cut -d' ' -f1 /proc/loadavg
}

taskset -cp "$OTHER_CORE" $$ >/dev/null

# medians FILE: of each column of its rows of the same name, in the order of their first appearance; tabs between.
medians() {
    python3 - "$1" <<'SCRIPT'
import statistics, sys

rows = {}
for line in open(sys.argv[1]):
    name, *figures = line.rstrip("\n").split("\t")
    rows.setdefault(name, []).append([float(figure) for figure in figures])
for name, rounds in rows.items():
    print(name, *(statistics.median(column) for column in zip(*rounds)), sep="\t")
SCRIPT
}
