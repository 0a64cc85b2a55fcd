//! A log that changes under the tail while the sensor runs, is stopped, or is killed.
//!
//! Each kind of change is checked against the truth: every line once, every gap counted, and no gap reported
//! for lines that were read. For each method of recognition, a control disables it and checks that lines are
//! lost.

use crate::tail::rig::Rig;
use std::time::Duration;

/// State of the sensor while the log changes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sensor {
    Running,
    Stopped,
    Killed,
}

use Sensor::{Killed, Running, Stopped};

/// Starts a rig on a log with two lines read, changes the log by `change`, and lets the rig look.
pub(crate) fn changed(sensor: Sensor, change: impl FnOnce(&mut Rig)) -> Rig {
    changed_in(Rig::new("log"), sensor, change)
}

pub(crate) const FIRST: &str = "one, long enough to be unlike any other beginning of logs\n\
                     two, of the same kind but with other words in it\n";

pub(crate) fn changed_in(mut rig: Rig, sensor: Sensor, change: impl FnOnce(&mut Rig)) -> Rig {
    rig.append("log", FIRST);
    rig.start();
    match sensor {
        Running => {}
        Stopped => rig.stop(),
        Killed => rig.kill(),
    }
    change(&mut rig);
    if sensor != Running {
        rig.start();
    }
    rig.look();
    rig.pass(Duration::from_secs(3));
    rig
}

/// Checks that the lines are the first two and then these.
pub(crate) fn check(rig: &Rig, more: &[&str]) {
    let expected: Vec<_> = FIRST.lines().chain(more.iter().copied()).collect();
    assert_eq!(rig.lines(), expected);
}

pub(crate) fn every_way(test: impl Fn(Sensor)) {
    for sensor in [Running, Stopped, Killed] {
        test(sensor);
    }
}
