/* SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
 *
 * Conversion of a task to a record, compiled twice: READ is a plain load where the kernel guarantees the
 * pointer, and a guarded copy where the task was marked earlier. FILL(name) names the two versions.
 *
 * Rule: a process's total is that of its ended threads (in its signal structure) plus that of every live
 * thread, as the kernel adds it up (thread_group_cputime in kernel/sched/cputime.c).
 */

INLINE void FILL(add_io)(struct sums *sums, struct task_io_accounting *io)
{
	sums->read_chars += READ(io, rchar);
	sums->written_chars += READ(io, wchar);
	sums->read_bytes += READ(io, read_bytes);
	sums->written_bytes += READ(io, write_bytes);
}

INLINE void FILL(add_thread)(struct sums *sums, struct task_struct *task)
{
	sums->cpu_ns += READ(task, se.sum_exec_runtime);
	sums->user_ns += READ(task, utime);
	sums->system_ns += READ(task, stime);
	sums->minor_faults += READ(task, min_flt);
	sums->major_faults += READ(task, maj_flt);
	sums->voluntary_switches += READ(task, nvcsw);
	sums->involuntary_switches += READ(task, nivcsw);
	sums->read_chars += READ(task, ioac.rchar);
	sums->written_chars += READ(task, ioac.wchar);
	sums->read_bytes += READ(task, ioac.read_bytes);
	sums->written_bytes += READ(task, ioac.write_bytes);
}

INLINE void FILL(set_ended_threads)(struct sums *sums, struct signal_struct *signal)
{
	sums->cpu_ns = READ(signal, sum_sched_runtime);
	sums->user_ns = READ(signal, utime);
	sums->system_ns = READ(signal, stime);
	sums->minor_faults = READ(signal, min_flt);
	sums->major_faults = READ(signal, maj_flt);
	sums->voluntary_switches = READ(signal, nvcsw);
	sums->involuntary_switches = READ(signal, nivcsw);
	sums->read_chars = READ(signal, ioac.rchar);
	sums->written_chars = READ(signal, ioac.wchar);
	sums->read_bytes = READ(signal, ioac.read_bytes);
	sums->written_bytes = READ(signal, ioac.write_bytes);
}

INLINE u64 FILL(rss_pages)(struct mm_struct *mm)
{
	s64 file, anonymous, shared;

	if (!mm)
		return 0;
	if (KNOWS_TYPE(struct mm_rss_stat)) {
		struct mm_struct___before_6_2 *old = (void *)mm;

		file = READ(old, rss_stat.count[0].counter);
		anonymous = READ(old, rss_stat.count[1].counter);
		shared = READ(old, rss_stat.count[3].counter);
	} else {
		file = READ(mm, rss_stat[0].count);
		anonymous = READ(mm, rss_stat[1].count);
		shared = READ(mm, rss_stat[3].count);
	}
	/* Each omits what the processors have not added to it yet, so it can be below zero. */
	return (file > 0 ? file : 0) + (anonymous > 0 ? anonymous : 0) + (shared > 0 ? shared : 0);
}

INLINE u64 FILL(cgroup)(struct task_struct *task)
{
	struct css_set *set = READ(task, cgroups);
	struct cgroup *cgroup = set ? READ(set, dfl_cgrp) : 0;
	struct kernfs_node *node = cgroup ? READ(cgroup, kn) : 0;

	return node ? READ(node, id) : 0;
}

INLINE u32 FILL(state)(struct task_struct *task)
{
	u32 state;

	if (KNOWS_FIELD(task, __state))
		state = READ(task, __state);
	else
		state = READ((struct task_struct___before_5_14 *)task, state);
	return state | READ(task, exit_state);
}

/* Fills in everything of a process except its live threads. */
INLINE void FILL(fill_process)(struct process *record, struct task_struct *leader)
{
	struct signal_struct *signal = READ(leader, signal);
	struct task_struct *parent = READ(leader, real_parent);
	struct cred *cred = READ(leader, cred);

	record->kind = KIND_PROCESS;
	record->pid = READ(leader, tgid);
	record->start_ns = READ(leader, start_boottime);
	record->parent = parent ? READ(parent, tgid) : 0;
	record->threads = READ(signal, nr_threads);
	record->state = FILL(state)(leader);
	record->uid = cred ? READ(cred, uid.val) : 0;
	record->cgroup = FILL(cgroup)(leader);
	record->rss_pages = FILL(rss_pages)(READ(leader, mm));
	record->open_ns = 0;
	READ_NAME(record->name, leader);
	FILL(set_ended_threads)(&record->sums, signal);
}
