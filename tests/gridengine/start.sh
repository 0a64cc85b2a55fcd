#!/usr/bin/env bash
# A whole Grid Engine on loopback in a folder of its own: sge_qmaster and sge_execd, as root.
#
#   start.sh FOLDER      starts it and waits until its one host takes jobs; the environment of FOLDER/settings.sh is for its
#                        commands then (qsub, qstat, qacct, qdel); the first job has the number FIRST_JOB, by default 1; the
#                        host has CPUS slots, by default 2
#   start.sh FOLDER stop ends it
#
# It needs Debian's gridengine-master, gridengine-exec and gridengine-client, and touches nothing outside FOLDER.
set -euo pipefail
folder=$(realpath "$1")
tools=/usr/lib/gridengine
host=$(hostname)

if [ "${2:-start}" = stop ]; then
    # shellcheck disable=SC1091  # written below
    . "$folder/settings.sh"
    timeout 10 qdel -f -u '*' > /dev/null 2>&1 || true
    timeout 10 qconf -ke all > /dev/null 2>&1 || true
    timeout 10 qconf -km > /dev/null 2>&1 || true
    for pid in $(cat "$folder"/execd/*/execd.pid "$folder/spool/qmaster.pid" 2> /dev/null); do
        for _ in $(seq 50); do
            kill -0 "$pid" 2> /dev/null || break
            sleep 0.1
        done
        kill -9 "$pid" 2> /dev/null || true
    done
    exit 0
fi

read -r control work < <(python3 -c '
import socket
free = [socket.socket() for _ in range(2)]
for one in free:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in free))')

common=$folder/default/common
mkdir -p "$common" "$folder/execd" "$folder/spool"
chmod 755 "$folder"
for name in bin lib util utilbin; do
    ln -sfn "/var/lib/gridengine/$name" "$folder/$name"
done
cat > "$folder/settings.sh" <<CONF
export SGE_ROOT=$folder SGE_CELL=default SGE_QMASTER_PORT=$control SGE_EXECD_PORT=$work SGE_CLUSTER_NAME=trial
CONF
# shellcheck disable=SC1091  # just written
. "$folder/settings.sh"
cat > "$common/bootstrap" <<CONF
admin_user              root
default_domain          none
ignore_fqdn             true
spooling_method         classic
spooling_lib            libspoolc
spooling_params         $common;$folder/spool
binary_path             /usr/sbin
qmaster_spool_dir       $folder/spool
security_mode           none
listener_threads        2
worker_threads          2
scheduler_threads       1
CONF
echo "$host" > "$common/act_qmaster"
# The address of loopback has another name.
echo "$host localhost" > "$common/host_aliases"
sed -e "s|^execd_spool_dir.*|execd_spool_dir $folder/execd|" -e 's|^min_uid.*|min_uid 0|' -e 's|^min_gid.*|min_gid 0|' \
    -e 's|^gid_range.*|gid_range 20000-20100|' -e 's|^load_report_time.*|load_report_time 00:00:01|' \
    -e 's|^loglevel.*|loglevel log_info|' /usr/share/gridengine/default-configuration > "$folder/configuration"
{
    "$tools/spoolinit" classic libspoolc "$common;$folder/spool" init
    "$tools/spooldefaults" configuration "$folder/configuration"
    "$tools/spooldefaults" complexes /usr/share/gridengine/util/resources/centry
    "$tools/spooldefaults" usersets /usr/share/gridengine/util/resources/usersets
    "$tools/spooldefaults" managers root
} > "$folder/init.log" 2>&1
echo $((${FIRST_JOB:-1} - 1)) > "$folder/spool/jobseqnum"
sge_qmaster > "$folder/qmaster.log" 2>&1 < /dev/null
for _ in $(seq 100); do
    timeout 5 qconf -sm > /dev/null 2>&1 && break
    sleep 0.1
done
{
    qconf -ah "$host" || true
    qconf -as "$host" || true
    # Jobs are not held back because the host has other work.
    qconf -ssconf | sed -e 's/^schedule_interval.*/schedule_interval 0:0:1/' \
        -e 's/^job_load_adjustments.*/job_load_adjustments NONE/' > "$folder/scheduler"
    qconf -Msconf "$folder/scheduler"
    qconf -sp smp > "$folder/smp" 2> /dev/null || printf '%s\n' 'pe_name smp' 'slots 999' 'user_lists NONE' 'xuser_lists NONE' \
        'start_proc_args NONE' 'stop_proc_args NONE' 'allocation_rule $pe_slots' 'control_slaves FALSE' \
        'job_is_first_task TRUE' 'urgency_slots min' 'accounting_summary FALSE' 'qsort_args NONE' > "$folder/smp"
    qconf -Ap "$folder/smp"
    qconf -sq > "$folder/queue"
    sed -i -e 's/^qname.*/qname all.q/' -e "s/^hostlist.*/hostlist $host/" -e "s/^slots.*/slots ${CPUS:-2}/" \
        -e 's/^pe_list.*/pe_list smp/' -e 's/^load_thresholds.*/load_thresholds NONE/' -e 's|^shell .*|shell /bin/bash|' -e 's/^shell_start_mode.*/shell_start_mode unix_behavior/' "$folder/queue"
    qconf -Aq "$folder/queue"
    sge_execd
} > "$folder/setup.log" 2>&1 < /dev/null
for _ in $(seq 300); do
    timeout 5 qstat -f 2> /dev/null | grep -q "all.q@.*lx-amd64 *$" && exit 0
    sleep 0.1
done
printf 'the host takes no jobs:\n' >&2
cat "$folder"/*.log "$folder/spool/messages" >&2
qstat -f >&2
exit 1
