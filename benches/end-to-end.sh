#!/usr/bin/env bash
# From a log of a million lines on disk to events: visperf, grep, rsyslog and syslog-ng on the same file, each
# pinned to the same core, in turn, several rounds; medians of processor time and the ratios.
#
# end-to-end.sh [ROUNDS]   (3; VISPERF_LINES says how many lines, 1,000,000)
#
# visperf is the ordinary sensor: checkpointing, joining, sampling and answering are on. Its time is that of the
# whole process until `sensor.files` reports `lag_bytes` 0. A peer's time is that of its whole process until its JSON
# lines are all on disk; how many must be there is counted by grep.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/peers.sh"
require_visperf

ROUNDS=${1:-3}
LINES_WANTED=${VISPERF_LINES:-1000000}
LOG=$WORK/slurmctld.log
GIVE_UP_SECONDS=${VISPERF_GIVE_UP_SECONDS:-300}

python3 "$BENCHES/make-log.py" "$RECORDED" "$LINES_WANTED" "$LOG"
python3 "$BENCHES/filter-patterns.py" "$ROOT/log-filters/filters/slurmctld.toml" >"$WORK/pattern"
TRUTH=$(LC_ALL=C grep -cEf "$BENCHES/peers/events.ere" "$LOG")
echo "$(du -m "$LOG" | cut -f1) MiB; $TRUTH lines that are events"
machine

# record NAME CPU_MS RSS_KIB RESULT
record() {
    echo "$2 $3 $4" >>"$WORK/$1.figures"
    printf '  %-28s %8.2f s  %6d KiB  %s\n' "$1" "$(awk "BEGIN { print $2 / 1000 }")" "$3" "$4"
}

caught_up() {
    alive "$PID" || die "the sensor ended: $(tail -n 5 "$WORK/visperf.out")"
    curl -sf "http://$ADDRESS/api/v1/sensor.files" >"$WORK/files.json" || return 1
    python3 - "$WORK/files.json" "$LINES_WANTED" <<'PYTHON'
import json, sys
files = json.load(open(sys.argv[1]))["files"]
done = len(files) == 1 and files[0]["lag_bytes"] == 0 and files[0]["lines"] >= int(sys.argv[2])
if done:
    print(files[0]["lines"], files[0]["events"], files[0]["unknown"])
sys.exit(not done)
PYTHON
}

measure_visperf() {
    rm -rf "$WORK/visperf.state"
    cat >"$WORK/visperf.toml" <<TOML
[sensor]
host = "bench"
zone = "UTC"
first_start = "beginning"
[[sensor.tail]]
path = "$LOG"
filter = "slurmctld"
TOML
    start_sensor visperf "$WORK/visperf.toml"
    await "$GIVE_UP_SECONDS" caught_up >"$WORK/caught-up" || die "visperf did not catch up: $(cat "$WORK/files.json")"
    record visperf "$(cpu_ms "$PID")" "$(memory_kib "$PID" VmHWM)" \
        "$(awk '{ printf "%d lines, %d events, %d lines unknown", $1, $2, $3 }' "$WORK/caught-up"), state $(du -sm "$WORK/visperf.state" | cut -f1) MiB"
    stop "$PID"
}

# In the C locale, where grep is fastest: in UTF-8 these patterns cost it a hundred times as much.
measure_grep() {
    local name=$1 matched seconds
    TIMEFORMAT='%U %S'
    { time matched=$(LC_ALL=C /usr/bin/time -f '%M' -o "$WORK/grep.rss" \
        taskset -c "$MEASURED_CORE" grep -cEf "$WORK/pattern" "$LOG"); } 2>"$WORK/grep.time"
    seconds=$(awk '{ printf "%d", ($1 + $2) * 1000 }' "$WORK/grep.time")
    record "$name" "$seconds" "$(tail -n 1 "$WORK/grep.rss")" "$matched lines match"
}

fill_in() {
    sed -e "s|@LOG@|$LOG|g" -e "s|@OUTPUT@|$OUTPUT|g" -e "s|@STATE@|$STATE|g" \
        -e "s|@RULES@|$BENCHES/peers/slurmctld.rulebase|g" "$1" >"$2"
}

all_written() {
    alive "$PID" || die "$1 ended: $(tail -n 5 "$WORK/$1.out")"
    local size
    size=$(stat -c %s "$OUTPUT" 2>/dev/null || echo 0)
    # Lines are counted only when the file has stopped to grow.
    if [ "$size" -eq 0 ] || [ "$size" -ne "${LAST_SIZE:-0}" ]; then
        LAST_SIZE=$size
        return 1
    fi
    [ "$(wc -l <"$OUTPUT")" -ge "$TRUTH" ]
}

