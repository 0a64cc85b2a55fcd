//! Process sources against `/proc` and against processes with a known history.
//!
//! Sources that need privileges are tested where the privileges exist; elsewhere the test checks that they
//! report it.
#![allow(clippy::disallowed_methods)] // The tests are about processes: they start some, and wait for them.

use sensor::process::source::{ChosenSource, Kind, Source, View, choose};
use sensor::process::stat::TICK_NS;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wire::process::{Life, Process, State};

const PROC: &str = "/proc";

/// Number of short programs in a burst.
const BURST: u32 = 1000;
/// Capabilities by their numbers (linux/capability.h).
const CAP_NET_ADMIN: u64 = 1 << 12;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON_AND_BPF: u64 = 3 << 38;

/// Whether programs may be loaded into the kernel: root may lack the capabilities (capabilities(7)).
fn is_privileged() -> bool {
    may(CAP_SYS_ADMIN) || may(CAP_PERFMON_AND_BPF)
}

/// Whether this program has all of these capabilities.
fn may(wanted: u64) -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("its own status");
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("capabilities");
    let held = u64::from_str_radix(line.trim(), 16).expect("a hexadecimal number");
    held & wanted == wanted
}

/// Returns each source that the privileges allow.
fn ways() -> Vec<Box<dyn Source>> {
    let mut ways = Vec::new();
    for kind in [Kind::Procfs, Kind::BpfSweep, Kind::BpfChanged] {
        match choose(Path::new(PROC), Some(kind)) {
            Ok(chosen) => {
                assert_eq!(chosen.source.kind(), kind);
                ways.push(chosen.source);
            }
            Err(error) => {
                assert!(!is_privileged(), "{kind}: {error}");
                assert!(error.to_string().contains("CAP_BPF"), "the remedy is shown: {error}");
            }
        }
    }
    ways
}

/// A child process; killed and reaped on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Running {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    Running(command.spawn().expect("the program starts"))
}

/// Sweeps until `is_seen` returns true.
fn sweep_until(way: &mut dyn Source, view: &mut View, is_seen: impl Fn(&View) -> bool) {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(30) {
        way.sweep(view.table.sweep().number + 1, view).expect("a sweep");
        if is_seen(view) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("{} did not see it", way.kind());
}

#[test]
fn root_every_process_is_as_proc_reports_it() {
    let _thousand: Vec<Running> = (0..1000).map(|_| start("sleep", &["1000"])).collect();
    for mut way in ways() {
        let mut view = View::default();
        way.sweep(1, &mut view).expect("a sweep");
        // Compares processes that are the same before and after the sweep; others start and end meanwhile.
        way.sweep(2, &mut view).expect("a sweep");
        let before: HashMap<u32, String> = stats();
        way.sweep(3, &mut view).expect("a sweep");
        let after = stats();
        let mut compared = 0;
        for (pid, stat) in &before {
            if after.get(pid) != Some(stat) {
                continue;
            }
            let seen = view.table.get(*pid).unwrap_or_else(|| panic!("{}: {stat} is missing", way.kind()));
            compare(way.kind(), stat, seen);
            compared += 1;
        }
        assert!(compared >= 900, "{}: only {compared} processes stood still", way.kind());
        // It may have lived only between the two listings.
        let is_gone = |pid: u32| !Path::new(PROC).join(pid.to_string()).exists();
        // Excludes the process ids that `stats` excludes.
        let hidden = |pid: u32| is_privileged() && fs::read_link(format!("{PROC}/{pid}/ns/pid")).is_err();
        let known = before.keys().chain(after.keys()).collect::<std::collections::BTreeSet<_>>();
        for process in view.table.rows().iter().flatten() {
            assert!(
                known.contains(&process.key.pid) || hidden(process.key.pid) || is_gone(process.key.pid),
                "{}: {process:?} is not in /proc",
                way.kind()
            );
        }
    }
}

/// Returns the text of `stat`, and of `schedstat`, which shows whether a process ran at all, by process id.
///
/// Excludes processes that even these privileges cannot inspect: some hosts hide a process of theirs from the
/// walk.
fn stats() -> HashMap<u32, String> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let pids = fs::read_dir(PROC).expect("proc").filter_map(|entry| number(entry.ok()?));
    let may_look = |pid: &u32| !is_privileged() || fs::read_link(format!("{PROC}/{pid}/ns/pid")).is_ok();
    let text = |pid: u32| {
        let read = |name: &str| fs::read_to_string(format!("{PROC}/{pid}/{name}")).ok();
        Some((pid, format!("{}\n{}", read("stat")?.trim_end(), read("schedstat")?)))
    };
    pids.filter(may_look).filter_map(text).collect()
}

