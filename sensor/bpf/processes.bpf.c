/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 *
 * Process sampling: the programs that run in the kernel.
 *
 *   all_tasks     walks every task of the machine when its file is read (a full sweep)
 *   on_switch     marks each process that ran, once per sweep, and stores the running thread of each processor
 *   changed       reports the marked processes and those that run now (a sweep of changes)
 *   on_fork, on_exec, on_exit, on_free     report each process, however short-lived
 *
 * Rule: nothing waits, and what does not fit is counted. A marked task may be gone when it is reported: it is
 * read by guarded copies, under the RCU lock that the programs hold, and reported only if the memory still has
 * the marked process (pid and start time are checked before and after).
 * Not here: what a record means (the sensor's side), and when a sweep is due.
 */
#include "kernel.h"
#include "record.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

#define READ(pointer, field) ((pointer)->field)
#define READ_NAME(to, task) __builtin_memcpy(to, (task)->comm, sizeof(to))
#define FILL(name) name
#include "fill.h"
#undef READ
#undef READ_NAME
#undef FILL

#define READ(pointer, field) PEEK(pointer, field)
#define READ_NAME(to, task)                                                                                            \
	bpf_probe_read_kernel(to, sizeof(to), (const void *)__builtin_preserve_access_index(&(task)->comm))
#define FILL(name) peek_##name
#include "fill.h"

enum {
	MARKS_MAX = 16384, /* processes that can run between two sweeps; beyond it a full sweep is needed */
	PROCESSORS_MAX = 1024,
	THREADS_MAX = 8192, /* of one process that are added up in a sweep of changes */
	RING_LEN = 1 << 20, /* in bytes, unless the loader sets another value */
	RAN_MAX_NS = 1000000000, /* a running thread's CPU time is updated at every tick: more is a misread clock */
};

/* Mark of a process that ran. */
struct mark {
	struct task_struct *leader;
	u64 start_ns;
	u32 pid;
	u32 padding;
};

/* The running thread of a processor; one cache line each. */
struct running {
	struct task_struct *task;
	u64 clock_offset_ns; /* to bpf_ktime_get_ns from the clock that counts the CPU time of threads */
	u64 padding[6];
};

struct counts {
	u32 epoch; /* its lowest bit is the list that receives marks */
	u32 marked[2];
	u32 told[2]; /* marks of the list that have been reported */
	u32 padding;
	u64 lost_marks;
	u64 lost_records;
};

struct {
	UINT(type, MAP_TASK_STORAGE);
	UINT(map_flags, MAP_NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, u32);
} noted SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, 2 * MARKS_MAX);
	TYPE(key, u32);
	TYPE(value, struct mark);
} marks SEC(".maps");

struct {
	UINT(type, MAP_ARRAY);
	UINT(max_entries, PROCESSORS_MAX);
	TYPE(key, u32);
	TYPE(value, struct running);
} processors SEC(".maps");

struct {
	UINT(type, MAP_RINGBUF);
	UINT(max_entries, RING_LEN);
} ring SEC(".maps");

struct counts counts = { .epoch = 1 };
/* Set by the loader. */
const volatile u32 processors_count = 1;

INLINE void *reserve(u64 len)
{
	void *record = bpf_ringbuf_reserve(&ring, len, 0);

	if (!record)
		__sync_fetch_and_add(&counts.lost_records, 1);
	return record;
}

/* ---- every task ---- */

SEC("iter/task")
int all_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task)
		return 0;
	if (task->pid == task->tgid) {
		struct process record;

		fill_process(&record, task);
		add_thread(&record.sums, task);
		bpf_seq_write(ctx->meta->seq, &record, sizeof record);
	} else {
		struct thread record;

		__builtin_memset(&record, 0, sizeof record);
		record.kind = KIND_THREAD;
		record.pid = task->tgid;
		add_thread(&record.sums, task);
		bpf_seq_write(ctx->meta->seq, &record, sizeof record);
	}
	return 0;
}

/* ---- processes that ran ---- */

