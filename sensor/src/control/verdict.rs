//! Whether an order may be obeyed, by what the process is that has the number now.
//!
//! Pure. Rules: the process is the one that was meant; it is not the first of the host, not a kernel thread, none of root's,
//! not the sensor, none of those that started the sensor and none that it started; and its user is listed.
//! Not here: reading what it is (`target`), doing it (`act`).

use super::refusal::Refusal;
use crate::process::stat::TICK_NS;
use wire::process::{ProcessKey, State};

/// A process as it is asked at the moment of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which it is, its start to a hundredth of a second.
    pub key: ProcessKey,
    /// As the kernel calls it.
    pub name: String,
    /// What it does.
    pub state: State,
    /// Its users: real, effective, saved, and for files.
    pub uids: [u32; 4],
    /// Whether it is a thread of the kernel.
    pub is_of_kernel: bool,
    /// Those above it: its parent, the parent's parent, up to the first.
    pub ancestors: Vec<u32>,
}

/// The sensor's own place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// Its number.
    pub pid: u32,
    /// Those above it.
    pub ancestors: Vec<u32>,
}

/// Whether `target` is what an order for `meant` may be done to; `listed` are the users whose processes may be controlled.
///
/// # Errors
/// Why not.
pub fn judge(meant: ProcessKey, target: &Target, own: &Own, listed: &[u32]) -> Result<(), Refusal> {
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

/// What it is, if no one may touch it.
fn untouchable(target: &Target, own: &Own) -> Option<&'static str> {
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
        judge(meant, &target, &Own { pid: 900, ancestors: vec![800, 700, 1] }, &LISTED)
    }

    fn check(change: impl FnOnce(&mut Target), part: &str) {
        let told = judged(change).expect_err(part).to_string();
        assert!(told.contains(part), "{part:?} in {told:?}");
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
    fn nobody_controls_the_kernel_root_or_the_sensor() {
        check(|target| target.is_of_kernel = true, "thread of the kernel");
        check(|target| target.ancestors = vec![900, 1], "a part of the sensor");
        for place in 0..4 {
            check(|target| target.uids[place] = 0, "root's");
            check(|target| target.uids[place] = 1002, "user 1002");
        }
        let judged = |pid| {
            let mut target = good();
            target.key.pid = pid;
            judge(target.key, &target, &Own { pid: 900, ancestors: vec![800, 700, 1] }, &LISTED)
        };
        for (pid, part) in
            [(1, "first process"), (900, "sensor itself"), (800, "started by"), (700, "started by")]
        {
            let told = judged(pid).expect_err(part).to_string();
            assert!(told.contains(part), "{told}");
        }
        // Not even where the list says so.
        let mut root = good();
        root.uids = [0; 4];
        let own = Own { pid: 900, ancestors: Vec::new() };
        assert!(judge(root.key, &root, &own, &[0, 1000]).is_err());
    }

    #[test]
    fn what_has_ended_is_told() {
        check(|target| target.state = State::Zombie, "has ended already");
    }
}
