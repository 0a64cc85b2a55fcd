#!/usr/bin/env python3
"""Jobs for running-jobs.sh: starts them, writes what a controller of Slurm would log, and compares what visperf says of them.

running-jobs.py story STATES HEAD_PID HOSTS JOBS SECONDS
running-jobs.py hold FIRST JOBS     processes of jobs, until standard input ends; then the CPU time of each by wait4(2), and its end
"""

import collections
import http.client
import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time

USER = 2001
# A job computes for a while, some longer than others, and then waits for its end.
PROGRAM = 'BEGIN { for (i = 0; i < %d; i++) x += i; getline }'
# How long after a job its host gets the next one, in seconds.
START_EVERY = 0.05
# A record has the usage of a job once its host has seen the end, written it, and reported it.
USAGE_WITHIN = 180

# Longest time without a point of a curve, in seconds: at 1 Hz, on a machine with ten thousand processes.
GAP_MOST = 5

# Jobs of which the whole record is asked for.
SAMPLED = 200


def hold(first, jobs):
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    end, held = os.pipe()
    started = {}
    for number in range(first, first + jobs):
        pid = os.fork()
        if pid == 0:
            os.dup2(end, 0)
            os.close(held)
            os.setgid(USER)
            os.setuid(USER)
            program = PROGRAM % (20_000 * (1 + number % 5))
            os.execvpe("awk", ["awk", program], {"PATH": "/usr/bin:/bin", "SLURM_JOB_ID": str(number)})
        started[pid] = number
        # A scheduler starts its jobs one after the other, too: the machine has other hosts.
        time.sleep(START_EVERY)
    print("ready", flush=True)
    sys.stdin.read()
    os.close(held)
    used = {}
    while len(used) < len(started):
        pid, _, usage = os.wait4(-1, 0)
        used[started[pid]] = (usage.ru_utime + usage.ru_stime, time.time())
    json.dump(used, sys.stdout)


class Socket(http.client.HTTPConnection):
    """A daemon, asked over its local socket: as root, which sees every job."""

    def __init__(self, state):
        super().__init__("localhost", timeout=60)
        self.path = os.path.join(state, "sensor.sock")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def call(self, method, **params):
        self.request("POST", f"/api/v1/{method}", json.dumps(params), {"content-type": "application/json"})
        answer = self.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{method}: {answer.status} {text[:500].decode()}")
        return json.loads(text)


def all_jobs(head):
    jobs, cursor = [], None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page = head.call("jobs.search", limit=1000, **more)
        jobs += page["jobs"]
        cursor = page.get("next")
        if not cursor:
            return jobs


def cpu_secs(pid):
    """CPU time of a process's threads."""
    nanos = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat") as stat:
                nanos += int(stat.read().split()[0])
        except FileNotFoundError:
            pass
    return nanos / 1e9


def rss_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmRSS"].split()[0]) / 1024


def until(what, within, look):
    """Waits until nothing is lacking any more; returns the seconds that it took."""
    began = time.monotonic()
    while True:
        lacking = look()
        if not lacking:
            return time.monotonic() - began
        if time.monotonic() - began > within:
            raise SystemExit(f"running-jobs: {what}: not within {within} s: {lacking}")
        time.sleep(0.1)


class Controller:
    """The log of a controller, and its completion file."""

    def __init__(self, folder):
        self.log = open(os.path.join(folder, "head.log"), "a")
        self.completed = open(os.path.join(folder, "jobcomp.log"), "a")
        self.started = {}

    def start(self, jobs):
        for number, host in jobs.items():
            self.write(f"_slurm_rpc_submit_batch_job: JobId={number} InitPrio=1 usec=300")
            self.write(f"sched: Allocate JobId={number} NodeList={host} #CPUs=1 Partition=normal")
            self.started[number] = stamp()
        self.log.flush()

    def end(self, jobs):
        for number, host in jobs.items():
            self.write(f"_job_complete: JobId={number} WEXITSTATUS 0")
            self.write(f"_job_complete: JobId={number} done")
            self.completed.write(
                f"JobId={number} UserId=ada({USER}) GroupId=ada({USER}) Name=hold JobState=COMPLETED Partition=normal TimeLimit=60 "
                f"StartTime={self.started[number]} EndTime={stamp()} NodeList={host} NodeCnt=1 ProcCnt=1 WorkDir=/home/ada ExitCode=0:0 \n"
            )
        self.log.flush()
        self.completed.flush()

    def write(self, text):
        now = time.time()
        print(f"[{stamp(now)}.{int(now * 1000) % 1000:03}] {text}", file=self.log)


def stamp(now=None):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))