INLINE void note(struct task_struct *task)
{
	struct task_struct *leader = task->group_leader;
	u32 epoch = counts.epoch, list = epoch & 1, place;
	u32 *last = leader ? bpf_task_storage_get(&noted, leader, 0, STORAGE_CREATE) : 0;
	struct mark *mark;

	if (!last) {
		__sync_fetch_and_add(&counts.lost_marks, 1);
		return;
	}
	if (*last == epoch)
		return;
	*last = epoch;
	place = __sync_fetch_and_add(&counts.marked[list], 1);
	if (place >= MARKS_MAX) {
		__sync_fetch_and_add(&counts.lost_marks, 1);
		return;
	}
	place += list * MARKS_MAX;
	mark = bpf_map_lookup_elem(&marks, &place);
	if (!mark)
		return;
	mark->start_ns = leader->start_boottime;
	mark->pid = leader->pid;
	mark->leader = leader;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *previous = (void *)ctx[1], *next = (void *)ctx[2];
	u32 processor = bpf_get_smp_processor_id();
	struct running *running = bpf_map_lookup_elem(&processors, &processor);

	if (running) {
		/* The scheduler has just set exec_start to now, by the clock that counts CPU time. */
		running->clock_offset_ns = bpf_ktime_get_ns() - next->se.exec_start;
		running->task = next->pid ? next : 0;
	}
	if (previous->pid)
		note(previous);
	return 0;
}

/* CPU time of a processor's thread since booked_ns, when its CPU time was last updated (its exec_start). */
INLINE u64 open_of(struct running *running, u64 booked_ns)
{
	u64 ran = bpf_ktime_get_ns() - running->clock_offset_ns - booked_ns;

	return ran > RAN_MAX_NS ? 0 : ran;
}

struct walk {
	struct list_head *next;
	struct list_head *end;
	struct sums sums;
};

static long add_next_thread(u32 number, struct walk *walk)
{
	struct task_struct *task;

	if (!walk->next || walk->next == walk->end)
		return 1;
	task = (void *)walk->next - __builtin_preserve_field_info(((struct task_struct *)0)->thread_node, 0);
	peek_add_thread(&walk->sums, task);
	walk->next = PEEK(task, thread_node.next);
	return 0;
}

INLINE bool is_still(struct task_struct *leader, u32 pid, u64 start_ns)
{
	return (u32)PEEK(leader, tgid) == pid && PEEK(leader, start_boottime) == start_ns;
}

static __attribute__((noinline)) int tell(struct task_struct *leader, u32 pid, u64 start_ns, u64 open_ns)
{
	struct process *record;
	struct walk walk;

	if (!is_still(leader, pid, start_ns))
		return 0;
	record = reserve(sizeof *record);
	if (!record)
		return 0;
	peek_fill_process(record, leader);
	record->open_ns = open_ns;
	walk.sums = record->sums;
	if (record->threads <= 1) {
		peek_add_thread(&walk.sums, leader);
	} else {
		struct signal_struct *signal = PEEK(leader, signal);

		walk.end = (void *)__builtin_preserve_access_index(&signal->thread_head);
		walk.next = PEEK(signal, thread_head.next);
		bpf_loop(THREADS_MAX, add_next_thread, &walk, 0);
	}
	record->sums = walk.sums;
	if (is_still(leader, pid, start_ns))
		bpf_ringbuf_submit(record, RING_NO_WAKEUP);
	else
		bpf_ringbuf_discard(record, RING_NO_WAKEUP);
	return 0;
}

struct telling {
	u32 place;
};

static long tell_next_mark(u32 number, struct telling *telling)
{
	u32 place = telling->place + number;
	struct mark *mark = bpf_map_lookup_elem(&marks, &place);

	if (!mark)
		return 1;
	tell(mark->leader, mark->pid, mark->start_ns, 0);
	return 0;
}

/* Reports the marks of a list that have not been reported; returns their number. */
INLINE u32 tell_list(u32 list)
{
	struct telling telling;
	u32 told = counts.told[list], marked = counts.marked[list];

	if (marked > MARKS_MAX)
		marked = MARKS_MAX;
	if (told >= marked)
		return 0;
	telling.place = list * MARKS_MAX + told;
	bpf_loop(marked - told, tell_next_mark, &telling, 0);
	counts.told[list] = marked;
	return marked - told;
}

static long tell_running(u32 processor, void *unused)
{
	struct running *running = bpf_map_lookup_elem(&processors, &processor);
	struct task_struct *task, *leader;
	u64 ran;

	if (!running)
		return 1;
	task = running->task;
	if (!task || !PEEK(task, on_cpu))
		return 0;
	leader = PEEK(task, group_leader);
	ran = open_of(running, PEEK(task, se.exec_start));
	if (running->task != task)
		ran = 0;
	tell(leader, PEEK(leader, tgid), PEEK(leader, start_boottime), ran);
	return 0;
}

