//! `sacct` beside the store: the same jobs in the database of slurmdbd, and the same searches.
//!
//! The folder is that of a Slurm that `tests/slurm/start.sh` started with ACCOUNTING=1. `sacct` refuses numbers of users without a
//! name, so it gets a table of users of its own (Debian's libnss-wrapper).

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;
use wire::call::StoredCall;
use wire::call::job::Fact;
use wire::event::Outcome;
use wire::time::Time;

/// User id of `user0`, and the number of users.
const UID: u32 = 70_000;
const USERS: u32 = 200;

/// The jobs as rows of slurmdbd's table of a cluster.
pub(crate) struct Accounting {
    folder: PathBuf,
    rows: String,
}

impl Accounting {
    /// The accounting of `VISPERF_SACCT`; `None` unless that is set.
    pub(crate) fn open() -> Option<Accounting> {
        let folder = std::env::var_os("VISPERF_SACCT")?;
        Some(Accounting { folder: folder.into(), rows: String::new() })
    }

    pub(crate) fn push(&mut self, StoredCall { call, .. }: &StoredCall) {
        let secs = |time: Option<Time>| time.unwrap().micros() / 1_000_000;
        let details = call.details.as_ref().unwrap();
        let state = if call.outcome == Some(Outcome::Ok) { 3 } else { 5 };
        let cpus = details.text(Fact::Cpus).unwrap();
        writeln!(
            self.rows,
            "{}\t{}\t{}\t{}\t{cpus}\t{cpus}\t{}\t{}\t{}\t{}\t{state}\t{}\t{}\t{}\t{}\t1={cpus},2=1024,4=1",
            call.job,
            call.name,
            uid(&call.user),
            details.text(Fact::Account).unwrap(),
            secs(call.submitted),
            secs(call.submitted),
            secs(call.started),
            secs(call.ended),
            if state == 3 { 0 } else { 256 },
            call.hosts.join(","),
            call.hosts.len(),
            details.text(Fact::Queue).unwrap(),
        )
        .unwrap();
    }

    /// Puts the jobs into the table. A database of its own is filled: what was there is deleted.
    pub(crate) fn load(&self) {
        let mut users = std::fs::read_to_string("/etc/passwd").unwrap();
        (0..USERS).for_each(|user| writeln!(users, "user{user}:x:{}:100::/:/bin/sh", UID + user).unwrap());
        std::fs::write(self.folder.join("passwd"), users).unwrap();
        let file = self.folder.join("jobs.tsv");
        std::fs::write(&file, &self.rows).unwrap();
        let sql = format!(
            "DELETE FROM trial_job_table; LOAD DATA LOCAL INFILE '{}' INTO TABLE trial_job_table \
             (id_job, job_name, id_user, account, cpus_req, priority, time_submit, time_eligible, time_start, time_end, \
             state, exit_code, nodelist, nodes_alloc, `partition`, tres_alloc) \
             SET id_assoc = 1, id_group = 0, id_qos = 1, id_resv = 0, id_wckey = 0, id_block = '', het_job_id = 0, \
             het_job_offset = 4294967294, id_array_job = 0, work_dir = '', tres_req = tres_alloc; \
             ANALYZE TABLE trial_job_table; SELECT count(*) FROM trial_job_table",
            file.display()
        );
        let client = Command::new("mariadb")
            .args(["--no-defaults", "--local-infile=1", "--socket"])
            .arg(self.folder.join("mariadb.socket"))
            .args(["slurm_acct_db", "--execute", &sql])
            .output()
            .unwrap();
        assert!(client.status.success(), "{}", String::from_utf8_lossy(&client.stderr));
        println!("the same jobs in slurmdbd's database: {}", String::from_utf8_lossy(&client.stdout).trim());
    }

    /// Prints how long sacct takes for the jobs of each user and time, and how many it finds.
    pub(crate) fn measure(&self, searches: &[(String, i64, i64)]) {
        let nothing = self.sacct(&["--jobs=4000000000".to_owned()]);
        let (mut times, mut rows) = (Vec::new(), 0);
        for (user, since, until) in searches {
            let words = [
                format!("--user={user}"),
                format!("--starttime={}", date(*since)),
                format!("--endtime={}", date(*until)),
                "--state=COMPLETED,FAILED".to_owned(),
            ];
            let (millis, count) = self.sacct(&words);
            times.push(millis);
            rows += count;
        }
        times.sort_by(f64::total_cmp);
        println!(
            "sacct, all jobs of a user in 30 days: median {:.0} ms, 99th percentile {:.0} ms, {} jobs on average; of no job {:.0} ms",
            times[times.len() / 2],
            times[times.len() * 99 / 100],
            rows / searches.len(),
            nothing.0
        );
    }

    fn sacct(&self, words: &[String]) -> (f64, usize) {
        let mut sacct = Command::new("sacct");
        sacct.env("SLURM_CONF", self.folder.join("slurm.conf")).env("TZ", "UTC");
        sacct.env("LD_PRELOAD", "libnss_wrapper.so").env("NSS_WRAPPER_PASSWD", self.folder.join("passwd"));
        sacct.env("NSS_WRAPPER_GROUP", "/etc/group");
        sacct.args(["--allocations", "--parsable2", "--noheader"]);
        sacct.arg("--format=jobid,jobname,user,account,partition,state,exitcode,submit,start,end,alloccpus,nodelist");
        let started = Instant::now();
        let output = sacct.args(words).output().unwrap();
        let millis = started.elapsed().as_secs_f64() * 1e3;
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        (millis, output.stdout.iter().filter(|byte| **byte == b'\n').count())
    }
}

fn uid(user: &str) -> u32 {
    UID + user.trim_start_matches("user").parse::<u32>().unwrap()
}

/// A time as sacct reads it, in UTC.
fn date(secs: i64) -> String {
    let output =
        Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%S", "-d", &format!("@{secs}")]).output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
