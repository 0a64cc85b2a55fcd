//! Decision whether a command may be executed, from the description of the process that has the pid now.
//!
//! Pure. Rules: the process is the requested one. It is not the first of the host, not a kernel thread, not
//! root's, not the sensor, not an ancestor of the sensor and not a descendant of it. Its user is listed.
//! Not here: reading the description (`target`), the execution (`act`).

use super::refusal::Refusal;
use crate::process::stat::TICK_NS;
use wire::process::{ProcessKey, State};

/// Description of a process at the moment of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its pid and start; the start has a resolution of a hundredth of a second.
    pub key: ProcessKey,
    /// Its name as the kernel reports it.
    pub name: String,
    pub state: State,
    /// Its uids: real, effective, saved, and for files.
    pub uids: [u32; 4],
    /// Whether it is a thread of the kernel.
    pub is_of_kernel: bool,
    /// Its ancestors: its parent, the parent's parent, up to the first process.
    pub ancestors: Vec<u32>,
}

/// The sensor's own process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnProcess {
    pub pid: u32,
    /// Its ancestors.
    pub ancestors: Vec<u32>,
}

/// Checks whether a command for `meant` may be executed on `target`; `listed` are the users whose processes
/// may be controlled.
///
/// # Errors
/// Reason why not.
pub fn decide(meant: ProcessKey, target: &Target, own: &OwnProcess, listed: &[u32]) -> Result<(), Refusal> {
    let (pid, name) = (target.key.pid, target.name.clone());
    // `/proc` counts starts in hundredths of a second, other sources in nanoseconds.
    let is_meant = pid == meant.pid && target.key.start_ns / TICK_NS == meant.start_ns / TICK_NS;
    if !is_meant {
        return Err(Refusal::Recycled { key: meant, name });
    }
    if let Some(what) = untouchable(target, own) {
        return Err(Refusal::Untouchable { pid, name, what });
    }
    if let Some(&uid) = target.uids.iter().find(|uid| !listed.contains(uid)) {
        let listed: Vec<String> = listed.iter().map(ToString::to_string).collect();
        return Err(Refusal::User { pid, name, uid, listed: listed.join(", ") });
    }
    if matches!(target.state, State::Zombie | State::Dead) {
        return Err(Refusal::Ended { pid, name });
    }
    Ok(())
}

/// Returns what it is, if no command may control it.
fn untouchable(target: &Target, own: &OwnProcess) -> Option<&'static str> {
    let pid = target.key.pid;
    if pid <= 1 {
        return Some("the first process of the host");
    }
    if target.is_of_kernel {
        return Some("a thread of the kernel");
    }
    if pid == own.pid {
        return Some("the sensor itself");
    }
    if own.ancestors.contains(&pid) {
        return Some("what the sensor was started by");
    }
    if target.ancestors.contains(&own.pid) {
        return Some("a part of the sensor");
    }
    target.uids.contains(&0).then_some("root's")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: [u32; 2] = [1000, 1001];

    fn good() -> Target {
        Target {
            key: ProcessKey { pid: 4711, start_ns: 5_000_000_000 },
            name: "burn".to_owned(),
            state: State::Running,
            uids: [1000; 4],
            is_of_kernel: false,
            ancestors: vec![300, 1],
        }
    }

    fn judged(change: impl FnOnce(&mut Target)) -> Result<(), Refusal> {
        let meant = good().key;
        let mut target = good();
        change(&mut target);
        decide(meant, &target, &OwnProcess { pid: 900, ancestors: vec![800, 700, 1] }, &LISTED)
    }

    fn check(change: impl FnOnce(&mut Target), part: &str) {
        let refusal = judged(change).expect_err(part).to_string();
        assert!(refusal.contains(part), "{part:?} in {refusal:?}");
    }

    #[test]
    fn a_listed_users_process_may_be_controlled() {
        assert_eq!(judged(|_| ()), Ok(()));
        assert_eq!(judged(|target| target.uids = [1001, 1000, 1000, 1000]), Ok(()));
        assert_eq!(judged(|target| target.key.start_ns += TICK_NS - 1), Ok(()), "the same hundredth");
    }

    #[test]
    fn another_process_under_the_number_is_left_alone() {
        check(|target| target.key.start_ns += TICK_NS, "another process now, burn");
        check(|target| target.key.start_ns -= 1, "another process");
        check(|target| target.key.pid += 1, "another process");
    }

    #[test]
    fn no_account_controls_the_kernel_root_or_the_sensor() {
        check(|target| target.is_of_kernel = true, "thread of the kernel");
        check(|target| target.ancestors = vec![900, 1], "a part of the sensor");
        for place in 0..4 {
            check(|target| target.uids[place] = 0, "root's");
            check(|target| target.uids[place] = 1002, "user 1002");
        }
        let judged = |pid| {
            let mut target = good();
            target.key.pid = pid;
            decide(target.key, &target, &OwnProcess { pid: 900, ancestors: vec![800, 700, 1] }, &LISTED)
        };
        for (pid, part) in
            [(1, "first process"), (900, "sensor itself"), (800, "started by"), (700, "started by")]
        {
            let refusal = judged(pid).expect_err(part).to_string();
            assert!(refusal.contains(part), "{refusal}");
        }
        // Not even if root is listed.
        let mut root = good();
        root.uids = [0; 4];
        let own = OwnProcess { pid: 900, ancestors: Vec::new() };
        assert!(decide(root.key, &root, &own, &[0, 1000]).is_err());
    }

    #[test]
    fn what_has_ended_is_reported() {
        check(|target| target.state = State::Zombie, "has ended already");
    }
}