fn compare(kind: Kind, stat: &str, seen: &Process) {
    let name = &stat[stat.find('(').expect("a name") + 1..stat.rfind(')').expect("its end")];
    let rest = &stat[stat.rfind(')').expect("its end") + 1..];
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields[field].parse::<u64>().expect("a number");
    // Kernel threads have longer names in /proc than in the kernel's task.
    assert!(name == seen.name || name.starts_with(seen.name.as_str()), "{kind}: {name} {seen:?}");
    // A process that was woken and has not run yet has not been reported.
    let is_woken = kind == Kind::BpfChanged && fields[0] == "R";
    assert!(is_woken || seen.state.letter().to_string() == fields[0], "{kind}: {stat}: {seen:?}");
    assert_eq!(u64::from(seen.parent), number(1), "{kind}: {seen:?}");
    assert_eq!(seen.usage.minor_faults, number(7), "{kind}: {seen:?}");
    assert_eq!(seen.usage.major_faults, number(9), "{kind}: {seen:?}");
    assert_eq!(u64::from(seen.threads), number(17), "{kind}: {seen:?}");
    assert_eq!(seen.key.start_ns / 10_000_000, number(19), "{kind}: {seen:?}");
    let ticks = seen.usage.cpu_ns as f64 / 1e7;
    let in_proc = (number(11) + number(12)) as f64;
    assert!(
        (ticks - in_proc).abs() <= 2.0,
        "{kind}: {ticks} ticks of CPU time, /proc has {in_proc}: {seen:?}"
    );
    let rss_kib = number(21) * rustix::param::page_size() as u64 / 1024;
    assert!(seen.rss_kib.abs_diff(rss_kib) <= rss_bound_kib(), "{kind}: {rss_kib} KiB by /proc: {seen:?}");
}

/// Upper bound of the pages of a process that the CPUs have not yet added to its three counters: 32 each, or
/// twice the number of CPUs (lib/percpu_counter.c).
fn rss_bound_kib() -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get) as u64;
    3 * processors * (2 * processors).max(32) * rustix::param::page_size() as u64 / 1024
}

#[test]
fn root_names_of_any_kind_and_ends_of_any_kind_are_seen() {
    let folder = tempfile::tempdir().expect("a folder");
    let sleep = which("sleep");
    for mut way in ways() {
        let mut view = View::default();
        for name in ["a b", "x) S 9 (y", "line\nend", "ünïcode"] {
            let program = folder.path().join(name);
            // A symbolic link, not a copy: a file that is open for writing cannot be executed, and another
            // test that starts a process may have it open.
            if !program.is_symlink() {
                std::os::unix::fs::symlink(&sleep, &program).expect("a link");
            }
            let mut child = start(&program, &["1000"]);
            let pid = child.0.id();
            sweep_until(&mut *way, &mut view, |view| {
                view.table.get(pid).is_some_and(|seen| seen.name == name)
            });
            child.0.kill().expect("it lives");
            // Not reaped yet: a zombie.
            sweep_until(&mut *way, &mut view, |view| {
                view.table.get(pid).is_some_and(|seen| seen.state == State::Zombie && seen.rss_kib == 0)
            });
            child.0.wait().expect("it has ended");
            sweep_until(&mut *way, &mut view, |view| view.table.get(pid).is_none());
        }
    }
}

fn which(program: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("a path");
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.exists())
        .expect("it is there")
}

#[test]
fn root_threads_that_ended_count() {
    // Four threads work and end one after the other; the first only waits.
    let work = "import threading,time,sys\ndef work():\n e=time.thread_time()+.05\n while time.thread_time()<e: pass\n\
                for _ in range(4):\n t=threading.Thread(target=work); t.start(); t.join()\nsys.stdin.read()";
    let child = start("python3", &["-c", work]);
    let pid = child.0.id();
    for mut way in ways() {
        let mut view = View::default();
        sweep_until(&mut *way, &mut view, |view| {
            let Some(seen) = view.table.get(pid) else { return false };
            seen.usage.cpu_ns > 200_000_000 && seen.threads == 1
        });
    }
}

/// Returns the lives that a source reported of a shell that started [`BURST`] short programs in sequence, and
/// the process id of the shell.
fn burst(way: &mut dyn Source) -> (Vec<Life>, u32) {
    let mut view = View::default();
    way.sweep(1, &mut view).expect("a sweep");
    let from = view.lives.next();
    let script = format!("i=0; while [ $i -lt {BURST} ]; do /bin/true $i; i=$((i+1)); done; exit 7");
    let mut shell = start("/bin/sh", &["-c", &script]);
    let pid = shell.0.id();
    let code = loop {
        way.drain(&mut view);
        if let Some(status) = shell.0.try_wait().expect("it is our child") {
            break status.code();
        }
        std::thread::yield_now();
    };
    assert_eq!(code, Some(7));
    let started = Instant::now();
    loop {
        way.drain(&mut view);
        let (mut lives, missed) = view.lives.since(from);
        assert_eq!(missed, 0);
        if lives.any(|life| life.key.pid == pid) {
            return (view.lives.since(from).0.cloned().collect(), pid);
        }
        assert!(started.elapsed() < Duration::from_secs(30), "the shell's end is not reported");
        std::thread::yield_now();
    }
}

