//! Calls of short logs: a few lines about one job or transfer, read in any order of the files.
//!
//! Each is a case that the recorded logs lack. Not here: whole recorded logs (the tests of accounts), the
//! events of single lines (the tests inside the filters).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::collection;

use crate::collection::{Read, moment, registry};
use wire::call::{Call, State};
use wire::event::Outcome;

/// The calls of these files, in the given order and in the reverse order; both must be equal except for
/// fields that depend on how the call was put together.
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

const SLURM_REQUEUE: &str = "\
[2026-11-20T13:25:04.072] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=1 usec=704
[2026-11-20T13:25:06.003] sched: Allocate JobId=1 NodeList=n1 #CPUs=1 Partition=p
[2026-11-20T13:26:18.000] Requeuing JobId=1
[2026-11-20T13:26:18.020] _job_complete: JobId=1 WTERMSIG 15
[2026-11-20T13:28:17.003] Recovered JobId=1 Assoc=0
[2026-11-20T13:28:27.003] sched: Allocate JobId=1 NodeList=n2 #CPUs=1 Partition=p
";

#[test]
fn the_late_end_of_a_run_that_was_put_back_does_not_end_the_job() {
    let waiting: String = SLURM_REQUEUE.lines().take(5).map(|line| line.to_owned() + "\n").collect();
    let call = only(&[("slurmctld.log", &waiting)]);
    assert_eq!((call.state, call.outcome, call.ended), (State::Waiting, None, None), "{call:#?}");
    assert_eq!((call.signal.as_str(), call.tries), ("", 1), "{call:#?}");
    let call = only(&[("slurmctld.log", SLURM_REQUEUE)]);
    assert_eq!((call.id.as_str(), call.state, call.tries), ("slurm:1", State::Running, 2), "{call:#?}");
    assert_eq!(call.submitted, Some(moment("2026-11-20T13:25:04.072")));
    assert_eq!((call.started, call.ended), (Some(moment("2026-11-20T13:28:27.003")), None), "{call:#?}");
    assert_eq!(call.hosts, ["n2"]);
    let ends = SLURM_REQUEUE.to_owned() + "[2026-11-20T13:28:40.000] _job_complete: JobId=1 WEXITSTATUS 0\n";
    let call = only(&[("slurmctld.log", &ends)]);
    assert_eq!(
        (call.outcome, call.ended),
        (Some(Outcome::Ok), Some(moment("2026-11-20T13:28:40"))),
        "{call:#?}"
    );
}

#[test]
fn a_job_that_was_put_back_and_is_cancelled_while_it_waits_ends() {
    let log: String = SLURM_REQUEUE.lines().take(3).map(|line| line.to_owned() + "\n").collect();
    let log = log + "[2026-11-20T13:26:30.000] job_signal: 9 of pending JobId=1 successful\n";
    let call = only(&[("slurmctld.log", &log)]);
    assert_eq!((call.state, call.outcome), (State::Ended, Some(Outcome::Cancelled)), "{call:#?}");
}

#[test]
fn a_rerun_whose_exit_is_printed_late_waits() {
    let log = "\
11/20/2026 07:58:46;0008;PBS_Server;Job;27.pbs1;Job Queued at request of ann@pbs1, owner = ann@pbs1, job name = g, queue = workq
11/20/2026 07:58:46;0008;PBS_Server;Job;27.pbs1;Job Run at request of Scheduler@pbs1
11/20/2026 07:58:51;0008;PBS_Server;Job;27.pbs1;Job Rerun at request of root@pbs1
11/20/2026 07:58:53;0010;PBS_Server;Job;27.pbs1;Exit_status=271 resources_used.cput=00:00:00 resources_used.walltime=00:00:07
";
    let call = only(&[("server_log", log)]);
    assert_eq!((call.state, call.ended, call.outcome), (State::Waiting, None, None), "{call:#?}");
    let again = log.to_owned()
        + "11/20/2026 07:59:00;0008;PBS_Server;Job;27.pbs1;Job Run at request of Scheduler@pbs1\n";
    let call = only(&[("server_log", &again)]);
    assert_eq!((call.state, call.tries), (State::Running, 2), "{call:#?}");
}

/// An accounting record of a job that ran on one host.
fn record(job: u32, times: &str, how: &str, run_secs: u32, category: &str) -> String {
    format!(
        "all.q:n1.x:ann:ann:b:{job}:sge:0:{times}:{how}:{run_secs}:0.0:0.0:5204.0:0:0:0:0:597:0:0:8.0:8:0:0:0:13:9:NONE:dep:NONE:1:0:0.01:0.0:0.0:{category}:0.0:NONE:0.0:0:0\n"
    )
}

