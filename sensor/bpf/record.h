/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 *
 * Records that the programs send to the sensor; each starts with its kind. sensor/src/process/bpf/record.rs
 * decodes them and must match this layout exactly; a test loads the programs and compares with /proc.
 *
 * Rule: times are in nanoseconds; points in time count from boot and include suspension (as in
 * /proc/PID/stat). Memory sizes are in pages. Counters only grow during a process's life. All numbers are
 * little endian on the machines that visperf supports.
 */
#ifndef VISPERF_RECORD_H
#define VISPERF_RECORD_H

#include "kernel.h"

enum {
	KIND_PROCESS = 1, /* struct process: current state of a process */
	KIND_THREAD = 2,  /* struct thread: what a thread other than the first adds to its process */
	KIND_FORK = 3,    /* struct life: the process started */
	KIND_EXEC = 4,    /* struct exec: the process executed another program */
	KIND_EXIT = 5,    /* struct life: its last thread ended; it is a zombie now */
	KIND_FREED = 6,   /* struct life: it was reaped and is gone */
	KIND_SWEEP = 7,   /* struct sweep: end of a sweep; all of its records have been sent */
};

/* Counters that are added up over the threads of a process. */
struct sums {
	u64 cpu_ns; /* of the scheduler; exact except for the time since a running thread's last update */
	u64 user_ns; /* by ticks */
	u64 system_ns; /* by ticks */
	u64 minor_faults;
	u64 major_faults;
	u64 voluntary_switches;
	u64 involuntary_switches;
	u64 read_bytes; /* from storage */
	u64 written_bytes;
	u64 read_chars; /* by system calls */
	u64 written_chars;
};

struct process {
	u32 kind;
	u32 pid;
	u64 start_ns;
	u32 parent;
	u32 threads;
	u32 state; /* __state | exit_state */
	u32 uid;
	u64 cgroup;
	u64 rss_pages;
	u64 open_ns; /* CPU time of one running thread since its last update; one record for each running thread */
	char name[16];
	struct sums sums;
};

struct thread {
	u32 kind;
	u32 pid; /* pid of its process */
	struct sums sums;
};

struct life {
	u32 kind;
	u32 pid;
	u64 start_ns;
	u64 time_ns;
	u32 parent;
	u32 code; /* status as in wait(2); only KIND_EXIT */
	u32 uid;
	u32 padding;
	u64 cgroup;
	char name[16];
	struct sums sums; /* only KIND_EXIT and KIND_FREED: totals of its whole life */
	u64 peak_pages; /* only KIND_FREED: most resident memory at a moment of its life */
};

enum { ARGUMENTS_LEN = 256 };

struct exec {
	struct life life;
	u32 len; /* total length of the arguments; as many as fit follow */
	u32 padding;
	char arguments[ARGUMENTS_LEN]; /* each ends with a zero byte */
};

struct sweep {
	u32 kind;
	u32 marked; /* processes that ran since the last one */
	u64 begin_ns;
	u64 end_ns;
	u64 lost_marks; /* since loading: no space to mark a process; a full sweep finds it */
	u64 lost_records; /* since loading: no space in the ring */
};

#endif
