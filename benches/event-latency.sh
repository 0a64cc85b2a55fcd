#!/usr/bin/env bash
# From a line in a member's log to a subscriber of its domain: a representative and its members, all of them ordinary
# sensors joined by the real transport on loopback, and a client that waits in `domain.events` on one kept connection.
#
# event-latency.sh [EVENTS] [EVERY_MS] [FOLDER] [MEMBERS] [ROUNDS]   (500, 50, -, 20, 3; FOLDER is where all keep their
# state). The members are written to in turn.
#
# The time is from before the line is written until the client has the whole answer that holds it. Two disks' syncs
# are in it, the member's and the representative's, so the disk is measured too: one small append and fdatasync.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/domain-daemons.sh"
require_visperf

EVENTS=${1:-500} EVERY_MS=${2:-50} MEMBERS=${4:-20} ROUNDS=${5:-3}
STATES=$(mktemp -d "${3:-$WORK}/visperf-latency.XXXXXX")
drop_states() { finish; rm -rf "$STATES"; }
trap drop_states EXIT

# Members are hosts of their own: no core is kept from them.
taskset -cp "0-$((CORES - 1))" $$ >/dev/null
start_head
for ((nth = 0; nth < MEMBERS; nth++)); do
    join_domain "m$nth"
done
await 60 hosts_live $((MEMBERS + 1)) || die "not all members report: $(tail -n 5 "$WORK/m0.out")"
sleep 3
machine
python3 - "$HEAD" "$WORK" "$EVENTS" "$EVERY_MS" "$STATES" "$MEMBERS" "$ROUNDS" <<'PYTHON'
import datetime, http.client, json, os, statistics, sys, threading, time
address, work, states = sys.argv[1], sys.argv[2], sys.argv[5]
events, every_ms, members, rounds = int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[6]), int(sys.argv[7])
connection = http.client.HTTPConnection(address, timeout=60)
def ask(cursor, wait):
    connection.request("GET", f"/api/v1/domain.events?cursor={cursor}&wait={wait}")
    return json.loads(connection.getresponse().read())
def quantile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))] * 1e3
def format_times(times):
    return f"p50 {quantile(times, 0.5):.2f} ms  p90 {quantile(times, 0.9):.2f}  p99 {quantile(times, 0.99):.2f}  max {quantile(times, 1):.2f}"
cursor = ask("end", 0)["cursor"]
files = [os.open(f"{work}/m{nth}.log", os.O_WRONLY | os.O_APPEND) for nth in range(members)]
def follow(seen):
    global cursor
    until = time.monotonic() + events * every_ms / 1e3 + 20
    while len(seen) < events and time.monotonic() < until:
        answer = ask(cursor, 5)
        now, cursor = time.perf_counter(), answer["cursor"]
        for event in answer["events"]:
            assert event["job"] not in seen, f"{event['job']} came twice"
            seen[event["job"]] = now
def measure(first):
    written, seen = {}, {}
    follower = threading.Thread(target=follow, args=(seen,))
    follower.start()
    for nth in range(first, first + events):
        stamp = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        line = f"[{stamp}] _slurm_rpc_submit_batch_job: JobId={nth} InitPrio=4294901756 usec=300\n"
        written[str(nth)] = time.perf_counter()
        os.write(files[nth % members], line.encode())
        time.sleep(every_ms / 1e3)
    follower.join()
    times = [seen[job] - written[job] for job in seen]
    print(f"{events} events, one each {every_ms} ms, {len(written) - len(seen)} not seen:  {format_times(times)}", flush=True)
    return quantile(times, 0.5), quantile(times, 0.99)
p50, p99 = (statistics.median(figure) for figure in zip(*(measure(100_000 + nth * events) for nth in range(rounds))))
verdict = "met" if p50 <= 5 and p99 <= 20 else "MISSED"
print(f"{members} members, medians of {rounds} rounds: p50 {p50:.2f} ms, p99 {p99:.2f} ms; target: 5 ms and 20 ms: {verdict}")
disk, syncs = os.open(f"{states}/probe", os.O_WRONLY | os.O_CREAT), []
for _ in range(200):
    os.write(disk, b"x" * 300)
    began = time.perf_counter()
    os.fdatasync(disk)
    syncs.append(time.perf_counter() - began)
    time.sleep(0.005)
print(f"one sync of this disk:  {format_times(syncs)}")
PYTHON
echo "load $(machine_load) at the end"
