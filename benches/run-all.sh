#!/usr/bin/env bash
# Every figure of docs/benchmarks.md in one run: builds, fetches the other programs, measures, prints.
#
# run-all.sh   (VISPERF_LOGS says where the recorded logs are)
#
# Needs Debian or a system like it, root for apt-get where a program is missing, and half an hour.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/peers.sh"

missing=()
for program in wrk curl python3 prometheus-node-exporter; do
    command -v "$program" >/dev/null || missing+=("$program")
done
[ -x /usr/bin/time ] || missing+=(time)
command -v taskset >/dev/null || missing+=(util-linux)
command -v ss >/dev/null || missing+=(iproute2)
command -v stunnel4 >/dev/null || missing+=(stunnel4)
[ -x /usr/sbin/sshd ] || missing+=(openssh-server)
wanted=()
command -v rsyslogd >/dev/null || wanted+=(rsyslog)
command -v syslog-ng >/dev/null || wanted+=(syslog-ng-core)
command -v gmond >/dev/null || wanted+=(ganglia-monitor)
command -v gmetad >/dev/null || wanted+=(gmetad)
command -v prometheus >/dev/null || wanted+=(prometheus)
if [ ${#missing[@]} -gt 0 ] || [ ! -e "$PEERS/prometheus/complete" ]; then
    apt-get update -qq || echo "apt-get update failed; going on with the lists that are there" >&2
fi
if [ ${#missing[@]} -gt 0 ]; then
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
for package in "${wanted[@]}"; do
    fetch_peer "$package" || echo "$package cannot be had; it is left out" >&2
done

# Building may use every core, measuring starts after it.
cd "$ROOT"
taskset -cp "0-$((CORES - 1))" $$ >/dev/null
cargo build --release -p visperf
cargo bench --no-run -p log-filters --bench lines
cargo bench --no-run -p visperf --bench members --bench domains
cargo bench --no-run -p proxy
require_visperf
export VISPERF

echo "== a. log-filters alone"
VISPERF_LOGS=$LOGS taskset -c "$MEASURED_CORE" cargo bench -q -p log-filters --bench lines -- slurmctld
echo
echo "== b. from a log on disk to events"
"$BENCHES/end-to-end.sh"
echo
echo "== c. idle"
"$BENCHES/idle.sh"
echo
echo "== d. queries"
"$BENCHES/queries.sh"
echo
echo "== e. from a line to a subscriber"
"$BENCHES/event-latency.sh"
echo
echo "== f. a representative that takes all it can"
"$BENCHES/domain.sh" ingest
echo
echo "== g. five hundred members"
"$BENCHES/domain.sh" members
echo
echo "== h. the same number of samples elsewhere"
"$BENCHES/domain.sh" peers
echo
echo "== i. a directory of five thousand domains"
"$BENCHES/directory.sh"
echo
echo "== j. every process"
"$BENCHES/processes.sh"
if [ "$(id -u)" = 0 ]; then "$BENCHES/stream.sh"; fi
echo
echo "== k. the way through a proxy"
"$BENCHES/tunnel.sh"
echo
echo "== l. viewers at a proxy"
"$BENCHES/viewers.sh"