def start_holders(states, hosts, jobs):
    """The processes of all jobs, each host's among the process numbers of its sensor."""
    holders = []
    for nth in range(hosts):
        sensor = sensor_of(states, f"m{nth + 1:02}")
        command = ["nsenter", "-t", str(sensor), "-p", "-m", sys.executable, os.path.abspath(__file__), "hold"]
        holder = subprocess.Popen(
            [*command, str(1 + nth * jobs), str(jobs)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        holders.append(holder)
    for holder in holders:
        assert holder.stdout.readline() == "ready\n"
    return holders


def sensor_of(states, host):
    """Number of the process of a host's sensor."""
    found = subprocess.run(["pgrep", "-f", f"^[^ ]*visperf sensor .*--state {states}/{host} "], text=True, stdout=subprocess.PIPE)
    return int(found.stdout.split()[0])


def end_holders(holders):
    for holder in holders:
        holder.stdin.close()
    used = {}
    for holder in holders:
        used.update({int(number): figures for number, figures in json.loads(holder.stdout.read()).items()})
        holder.wait()
    return used


def running(head, head_pid, host_pid, count, span):
    """What the representative and a host cost while the jobs run, and how long a search takes."""
    took = []
    began, at = (cpu_secs(head_pid), cpu_secs(host_pid)), time.monotonic()
    while time.monotonic() - at < span:
        asked = time.monotonic()
        found = head.call("jobs.search", state="running", limit=100)
        took.append(time.monotonic() - asked)
        assert found["total"] == count or found["total_is_more"], (found["total"], count)
        time.sleep(1)
    wall = time.monotonic() - at
    shares = [(now - before) * 100 / wall for now, before in zip((cpu_secs(head_pid), cpu_secs(host_pid)), began)]
    print(f"for {wall:.0f} s: representative {shares[0]:.1f} % of a core, {rss_mib(head_pid):.0f} MiB; a host {shares[1]:.1f} %, {rss_mib(host_pid):.0f} MiB")
    print(f"first page of the running jobs: median {statistics.median(took) * 1000:.1f} ms, largest {max(took) * 1000:.1f} ms", flush=True)


def unfinished(head, open_jobs):
    """Which jobs have not ended or have no usage, and of these which have no complete one; those that have are removed."""
    lacking = [job for job in all_jobs(head) if not job.get("usage") or job["state"] != "ended"]
    if lacking:
        by_host = collections.Counter(job["hosts"][0] if job["hosts"] else "no host" for job in lacking)
        states = collections.Counter((job["state"], "usage" if job.get("usage") else "no usage") for job in lacking)
        return f"{len(lacking)} jobs: {dict(states)}, {dict(by_host)}"
    for number in list(open_jobs):
        record = head.call("jobs.get", job=f"slurm:{number}")
        if record["job"]["state"] != "ended" or not any(usage["is_over"] for usage in record["usage"]):
            return f"job {number} has not its whole usage, and {len(open_jobs) - 1} more may not"
        open_jobs.remove(number)
    return ""


def compare(records, used, hosts):
    """What the records say, and how far their CPU time is from that of wait4(2)."""
    by_number = collections.defaultdict(list)
    for record in records:
        by_number[int(record["job"])].append(record)
    once = sum(len(by_number[number]) == 1 for number in used)
    ended = sum(by_number[number][0]["outcome"] == "ok" for number in used if by_number[number])
    on_host = sum(by_number[number][0]["hosts"] == [hosts[number]] for number in used if by_number[number])
    measured = {number: by_number[number][0]["usage"] for number in used if by_number[number] and by_number[number][0].get("usage")}
    cpu = [abs(measured[number]["cpu_secs"] - used[number][0]) for number in measured]
    print(f"records: {len(records)} of {len(used)}; once {once}, ended as they did {ended}, on their host {on_host}, with a usage {len(measured)}")
    print(f"CPU time beside wait4: median difference {statistics.median(cpu) * 1000:.2f} ms, largest {max(cpu) * 1000:.2f} ms")
    return once == ended == on_host == len(measured) == len(records) == len(used)


def curves(states, hosts, records, used):
    """Whether each job has one curve, from its start to the end of its process, without a long time between its points."""
    sensors = {host: Socket(os.path.join(states, host)) for host in set(hosts.values())}
    lacking, gaps, whole, points = collections.Counter(), [], 0, 0
    for record in records:
        ran = used[int(record["job"])][1] - record["started"]
        answer = sensors[hosts[int(record["job"])]].call(
            "sensor.job_series", job=f"slurm:{record['job']}", since=record["started"], until=record["ended"] + 5, step="1s"
        )
        found = [sum(value is not None for value in curve["cpus"]) for curve in answer["curves"]]
        times = [record["started"], *(time for curve in answer["curves"] for time in curve["times"]), record["started"] + ran]
        gaps.append(max(after - before for before, after in zip(times, times[1:])))
        points += sum(found)
        lacking[max(0, round(ran) - 1 - sum(found))] += 1
        whole += len(found) == 1 and gaps[-1] <= GAP_MOST
    print(f"curves: {whole} of {len(records)} are whole, with {points} points; points lacking: {dict(sorted(lacking.items()))}; "
          f"longest time without one: median {statistics.median(gaps):.2f} s, largest {max(gaps):.2f} s")
    return whole == len(records)


def story(states, head_pid, host_count, jobs, span):
    head, controller = Socket(os.path.join(states, "head")), Controller(states)
    hosts = {1 + nth * jobs + job: f"m{nth + 1:02}" for nth in range(host_count) for job in range(jobs)}
    holders = start_holders(states, host_count, jobs)
    controller.start(hosts)
    unseen = lambda: len(hosts) - len([job for job in all_jobs(head) if job["state"] == "running"])
    print(f"{len(hosts)} jobs on {host_count} hosts: all found as running {until('all run', 60, unseen):.1f} s after their lines", flush=True)
    running(head, head_pid, sensor_of(states, "m01"), len(hosts), span)
    used = end_holders(holders)
    controller.end(hosts)
    open_jobs = set(range(1, len(hosts) + 1, 1 + len(hosts) // SAMPLED))
    print(f"all ended and with their whole usage {until('all usages', USAGE_WITHIN, lambda: unfinished(head, open_jobs)):.1f} s after their end", flush=True)
    records = all_jobs(head)
    complete = [compare(records, used, hosts), curves(states, hosts, records, used)]
    if not all(complete):
        raise SystemExit("running-jobs: jobs, usages or curves are lacking")


if __name__ == "__main__":
    if sys.argv[1] == "hold":
        hold(*map(int, sys.argv[2:]))
    else:
        story(sys.argv[2], *map(int, sys.argv[3:]))
