#!/usr/bin/env bash
# What looking at every process costs other programs, beside visperf's ways of doing it: the same host, the same 300
# idle processes, one after the other.
#
# processes.sh [SECONDS]   (10)
#
# First the bench of the sensor's ways, of opening every file again and of the sysinfo crate, each at 64 sweeps a second.
# Then psutil at 64 a second, and atop, pidstat, netdata's apps.plugin and Performance Co-Pilot's pmdaproc at one a second, which
# is the most most of them do: their time for a sweep times 64 is what they would take, were they able to. What they read differs:
# atop and apps.plugin read more of each process, pidstat prints each, psutil was asked for CPU time, memory and threads,
# pmdaproc for user time alone, by the client pmval, which loads it and prints each.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/peers.sh"

SPAN=${1:-10}
IDLE=300

# row NAME SWEEPS CPU_MS SECONDS
row() {
    awk -v name="$1" -v sweeps="$2" -v cpu="$3" -v secs="$4" 'BEGIN {
        printf "  %-32s %7.2f %% of a core  %8.2f ms a sweep  %7.1f %% at 64 Hz\n",
            name, cpu / secs / 10, cpu / sweeps, cpu / sweeps * 6.4 }'
}

# lasting NAME: let $PID, which sweeps once a second, run SPAN seconds after its first sweeps, and print its row.
lasting() {
    local before after
    sleep 3
    alive "$PID" || { echo "  $1: it ended: $(tail -n 2 "$WORK/$1.out")" >&2; return; }
    before=$(cpu_ms "$PID")
    sleep "$SPAN"
    alive "$PID" || { echo "  $1: it ended early" >&2; return; }
    after=$(cpu_ms "$PID")
    row "$1" "$SPAN" "$(awk "BEGIN { print $after - $before }")" "$SPAN"
    stop "$PID"
}

use_psutil() {
    fetch_peer python3-psutil || { echo "  psutil cannot be had" >&2; return; }
    local found
    found=$(find "$PEERS/python3-psutil/root" -type d -path '*dist-packages' | head -n 1)
    PYTHONPATH=$found taskset -c "$MEASURED_CORE" python3 - "$SPAN" >"$WORK/psutil" <<'PYTHON'
import psutil, sys, time
span, sweeps = float(sys.argv[1]), 0
start, used = time.monotonic(), time.process_time()
while time.monotonic() - start < span:
    for process in psutil.process_iter(["cpu_times", "memory_info", "num_threads"]):
        process.info
    sweeps += 1
    time.sleep(max(0.0, start + sweeps / 64 - time.monotonic()))
print(sweeps, (time.process_time() - used) * 1000, time.monotonic() - start)
PYTHON
    read -r sweeps cpu secs <"$WORK/psutil"
    row "psutil ($(awk "BEGIN { printf \"%.0f\", $sweeps / $secs }") sweeps a second)" "$sweeps" "$cpu" "$secs"
}

use_plugin() {
    fetch_peer netdata-core || { echo "  apps.plugin cannot be had" >&2; return; }
    local root=$PEERS/netdata-core/root
    # It ends with its standard input.
    mkfifo "$WORK/orders"
    sleep 100000 >"$WORK/orders" &
    STARTED+=("$!")
    start apps.plugin env LD_LIBRARY_PATH="$(find "$root" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)" \
        NETDATA_USER_CONFIG_DIR="$WORK" NETDATA_STOCK_CONFIG_DIR="$root/usr/lib/netdata/conf.d" \
        bash -c 'exec "$1" 1 <"$2"' _ "$root/usr/lib/netdata/plugins.d/apps.plugin" "$WORK/orders"
    lasting apps.plugin
}

use_pmdaproc() {
    fetch_peer pcp && peer_program pcp pmval || { echo "  pmdaproc cannot be had" >&2; return; }
    # Its files name each other by where they would be installed.
    sed "s#=/#=$PEER_ROOT/#" "$PEER_ROOT/etc/pcp.conf" >"$WORK/pcp.conf"
    local library=$PEER_ROOT/usr/lib/pcp/pmdas/proc
    start pmdaproc env LD_LIBRARY_PATH="$PEER_LIBRARIES" PCP_CONF="$WORK/pcp.conf" "$PROGRAM" \
        -L -K clear -K "add,3,$library/pmda_proc.so,proc_init" -n "$library/root_proc" -t 1 proc.psinfo.utime
    lasting pmdaproc
}

echo "the sensor's ways"
taskset -cp "0-$((CORES - 1))" $$ >/dev/null
(cd "$ROOT" && cargo bench -q -p sensor --bench processes -- "$SPAN" "$IDLE")

for ((i = 0; i < IDLE; i++)); do
    sleep 100000 &
    STARTED+=("$!")
done
echo "others, $(ps -e --no-headers | wc -l) processes"
use_psutil
if fetch_peer atop && peer_program atop atop; then
    start_peer atop -w "$WORK/atop.raw" 1
    lasting atop
fi
if fetch_peer sysstat && peer_program sysstat pidstat; then
    start_peer pidstat -u -r -d -h -p ALL 1
    lasting pidstat
fi
use_plugin
use_pmdaproc
