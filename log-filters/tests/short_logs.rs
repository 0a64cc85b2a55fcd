//! Calls of short logs: what a few lines say of one job or transfer, read in any order of the files.
//!
//! Each is a case that the recorded logs do not hold. Not here: whole recorded logs (the tests of accounts), the
//! events of single lines (the tests inside the filters).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod collection;

use collection::{Read, moment, registry};
use wire::call::{Call, State};
use wire::event::Outcome;

/// The calls of these files, in the order given and in the reverse order; both must be alike but for what says how the
/// call was put together.
fn calls(files: &[(&str, &str)]) -> Vec<Call> {
    let read =
        |(name, text): &(&str, &str)| collection::read_bytes(registry(), name, text.as_bytes()).unwrap();
    let logs: Vec<Read> = files.iter().map(read).collect();
    for log in &logs {
        assert_eq!(log.unknown, Vec::<String>::new(), "{}", log.filter);
    }
    let sorted = |mut calls: Vec<Call>| {
        calls.sort_by_key(|call| (call.job.clone(), call.user.clone(), call.ended, call.started));
        calls
    };
    let calls = sorted(collection::join(&logs));
    let shape = |call: &Call| {
        format!(
            "{:?}",
            (&call.job, &call.user, call.state, call.started, call.ended, call.outcome, &call.hosts)
        )
    };
    let backwards = sorted(collection::join(logs.iter().rev()));
    let both = [&calls, &backwards].map(|calls| calls.iter().map(shape).collect::<Vec<_>>());
    assert_eq!(both[0], both[1], "read backwards");
    calls
}

fn only(files: &[(&str, &str)]) -> Call {
    let mut calls = calls(files);
    assert_eq!(calls.len(), 1, "{calls:#?}");
    calls.remove(0)
}

const TORQUE_RESTART: &str = "\
11/20/2026 07:58:46;0008;PBS_Server;Job;25.pbs1;Job Queued at request of ann@pbs1, owner = ann@pbs1, job name = g, queue = workq
11/20/2026 07:58:46;0040;PBS_Server;Req;set_nodes;job 25.pbs1 allocated 2 nodes (nodelist=c03/0+c02/0+c02/1)
11/20/2026 07:58:46;0008;PBS_Server;Job;25.pbs1;Job Run at request of Scheduler@pbs1
11/20/2026 07:58:51;0010;PBS_Server;Job;25.pbs1;Exit_status=0 resources_used.cput=00:00:00 resources_used.walltime=00:00:05
11/20/2026 07:59:21;0086;PBS_Server;Job;25.pbs1;Requeueing job, substate: 59 Requeued in queue: workq
11/20/2026 07:59:21;0100;PBS_Server;Job;25.pbs1;dequeuing from workq, state COMPLETE
";

#[test]
fn an_ended_job_that_a_restarted_server_takes_up_again_stays_ended() {
    let accounting = "\
11/20/2026 07:58:51;E;25.pbs1;user=ann jobname=g queue=workq ctime=1795161526 start=1795161526 owner=ann@pbs1 exec_host=c03/0+c02/0+c02/1 end=1795161531 Exit_status=0
";
    for files in
        [&[("server_log", TORQUE_RESTART)][..], &[("server_log", TORQUE_RESTART), ("accounting", accounting)]]
    {
        let call = only(files);
        assert_eq!((call.state, call.outcome, call.tries), (State::Ended, Some(Outcome::Ok), 1), "{call:#?}");
        assert_eq!(call.started, Some(moment("2026-11-20T07:58:46")));
        assert_eq!(call.ended, Some(moment("2026-11-20T07:58:51")));
        assert_eq!(call.hosts, ["c03", "c02"]);
    }
}

#[test]
fn a_job_that_a_restarted_server_found_waiting_was_put_back_only_if_it_ran() {
    let line = |substate: u32| {
        format!(
            "11/20/2026 07:59:21;0086;PBS_Server;Job;26.pbs1;Requeueing job, substate: {substate} Requeued in queue: workq\n"
        )
    };
    let before = TORQUE_RESTART.lines().take(3).map(|line| line.replace("25.pbs1", "26.pbs1") + "\n");
    let before: String = before.collect();
    for (substate, state, tries) in
        [(10, State::Waiting, 1), (42, State::Running, 1), (43, State::Running, 1)]
    {
        let log = before.clone() + &line(substate);
        let call = only(&[("server_log", &log)]);
        assert_eq!((call.state, call.tries), (state, tries), "substate {substate}: {call:#?}");
    }
}
