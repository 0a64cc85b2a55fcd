#!/usr/bin/env bash
# Every figure of docs/benchmarks.md in one run: builds, fetches the other programs, measures, prints.
#
# run-all.sh   (VISPERF_LOGS says where the recorded logs are)
#
# Needs Debian or a system like it, root for apt-get where a program is missing, and some ten minutes.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/peers.sh"

missing=()
for program in wrk curl python3 prometheus-node-exporter; do
    command -v "$program" >/dev/null || missing+=("$program")
done
[ -x /usr/bin/time ] || missing+=(time)
command -v taskset >/dev/null || missing+=(util-linux)
wanted=()
command -v rsyslogd >/dev/null || wanted+=(rsyslog)
command -v syslog-ng >/dev/null || wanted+=(syslog-ng-core)
command -v gmond >/dev/null || wanted+=(ganglia-monitor)
if [ ${#missing[@]} -gt 0 ] || [ ! -e "$PEERS/ganglia-monitor/complete" ]; then
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