#[test]
fn root_short_lives_are_all_reported() {
    for mut way in ways().into_iter().filter(|way| way.kind() == Kind::BpfChanged) {
        let (lives, pid) = burst(&mut *way);
        let of_burst: Vec<_> = lives.iter().filter(|life| life.parent == pid).collect();
        assert_eq!(of_burst.len(), BURST as usize);
        for (number, life) in of_burst.iter().enumerate() {
            assert_eq!(life.command, format!("/bin/true {number}"));
            assert_eq!((life.exit_status(), life.name.as_str()), (Some(0), "true"));
            let cpu_ns = life.usage.expect("the kernel reports it").cpu_ns;
            let lived_ns = life.end_ns.saturating_sub(life.key.start_ns);
            // The scheduler clock and the clock of lives differ slightly.
            assert!(0 < cpu_ns && cpu_ns <= 2 * lived_ns, "{cpu_ns} of {lived_ns} ns: {life:?}");
        }
        let shell = lives.iter().find(|life| life.key.pid == pid).expect("the shell itself");
        assert_eq!(shell.exit_status(), Some(7));
        assert_eq!(way.lost_total(), 0);
    }
}

#[test]
fn root_an_ended_process_has_the_name_of_its_first_thread() {
    // The first thread ends (`exit` is 60 on x86-64, 93 elsewhere) before one with a name of its own.
    let work = "import ctypes,platform,threading,time\nlibc=ctypes.CDLL(None)\ndef work():\n libc.prctl(15,b'worker',0,0,0)\n \
                time.sleep(.2)\nthreading.Thread(target=work).start()\n\
                libc.syscall(60 if platform.machine()=='x86_64' else 93,0)";
    for mut way in ways().into_iter().filter(|way| way.kind() == Kind::BpfChanged) {
        let mut view = View::default();
        way.sweep(1, &mut view).expect("a sweep");
        let from = view.lives.next();
        let mut child = start("python3", &["-c", work]);
        let pid = child.0.id();
        let started = Instant::now();
        let life = loop {
            // What is not drained at once is lost beside other tests.
            way.drain(&mut view);
            child.0.try_wait().expect("it is our child");
            if let Some(life) = view.lives.since(from).0.find(|life| life.key.pid == pid) {
                break life.clone();
            }
            assert!(started.elapsed() < Duration::from_secs(30), "its end is not reported");
            std::thread::yield_now();
        };
        assert!(life.name.starts_with("python"), "{life:?}");
    }
}

#[test]
fn root_short_lives_are_reported_without_programs_in_the_kernel_too() {
    let ChosenSource { mut source, reasons } =
        choose(Path::new(PROC), Some(Kind::Procfs)).expect("it always works");
    if let Some(why) = reasons.first() {
        // Since Linux 6.6 every user may listen.
        let is_shown = !may(CAP_NET_ADMIN) && why.contains("CAP_NET_ADMIN") || why.contains("container");
        assert!(is_shown, "the remedy is shown: {reasons:?}");
        return;
    }
    let (lives, pid) = burst(&mut *source);
    let of_burst: Vec<_> = lives.iter().filter(|life| life.parent == pid).collect();
    if !may(CAP_NET_ADMIN) && source.lost_total() > 0 {
        // Without privileges the kernel buffers few messages, and reports that it lost some.
        return;
    }
    assert_eq!(of_burst.len(), BURST as usize);
    // Some end before their arguments are read; the reported arguments are correct.
    for (number, life) in of_burst.iter().enumerate() {
        let command = [format!("/bin/true {number}"), String::new()];
        assert!(
            command.contains(&life.command.to_string()) || life.command.starts_with("/bin/sh"),
            "{life:?}"
        );
        assert_eq!(life.exit_status(), Some(0), "{life:?}");
        assert!(life.end_ns + TICK_NS >= life.key.start_ns, "{life:?}");
    }
    let shell = lives.iter().find(|life| life.key.pid == pid).expect("the shell itself");
    assert_eq!((shell.exit_status(), shell.name.as_str()), (Some(7), "sh"));
    assert_eq!(source.lost_total(), 0);
}