#[test]
fn a_deleted_job_with_a_far_limit_of_time_is_cancelled() {
    let messages = "\
11/20/2026 12:50:31|worker|m|I|ann has registered the job 4 for deletion
11/20/2026 12:50:32|worker|m|W|job 4.1 failed on host n1.x assumedly after job because: job 4.1 died through signal KILL (9)
";
    let deleted = record(4, "1795179030:1795179030:1795179032", "100:137", 2, "-l h_rt=86400");
    let over = record(4, "1795179030:1795179030:1795179042", "100:137", 12, "-l h_rt=12");
    for files in
        [&[("accounting", &*deleted)][..], &[("accounting", &*deleted), ("qmaster.messages", messages)]]
    {
        let call = only(files);
        assert_eq!(call.outcome, Some(Outcome::Cancelled), "{call:#?}");
    }
    assert_eq!(only(&[("accounting", &over)]).outcome, Some(Outcome::Timeout));
}

#[test]
fn a_job_killed_though_no_log_has_a_request_failed() {
    let failed = "\
11/20/2026 12:50:32|worker|m|W|job 3.1 failed on host n1.x assumedly after job because: job 3.1 died through signal KILL (9)
";
    let accounting = record(3, "1795179030:1795179030:1795179032", "100:137", 2, "NONE");
    let call = only(&[("accounting", &accounting), ("qmaster.messages", failed)]);
    assert_eq!((call.outcome, call.signal.as_str()), (Some(Outcome::Failed), "9"), "{call:#?}");
    assert_eq!((call.code.as_str(), call.ended), ("137", Some(moment("2026-11-20T12:50:32"))), "{call:#?}");
    let log =
        |text: &str| format!("1795179030:job_log:1795179030:{text}:1024:1795179030:b:ann:ann::dep:sge:x\n");
    let reporting = log("delivered:3:0:NONE:r:master:m:0") + "1795179033:acct:" + &accounting;
    let call = only(&[("reporting", &reporting)]);
    assert_eq!(call.outcome, Some(Outcome::Failed), "{call:#?}");
    let reporting = log("delivered:3:0:NONE:r:master:m:0")
        + &log("deleted:3:0:NONE:r:ann:m:0")
        + "1795179033:acct:"
        + &accounting;
    assert_eq!(only(&[("reporting", &reporting)]).outcome, Some(Outcome::Cancelled));
}

#[test]
fn a_job_that_is_put_back_twice_within_two_seconds_waits() {
    let again = |start: u32| {
        let times = format!("1795181359:{start}:{}", start + 1);
        record(4, &times, "25:99", 1, "NONE")
    };
    for second in [1_795_181_361, 1_795_181_363] {
        let accounting = again(1_795_181_360) + &again(second);
        let call = only(&[("accounting", &accounting)]);
        assert_eq!((call.state, call.started, call.tries), (State::Waiting, None, 2), "{call:#?}");
    }
    let messages = "\
11/20/2026 13:29:21|worker|m|W|job 4.1 failed on host n1.x rescheduling because: job was rescheduled
11/20/2026 13:29:22|worker|m|W|job 4.1 failed on host n1.x rescheduling because: job was rescheduled
";
    let accounting = again(1_795_181_360) + &again(1_795_181_361);
    let call = only(&[("accounting", &accounting), ("qmaster.messages", messages)]);
    assert_eq!((call.state, call.started, call.tries), (State::Waiting, None, 2), "{call:#?}");
}

#[test]
fn a_job_of_several_processes_is_one_call() {
    let manager = "\
ts=2026-11-20T13:11:46.140409Z id=7 event=gram.job.start level=DEBUG gramid=/17/23/ peer=10.0.0.1
ts=2026-11-20T13:11:46.240409Z id=7 event=gram.job.info level=INFO msg=\"job submitted to lrm\" gramid=/17/23/ lrm_id=\"ed-1:509,ed-1:510\"
ts=2026-11-20T13:11:56.240409Z id=7 event=gram.job.end level=INFO gramid=/17/23/ job_status=8 exit_code=0 status=0 msg=\"Job complete\"
";
    let states = "\
001;1795180306;ed-1:509;2;0
001;1795180306;ed-1:510;2;0
001;1795180310;ed-1:509;8;0
001;1795180316;ed-1:510;8;0
";
    let call = only(&[("gram_ann.log", manager), ("globus-seg-fork.20261120", states)]);
    assert_eq!((call.user.as_str(), call.job.as_str()), ("ann", "/17/23/"), "{call:#?}");
    assert_eq!((call.state, call.outcome), (State::Ended, Some(Outcome::Ok)), "{call:#?}");
    assert_eq!(call.ended, Some(moment("2026-11-20T13:11:56.240409")), "{call:#?}");
}

