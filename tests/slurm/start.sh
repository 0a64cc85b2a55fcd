#!/usr/bin/env bash
# A whole Slurm on loopback in a folder of its own: munged, slurmctld and slurmd, all as root.
#
#   start.sh FOLDER      starts it and waits until its one host takes jobs; SLURM_CONF is FOLDER/slurm.conf then,
#                        and the first job has the number FIRST_JOB, by default 1; the host has CPUS, by default 2,
#                        however many it really has; with ACCOUNTING=1 also slurmdbd, with MariaDB, that
#                        uses DATABASE_MEMORY, by default 256M; with GROUPS_MIB=N each job has control groups and no
#                        more memory than it asks for, of N MiB in all
#   start.sh FOLDER stop ends it
#
# It needs Debian's munge, slurmctld, slurmd and slurm-client, for accounting also slurmdbd and mariadb-server, and touches
# nothing outside FOLDER but control groups.
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
    # Slurm leaves its own group, which another Slurm of this host may use.
    rmdir /sys/fs/cgroup/*/slurm_"$(hostname -s)"/{uid_0,} 2> /dev/null || true
    end slurmctld
    end slurmdbd
    end mariadb
    end munged
    exit 0
fi

# Ports that are free now.
read -r control work accounting database < <(python3 -c '
import socket
free = [socket.socket() for _ in range(4)]
for one in free:
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in free))')

processes=linuxproc tasks=none amount=CR_Core memory=
if [ -n "${GROUPS_MIB:-}" ]; then
    processes=cgroup tasks=cgroup amount=CR_Core_Memory memory="RealMemory=$GROUPS_MIB"
fi

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
ProctrackType=proctrack/$processes
TaskPlugin=task/$tasks
SelectType=select/cons_tres
SelectTypeParameters=$amount
SchedulerParameters=sched_interval=1
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=${CPUS:-2} $memory State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP
CONF

if [ -n "$memory" ]; then
    cat > "$folder/cgroup.conf" <<CONF
CgroupPlugin=autodetect
ConstrainRAMSpace=yes
ConstrainCores=no
CONF
fi

munged --force --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munged.seed"

# start_accounting: a database server and slurmdbd, which slurmctld reports to.
start_accounting() {
    mariadb-install-db --no-defaults --datadir="$folder/mariadb" --auth-root-authentication-method=normal \
        --skip-test-db > "$folder/mariadb-install.log" 2>&1
    mariadbd --no-defaults --user=root --datadir="$folder/mariadb" --socket="$folder/mariadb.socket" \
        --bind-address=127.0.0.1 --port="$database" --pid-file="$folder/mariadb.pid" \
        --innodb-buffer-pool-size="${DATABASE_MEMORY:-256M}" --local-infile=1 --innodb-lock-wait-timeout=900 --log-error="$folder/mariadb.log" \
        < /dev/null > /dev/null 2>&1 &
    disown
    for _ in $(seq 300); do
        mariadb --no-defaults --socket="$folder/mariadb.socket" --execute='select 1' > /dev/null 2>&1 && break
        sleep 0.1
    done
    mariadb --no-defaults --socket="$folder/mariadb.socket" \
        --execute="create user slurm@'%' identified by 'trial'; grant all on *.* to slurm@'%'"
    (umask 077 && cat > "$folder/slurmdbd.conf" << CONF
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
DbdHost=localhost
DbdPort=$accounting
SlurmUser=root
PidFile=$folder/slurmdbd.pid
LogFile=$folder/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=$database
StorageUser=slurm
StoragePass=trial
CONF
    )
    cat >> "$SLURM_CONF" << CONF
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort=$accounting
AccountingStoragePass=$folder/munge.socket
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
CONF
    SLURM_CONF=$folder/slurmdbd.conf slurmdbd
    for _ in $(seq 300); do
        timeout 5 sacctmgr --immediate add cluster trial > /dev/null 2>&1 && break
        sleep 0.1
    done
    timeout 5 sacctmgr --noheader --parsable2 list cluster format=cluster | grep -q trial
}

[ -z "${ACCOUNTING:-}" ] || start_accounting
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
