#!/usr/bin/env bash
# From a line in a member's log to a subscriber of its domain: a member and a representative, two ordinary sensors
# joined by the real transport on loopback, and a client that waits in `domain.events` on one kept connection.
#
# event-latency.sh [EVENTS] [EVERY_MS] [FOLDER]   (500, 50; FOLDER is where both keep their state)
#
# The time is from before the line is written until the client has the whole answer that holds it. Two disks' syncs
# are in it, the member's and the representative's, so the disk is measured too: one small append and fdatasync.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
require_visperf

EVENTS=${1:-500} EVERY_MS=${2:-50}
STATE=$(mktemp -d "${3:-$WORK}/visperf-latency.XXXXXX")
drop_state() { finish; rm -rf "$STATE"; }
trap drop_state EXIT

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# config_of NAME PORT: its configuration, with a log of its own.
config_of() {
    : >"$WORK/$1.log"
    printf '[sensor]\nzone = "UTC"\n[[sensor.tail]]\npath = "%s"\nfilter = "slurmctld"\n[overlay]\nlisten = "127.0.0.1:%s"\n' \
        "$WORK/$1.log" "$2" >"$WORK/$1.toml"
}

start_one() {
    "$VISPERF" sensor --config "$WORK/$1.toml" --state "$STATE/$1" --listen 127.0.0.1:0 >"$WORK/$1.out" 2>&1 </dev/null &
    STARTED+=("$!")
    await 30 test -s "$STATE/$1/listen" || die "$1 told no address: $(tail -n 5 "$WORK/$1.out")"
}

port=$(free_port)
config_of head "$port"
config_of member "$(free_port)"
"$VISPERF" domain create BENCH --host head --state "$STATE/head" >/dev/null
start_one head
TOKEN=$("$VISPERF" token create --state "$STATE/head" --address "127.0.0.1:$port" | grep -o 'visperf1-[^ ]*')
"$VISPERF" join "$TOKEN" --host member --state "$STATE/member" >/dev/null
start_one member
HEAD=$(sensor_address "$STATE/head")
both() { curl -sf "http://$HEAD/api/v1/domain.hosts" | grep -q '"host": *"member"'; }
await 60 both || die "the member does not report: $(tail -n 5 "$WORK/member.out")"
sleep 3
machine
python3 - "$HEAD" "$WORK/member.log" "$EVENTS" "$EVERY_MS" "$STATE" "$RECORDED" <<'PYTHON'
import datetime, http.client, json, os, re, sys, threading, time
address, log, events, every_ms, state, recorded = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6]
connection = http.client.HTTPConnection(address, timeout=60)
def ask(cursor, wait):
    connection.request("GET", f"/api/v1/domain.events?cursor={cursor}&wait={wait}")
    return json.loads(connection.getresponse().read())
def quantiles(times):
    times = sorted(times)
    at = lambda share: times[min(len(times) - 1, int(len(times) * share))] * 1e3
    return f"p50 {at(0.5):.2f} ms  p90 {at(0.9):.2f}  p99 {at(0.99):.2f}  max {at(1):.2f}"
written, seen = {}, {}
cursor = ask("end", 0)["cursor"]
def follow():
    global cursor
    until = time.monotonic() + events * every_ms / 1e3 + 20
    while len(seen) < events and time.monotonic() < until:
        answer = ask(cursor, 5)
        now, cursor = time.perf_counter(), answer["cursor"]
        for event in answer["events"]:
            assert event["job"] not in seen, f"{event['job']} came twice"
            seen[event["job"]] = now
follower = threading.Thread(target=follow)
follower.start()
file = os.open(log, os.O_WRONLY | os.O_APPEND)
for nth in range(events):
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    line = f"[{stamp}] _slurm_rpc_submit_batch_job: JobId={100000 + nth} InitPrio=4294901756 usec=300\n"
    written[str(100000 + nth)] = time.perf_counter()
    os.write(file, line.encode())
    time.sleep(every_ms / 1e3)
follower.join()
lost = len(written) - len(seen)
print(f"{events} events, one each {every_ms} ms, {lost} not seen:  {quantiles([seen[job] - written[job] for job in seen])}")
disk, syncs = os.open(f"{state}/probe", os.O_WRONLY | os.O_CREAT), []
for _ in range(200):
    os.write(disk, b"x" * 300)
    began = time.perf_counter()
    os.fdatasync(disk)
    syncs.append(time.perf_counter() - began)
    time.sleep(0.005)
print(f"one sync of this disk:  {quantiles(syncs)}")
PYTHON
echo "load $(machine_load) at the end"