#[test]
fn a_failed_transfer_does_not_take_the_record_of_the_next_of_its_file() {
    let session = "\
[100] Fri Nov 20 12:33:22 2026 :: User ann successfully authorized.
[100] Fri Nov 20 12:33:22 2026 :: Starting to transfer \"/d/a.root\".
[100] Fri Nov 20 12:33:22 2026 :: Failure attempting to transfer \"/d/a.root\".
[100] Fri Nov 20 12:33:22 2026 :: Transfer failure:
an end-of-file was reached
[200] Fri Nov 20 12:33:23 2026 :: User bob successfully authorized.
[200] Fri Nov 20 12:33:23 2026 :: Starting to transfer \"/d/a.root\".
[200] Fri Nov 20 12:33:23 2026 :: Finished transferring \"/d/a.root\".
";
    let transfer = "\
DATE=20261120123323.561449 HOST=se01.x NAME=x PROG=globus-gridftp-server NL.EVNT=FTP_INFO START=20261120123323.159831 USER=bob FILE=/d/a.root BUFFER=69120 BLOCK=262144 NBYTES=300000 VOLUME=/ STREAMS=1 STRIPES=1 DEST=[10.82.1.13] TYPE=RETR CODE=226 TASKID=none
"
    .replace(" NAME=x", "");
    let calls = calls(&[("se01.gridftp.log", session), ("se01.transfer.log", &transfer)]);
    let ends: Vec<_> =
        calls.iter().map(|call| (call.user.as_str(), call.outcome, call.code.as_str())).collect();
    assert_eq!(ends, [("ann", Some(Outcome::Failed), ""), ("bob", Some(Outcome::Ok), "226")], "{calls:#?}");
}

#[test]
fn an_arrays_task_and_a_part_of_a_heterogeneous_job_have_one_number_in_every_log() {
    let controller = "\
[2026-11-20T12:24:21.447] sched: Allocate JobId=9_0(13) NodeList=wn04 #CPUs=1 Partition=short
[2026-11-20T12:24:22.498] _job_complete: JobId=9_0(13) WEXITSTATUS 0
[2026-11-20T12:24:23.447] sched: Allocate JobId=14+1(15) NodeList=wn04 #CPUs=1 Partition=short
[2026-11-20T12:24:24.498] _job_complete: JobId=14+1(15) WEXITSTATUS 0
";
    let record = |job: u32, end: u32, rest: &str| {
        format!(
            "JobId={job} UserId=ann(1001) GroupId=ann(1001) Name=x JobState=COMPLETED Partition=short TimeLimit=10 StartTime=2026-11-20T12:24:21 EndTime=2026-11-20T12:24:{end} NodeList=wn04 NodeCnt=1 ProcCnt=1 WorkDir=/ ReservationName= Tres= Account= QOS= WcKey= Cluster=a SubmitTime=2026-11-20T12:24:20 EligibleTime=2026-11-20T12:24:20 {rest} DerivedExitCode=0:0 ExitCode=0:0 \n"
        )
    };
    let completed =
        record(13, 22, "ArrayJobId=9 ArrayTaskId=0") + &record(15, 24, "HetJobId=14 HetJobOffset=1");
    let (controller, completed) = (("slurmctld.log", controller), ("jobcomp.log", &*completed));
    for files in [&[controller][..], &[completed], &[controller, completed]] {
        let jobs: Vec<String> = calls(files).iter().map(|call| call.job.to_string()).collect();
        assert_eq!(jobs, ["14+1", "9_0"], "{files:?}");
    }
}

#[test]
fn an_element_of_an_array_has_one_number_in_accounting_and_events() {
    let accounting = r#""JOB_FINISH" "7.06" 1302184020 436491 10001 33816691 4 1302184001 0 0 1302184004 "viglen" "normal" "" "" "" "comp000" "bin" "" "IMB.out" "" "1302184001.436491" 0 1 "comp042" 64 60.0 "imb[1-3]" "run" 0.4 1.1 0 0 -1 0 0 149746 0 0 0 0 -1 0 0 0 1907 1746 -1 "" "default" 0 4 "" "" 1 2 25 "" "" "" "" 0 "" 0 "" -1 "" "" "" "" -1 "" "" 0
"#;
    let events = r#""JOB_START" "9.11" 1302184004 436491 4 0 0 60.0 1 "comp042" "" "" 0 "" 1 "" 0 0
"#;
    let (accounting, events) = (("lsb.acct", accounting), ("lsb.events", events));
    for files in [&[accounting][..], &[events], &[events, accounting]] {
        assert_eq!(only(files).job, "436491[1]", "{files:?}");
    }
}

#[test]
fn a_request_to_end_a_job_that_is_refused_does_not_end_it() {
    let log = "\
[2026-11-20T12:24:17.446] _slurm_rpc_submit_batch_job: JobId=42 InitPrio=1 usec=718
[2026-11-20T12:31:27.874] _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=42 uid 1003
[2026-11-20T12:31:27.874] error: Security violation, REQUEST_KILL_JOB RPC for JobId=42 from uid 1003
[2026-11-20T12:31:27.874] _slurm_rpc_kill_job: job_str_signal() uid=1003 JobId=42 sig=9 returned: Access/permission denied
";
    let call = only(&[("slurmctld.log", log)]);
    assert_eq!((call.state, call.outcome), (State::Waiting, None), "{call:#?}");
}
