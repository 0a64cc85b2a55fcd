/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 *
 * Kernel interface of the programs: types of the kernel, by name only, and its helper functions, by number.
 *
 * Rule: only fields that a program reads are here. The loader finds the offset of a field in the type
 * information (BTF) of the running kernel, so order and size here have no meaning. A name with a suffix such as
 * ___before_6_2 is the type of an older kernel.
 * Not here: everything else. No system header is used, so that only a compiler is needed.
 */
#ifndef VISPERF_KERNEL_H
#define VISPERF_KERNEL_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct list_head {
	struct list_head *next;
};

struct percpu_counter {
	s64 count;
};

struct mm_struct {
	struct percpu_counter rss_stat[4];
	unsigned long arg_start;
	unsigned long arg_end;
};

/* Before Linux 6.2. */
struct atomic_long___before_6_2 {
	s64 counter;
};
struct mm_rss_stat {
	struct atomic_long___before_6_2 count[4];
};
struct mm_struct___before_6_2 {
	struct mm_rss_stat rss_stat;
};

struct task_io_accounting {
	u64 rchar;
	u64 wchar;
	u64 read_bytes;
	u64 write_bytes;
};

typedef struct {
	s32 counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
	s32 nr_threads;
	struct list_head thread_head;
	u64 utime;
	u64 stime;
	u64 sum_sched_runtime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	unsigned long min_flt;
	unsigned long maj_flt;
	struct task_io_accounting ioac;
	unsigned long maxrss; /* set as the last thread ends */
};

struct sched_entity {
	u64 exec_start;
	u64 sum_exec_runtime;
};

typedef struct {
	u32 val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	unsigned int __state;
	int on_cpu;
	struct sched_entity se;
	struct mm_struct *mm;
	int exit_state;
	int exit_code;
	s32 pid;
	s32 tgid;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct list_head thread_node;
	u64 utime;
	u64 stime;
	unsigned long nvcsw;
	unsigned long nivcsw;
	u64 start_boottime;
	unsigned long min_flt;
	unsigned long maj_flt;
	struct cred *cred;
	char comm[16];
	struct signal_struct *signal;
	struct task_io_accounting ioac;
	struct css_set *cgroups;
};

/* Before Linux 5.14. */
struct task_struct___before_5_14 {
	long state;
};

struct seq_file {
	u64 count;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

#pragma clang attribute pop

/* Helper functions, by their numbers in linux/bpf.h. */
static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static long (*bpf_probe_read_user)(void *to, u32 len, const void *from) = (void *)112;
static long (*bpf_probe_read_kernel)(void *to, u32 len, const void *from) = (void *)113;
static u64 (*bpf_ktime_get_boot_ns)(void) = (void *)125;
static long (*bpf_seq_write)(struct seq_file *to, const void *data, u32 len) = (void *)127;
static void *(*bpf_ringbuf_reserve)(void *ring, u64 len, u64 flags) = (void *)131;
static void (*bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void (*bpf_ringbuf_discard)(void *data, u64 flags) = (void *)133;
static void *(*bpf_task_storage_get)(void *map, struct task_struct *task, void *first, u64 flags) = (void *)156;
static long (*bpf_loop)(u32 count, void *step, void *context, u64 flags) = (void *)181;

enum { STORAGE_CREATE = 1, RING_NO_WAKEUP = 1 };
enum { MAP_ARRAY = 2, MAP_RINGBUF = 27, MAP_TASK_STORAGE = 29, MAP_NO_PREALLOC = 1 };

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* Members of a map definition. */
#define UINT(name, value) int (*name)[value]
#define TYPE(name, type) type *name

#define KNOWS_TYPE(type) __builtin_preserve_type_info(*(type *)0, 0)
#define KNOWS_FIELD(pointer, field) __builtin_preserve_field_info((pointer)->field, 2)

/* Reads a field of an object that may be gone: an invalid address gives zeros, never a fault. */
#define PEEK(pointer, field)                                                                                           \
	({                                                                                                             \
		__typeof__((pointer)->field) peeked;                                                                   \
		__builtin_memset(&peeked, 0, sizeof peeked);                                                           \
		bpf_probe_read_kernel(&peeked, sizeof peeked,                                                          \
				      (const void *)__builtin_preserve_access_index(&(pointer)->field));               \
		peeked;                                                                                                \
	})

#endif
