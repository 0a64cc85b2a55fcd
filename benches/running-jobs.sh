#!/usr/bin/env bash
# Ten thousand running jobs in one domain: real processes of real jobs on real sensors, each with process numbers of its own,
# and a representative that follows the log of the controller. None may be lost.
#
# running-jobs.sh [HOSTS] [JOBS] [SECONDS]   20 hosts with 500 jobs each, which run for 120 s
#
# Prints how soon the jobs are found as running, what the representative and a host cost meanwhile, and when all have ended, how
# many have a record, a usage and a whole curve, and how far their CPU time is from what wait4 says. Fails if one is lacking.
# As root: each host is a namespace of process numbers. Four gibibytes of memory.
set -euo pipefail
source "$(dirname "$0")/measure.sh"
source "$(dirname "$0")/domain-daemons.sh"
require_visperf
[ "$(id -u)" = 0 ] || die "expected root, which may make namespaces and run jobs of other users"

HOSTS=${1:-20} JOBS=${2:-500} SPAN=${3:-120}

# The completion file is followed beside the log of the controller: it has the users.
: >"$WORK/jobcomp.log"
TAILS=$(printf '[[sensor.tail]]\npath = "%s"\nfilter = "slurm-jobcomp"' "$WORK/jobcomp.log")
TAILS=$TAILS start_head taskset -c "$MEASURED_CORE"
for ((host = 1; host <= HOSTS; host++)); do
    # The kernel programs do not know the numbers of a namespace.
    SENSOR='process_source = "procfs"' join_domain "$(printf 'm%02d' "$host")" unshare --pid --fork --mount-proc --kill-child=TERM
done
await 60 hosts_live $((HOSTS + 1)) || die "not all hosts report: $(tail -n 5 "$WORK/head.out")"
machine
python3 "$BENCHES/running-jobs.py" story "$STATES" "$HEAD_PID" "$HOSTS" "$JOBS" "$SPAN"