# measure_peer NAME ARGUMENTS...: PROGRAM is set; it writes JSON lines to OUTPUT.
measure_peer() {
    local name=$1
    LAST_SIZE=0
    start_peer "$@"
    if ! await "$GIVE_UP_SECONDS" all_written "$name"; then
        tail -n 5 "$WORK/$name.out" >&2
        echo "  $name: $(wc -l <"$OUTPUT" 2>/dev/null || echo 0) of $TRUTH JSON lines after $GIVE_UP_SECONDS s; not counted" >&2
    else
        sleep 0.5
        record "$name" "$(cpu_ms "$PID")" "$(memory_kib "$PID" VmHWM)" "$(check_extraction "$name")"
    fi
    stop "$PID"
    rm -rf "$OUTPUT" "$STATE"
}

# What a peer wrote, checked: as many JSON objects as there are events, each with the time and the kind.
check_extraction() {
    python3 - "$OUTPUT" "$TRUTH" "$1" <<'PYTHON'
import collections, json, sys
kinds, fields = collections.Counter(), collections.Counter()
for line in open(sys.argv[1], encoding="utf-8"):
    event = json.loads(line)
    kinds[event["kind"]] += 1
    assert event["time"].startswith("2026-"), event
    fields.update(name for name in ("job", "user", "host", "code") if event.get(name))
total = sum(kinds.values())
if total != int(sys.argv[2]):
    sys.exit(f"{sys.argv[3]}: {total} JSON lines where {sys.argv[2]} were expected: {kinds}")
print(f"{total} JSON lines;", ", ".join(f"{count} {name}" for name, count in sorted(fields.items())))
PYTHON
}

measure_rsyslog() {
    peer_program rsyslog rsyslogd || { echo "  rsyslog: not there; run-all.sh fetches it" >&2; return; }
    OUTPUT=$WORK/rsyslog.json STATE=$WORK/rsyslog.state
    mkdir -p "$STATE"
    fill_in "$BENCHES/peers/rsyslog.conf" "$WORK/rsyslog.conf"
    [ -z "$PEER_ROOT" ] || export RSYSLOG_MODDIR="$(peer_folder imfile.so)/"
    measure_peer rsyslog -n -f "$WORK/rsyslog.conf" -i "$STATE/pid"
}

measure_syslog_ng() {
    peer_program syslog-ng-core syslog-ng || { echo "  syslog-ng: not there; run-all.sh fetches it" >&2; return; }
    OUTPUT=$WORK/syslog-ng.json STATE=$WORK/syslog-ng.state
    mkdir -p "$STATE"
    fill_in "$BENCHES/peers/syslog-ng.conf" "$WORK/syslog-ng.conf"
    local modules=()
    [ -z "$PEER_ROOT" ] || modules=(--module-path "$(peer_folder libaffile.so)")
    measure_peer syslog-ng -F --no-caps -f "$WORK/syslog-ng.conf" -R "$STATE/persist" -p "$STATE/pid" \
        -c "$STATE/control" "${modules[@]}"
}

for round in $(seq "$ROUNDS"); do
    echo "round $round, load $(machine_load)"
    measure_visperf
    measure_grep "grep -cE"
    measure_rsyslog
    measure_syslog_ng
done

column_median() {
    awk -v column="$2" '{ print $column }' "$WORK/$1.figures" | median
}

echo
echo "end to end, $LINES_WANTED lines, one core, medians of $ROUNDS rounds, load $(machine_load)"
printf '%-18s %10s %16s %14s %12s\n' program "CPU s" "lines/CPU s" "peak RSS MiB" "CPU : visperf"
own=$(column_median visperf 1)
for name in visperf "grep -cE" rsyslog syslog-ng; do
    [ -s "$WORK/$name.figures" ] || continue
    awk -v name="$name" -v cpu="$(column_median "$name" 1)" -v rss="$(column_median "$name" 2)" \
        -v lines="$LINES_WANTED" -v own="$own" 'BEGIN {
            if (cpu < 1) cpu = 1
            printf "%-18s %10.2f %16.0f %14.1f %12.2f\n", name, cpu / 1000, lines * 1000 / cpu, rss / 1024, cpu / own
        }'
done
awk -v cpu="$own" -v rss="$(column_median visperf 2)" -v lines="$LINES_WANTED" 'BEGIN {
    speed = lines * 1000 / cpu
    printf "target: 300000 lines/s on one core: %s; RSS at most 64 MiB: %s\n",
        (speed >= 300000 ? "met" : "MISSED"), (rss <= 65536 ? "met" : "MISSED")
}'
