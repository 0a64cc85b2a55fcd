//! A log that changes under the tail, with the sensor running, stopped or killed meanwhile.
//!
//! Each way to change is checked against the truth: every line once, every gap counted, and nothing told as a
//! gap that was read. For each means of recognition a control switches it off and sees the loss.

use crate::tail::rig::Rig;
use std::time::Duration;

/// Whether the sensor runs while the log changes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Sensor {
    Running,
    Stopped,
    Killed,
}

use Sensor::{Killed, Running, Stopped};

/// A started rig on a log with two lines read, about to be changed by `change`; then the rig has looked.
pub(crate) fn changed(sensor: Sensor, change: impl FnOnce(&mut Rig)) -> Rig {
    changed_in(Rig::new("log"), sensor, change)
}

pub(crate) const FIRST: &str = "one, long enough to be told from other beginnings of logs\n\
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

/// The first two lines, then these.
pub(crate) fn check(rig: &Rig, more: &[&str]) {
    let expected: Vec<_> = FIRST.lines().chain(more.iter().copied()).collect();
    assert_eq!(rig.lines(), expected);
}

pub(crate) fn every_way(test: impl Fn(Sensor)) {
    for sensor in [Running, Stopped, Killed] {
        test(sensor);
    }
}
