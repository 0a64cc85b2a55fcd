/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 *
 * What the programs tell the sensor: records, each beginning with its kind. sensor/src/process/bpf/record.rs reads them
 * and must agree to the byte; a test loads the programs and compares with /proc.
 *
 * Rule: times are nanoseconds, those of the day since boot with suspension (as in /proc/PID/stat); sizes of memory are
 * pages; what counts only grows through a process's life. All numbers are little endian on the machines visperf runs on.
 */
#ifndef VISPERF_RECORD_H
#define VISPERF_RECORD_H

#include "kernel.h"

enum {
	KIND_PROCESS = 1, /* struct process: a process as it is */
	KIND_THREAD = 2,  /* struct thread: what a thread beside the first adds to the process of its pid */
	KIND_FORK = 3,    /* struct life: began */
	KIND_EXEC = 4,    /* struct exec: became another program */
	KIND_EXIT = 5,    /* struct life: its last thread ended; it is a zombie now */
	KIND_FREED = 6,   /* struct life: it was waited for and is gone */
	KIND_SWEEP = 7,   /* struct sweep: what was to be told of this sweep has been told */
};

/* What is added up over the threads of a process. */
struct sums {
	u64 cpu_ns; /* the scheduler's, exact but for what a running thread has not had booked */
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
	u64 open_ns; /* what one running thread has run since it was last booked; one record for each that runs */
	char name[16];
	struct sums sums;
};

struct thread {
	u32 kind;
	u32 pid; /* of its process */
	struct sums sums;
};

struct life {
	u32 kind;
	u32 pid;
	u64 start_ns;
	u64 time_ns;
	u32 parent;
	u32 code; /* as for wait(2); of KIND_EXIT */
	u32 uid;
	u32 padding;
	u64 cgroup;
	char name[16];
	struct sums sums; /* of KIND_EXIT: of its whole life */
};

enum { ARGUMENTS_LEN = 256 };

struct exec {
	struct life life;
	u32 len; /* of the arguments in all; as many as fit follow */
	u32 padding;
	char arguments[ARGUMENTS_LEN]; /* each ended by a zero byte */
};

struct sweep {
	u32 kind;
	u32 marked; /* processes that ran since the last one */
	u64 begin_ns;
	u64 end_ns;
	u64 lost_marks; /* since loading: no place to note a process; a full sweep finds it */
	u64 lost_records; /* since loading: no place in the ring */
};

#endif
