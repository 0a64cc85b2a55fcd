#!/usr/bin/env bash
# XML-RPC calls a second and their times, against a running sensor that holds the events of a recorded log:
# on one kept connection and on a thousand, the sensor on one core and the client (wrk) on another.
#
# queries.sh [SECONDS]   (5, for each row)
#
# Times are the client's: with a thousand connections they are mostly waiting in line. Calls a CPU second are
# the sensor's processor time alone, so that the client and other users of the machine do not count.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
require_visperf
command -v wrk >/dev/null || die "wrk is not there; run-all.sh installs it"

SECONDS_EACH=${1:-5}
ulimit -n 4096
cat >"$WORK/visperf.toml" <<TOML
[sensor]
host = "bench"
zone = "UTC"
first_start = "beginning"
[[sensor.tail]]
path = "$RECORDED"
filter = "slurmctld"
TOML
start_sensor visperf "$WORK/visperf.toml"
held() {
    curl -sf "http://$ADDRESS/api/v1/sensor.events?limit=100" | grep -q job_end
}
await 30 held || die "the sensor holds no events"

call_body() {
    echo "<?xml version='1.0'?><methodCall><methodName>$1</methodName><params>${2:+<param><value><struct>$2</struct></value></param>}</params></methodCall>"
}

# row LABEL METHOD MEMBERS
row() {
    local connections figures before spent answer
    BODY=$(call_body "$2" "$3")
    export BODY
    answer=$(curl -sf -H 'Content-Type: text/xml' -d "$BODY" "http://$ADDRESS/RPC2")
    case $answer in
    *'<fault>'*) die "$2 answers a fault: $answer" ;;
    *'<methodResponse>'*) ;;
    *) die "$2 answers no XML-RPC: $answer" ;;
    esac
    for connections in 1 1000; do
        before=$(cpu_ms "$PID")
        figures=$(taskset -c "$OTHER_CORE" wrk -t1 -c"$connections" -d"${SECONDS_EACH}s" --timeout 10s \
            -s "$BENCHES/peers/call.lua" "http://$ADDRESS" | grep '^figures')
        spent=$(($(cpu_ms "$PID") - before))
        # shellcheck disable=SC2086
        set -- "$1" "$2" "$3" $figures
        awk -v label="$1" -v connections="$connections" -v bytes="${#answer}" -v calls="$5" -v micros="$6" -v p50="$7" \
            -v p99="$8" -v most="$9" -v broken="${10}" -v refused="${11}" -v spent="$spent" 'BEGIN {
                printf "%-28s %6d %9d %9.0f %11.0f %9.2f %9.2f %9.2f %7d\n", label, connections, bytes,
                    calls * 1e6 / micros, calls * 1000 / (spent ? spent : 1), p50 / 1000, p99 / 1000, most / 1000, broken + refused }'
    done
}

machine
echo
echo "XML-RPC, ${SECONDS_EACH} s a row, load $(machine_load)"
printf '%-28s %6s %9s %9s %11s %9s %9s %9s %7s\n' method conns "bytes" "calls/s" "calls/CPU s" "p50 ms" "p99 ms" "max ms" errors
row daemon.info daemon.info ""
row "sensor.metrics node_load1" sensor.metrics "<member><name>name</name><value><string>node_load1</string></value></member>"
row "sensor.events, 100 events" sensor.events "<member><name>limit</name><value><int>100</int></value></member>"
echo "sensor: peak RSS $(($(memory_kib "$PID" VmHWM) / 1024)) MiB; load $(machine_load) at the end"
