#!/usr/bin/env bash
# A whole Slurm on loopback in a folder of its own: munged, slurmctld and slurmd, all as root.
#
#   start.sh FOLDER      starts it and waits until its one host takes jobs; SLURM_CONF is FOLDER/slurm.conf then,
#                        and the first job has the number FIRST_JOB, by default 1; the host has CPUS, by default 2,
#                        however many it really has
#   start.sh FOLDER stop ends it
#
# It needs Debian's munge, slurmctld, slurmd and slurm-client, and touches nothing outside FOLDER.
set -euo pipefail
folder=$(realpath "$1")
export SLURM_CONF=$folder/slurm.conf

# end NAME: the daemon whose number stands in FOLDER/NAME.pid, and wait until it is gone.
end() {
    local pid
    pid=$(cat "$folder/$1.pid" 2> /dev/null) || return 0
    kill "$pid" 2> /dev/null || return 0
    for _ in $(seq 100); do
        kill -0 "$pid" 2> /dev/null || return 0
        sleep 0.1
    done
    kill -9 "$pid" 2> /dev/null || true
}

if [ "${2:-start}" = stop ]; then
    scancel --user=root 2> /dev/null || true
    end slurmd
    end slurmctld
    end munged
    exit 0
fi

# Two ports that nobody has now.
read -r control work < <(python3 -c '
import socket
pair = [socket.socket(), socket.socket()]
for one in pair:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in pair))')

mkdir -p "$folder/state" "$folder/spool"
chmod 755 "$folder"
head -c 1024 /dev/urandom > "$folder/munge.key"
chmod 600 "$folder/munge.key"
host=$(hostname -s)
cat > "$SLURM_CONF" <<CONF
ClusterName=trial
FirstJobId=${FIRST_JOB:-1}
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$control
SlurmdPort=$work
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=10
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/jobcomp.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=${CPUS:-2} State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
CONF

munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munged.seed"
slurmctld -i
slurmd
for _ in $(seq 300); do
    state=$(sinfo --noheader --format=%t 2> /dev/null || true)
    [ "$state" = idle ] && exit 0
    sleep 0.1
done
printf 'the host is %s and takes no jobs; its logs:\n' "${state:-unknown}" >&2
tail -n 20 "$folder"/*.log >&2
exit 1