SEC("raw_tp/visperf_changed")
int changed(void *ctx)
{
	struct sweep sweep;
	struct sweep *record;
	u32 list = counts.epoch & 1, other = list ^ 1;

	__builtin_memset(&sweep, 0, sizeof sweep);
	sweep.kind = KIND_SWEEP;
	sweep.begin_ns = bpf_ktime_get_boot_ns();
	/* A processor that read the epoch before it changed may have added marks to the other list until now. */
	sweep.marked = tell_list(other);
	counts.marked[other] = 0;
	counts.told[other] = 0;
	counts.epoch++;
	sweep.marked += tell_list(list);
	bpf_loop(processors_count, tell_running, 0, 0);
	sweep.lost_marks = counts.lost_marks;
	sweep.lost_records = counts.lost_records;
	sweep.end_ns = bpf_ktime_get_boot_ns();
	record = reserve(sizeof *record);
	if (!record)
		return 0;
	*record = sweep;
	bpf_ringbuf_submit(record, RING_NO_WAKEUP);
	return 0;
}

/* ---- start and end of processes ---- */

INLINE void fill_life(struct life *life, u32 kind, struct task_struct *task)
{
	life->kind = kind;
	life->pid = task->tgid;
	life->start_ns = task->group_leader->start_boottime;
	life->time_ns = bpf_ktime_get_boot_ns();
	life->parent = task->real_parent->tgid;
	life->code = 0;
	life->uid = task->cred->uid.val;
	life->padding = 0;
	life->cgroup = cgroup(task);
	/* At the end the current thread is the last one of the process, which may have a name of its own. */
	__builtin_memcpy(life->name, task->group_leader->comm, sizeof life->name);
	__builtin_memset(&life->sums, 0, sizeof life->sums);
}

/* CPU time of the current thread since its CPU time was last updated. */
INLINE u64 open_here(struct task_struct *task)
{
	u32 processor = bpf_get_smp_processor_id();
	struct running *running = bpf_map_lookup_elem(&processors, &processor);

	return running ? open_of(running, task->se.exec_start) : 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct task_struct *child = (void *)ctx[1];
	struct life *life;

	if (child->pid != child->tgid)
		return 0;
	life = reserve(sizeof *life);
	if (!life)
		return 0;
	fill_life(life, KIND_FORK, child);
	bpf_ringbuf_submit(life, RING_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct mm_struct *mm = task->mm;
	struct exec *exec;
	u64 len;

	exec = reserve(sizeof *exec);
	if (!exec)
		return 0;
	fill_life(&exec->life, KIND_EXEC, task);
	len = mm ? mm->arg_end - mm->arg_start : 0;
	exec->len = len;
	exec->padding = 0;
	__builtin_memset(exec->arguments, 0, ARGUMENTS_LEN);
	if (mm) {
		u32 kept = len < ARGUMENTS_LEN ? len : ARGUMENTS_LEN;

		if (kept && kept <= ARGUMENTS_LEN)
			bpf_probe_read_user(exec->arguments, kept, (void *)mm->arg_start);
	}
	bpf_ringbuf_submit(exec, RING_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct signal_struct *signal = task->signal;
	struct life *life;

	/* Report only the exit of the last thread. */
	if (signal->live.counter != 0)
		return 0;
	life = reserve(sizeof *life);
	if (!life)
		return 0;
	fill_life(life, KIND_EXIT, task);
	life->code = task->exit_code;
	set_ended_threads(&life->sums, signal);
	add_thread(&life->sums, task);
	/* The CPU time of a short-lived process may never have been updated. */
	life->sums.cpu_ns += open_here(task);
	bpf_ringbuf_submit(life, RING_NO_WAKEUP);
	return 0;
}

SEC("tp_btf/sched_process_free")
int on_free(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct life *life;

	if (task->pid != task->tgid)
		return 0;
	life = reserve(sizeof *life);
	if (!life)
		return 0;
	__builtin_memset(life, 0, sizeof *life);
	life->kind = KIND_FREED;
	/*
	 * All threads have been added to the sums of the process by now. The exit was reported before the
	 * process gave back its memory, in kernels since 6.16.
	 */
	set_ended_threads(&life->sums, task->signal);
	life->peak_pages = task->signal->maxrss;
	life->pid = task->tgid;
	life->start_ns = task->start_boottime;
	life->time_ns = bpf_ktime_get_boot_ns();
	bpf_ringbuf_submit(life, RING_NO_WAKEUP);
	return 0;
}
