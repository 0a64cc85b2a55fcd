//! The table of `docs/accounting.md`: calls compared with the accounting of each product.
//!
//! Prints the table; fails if the page has other figures, or if all logs together are not exact.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::cast_precision_loss,
    reason = "a test prints and may panic"
)]

use crate::accounting::{Logs, Row, Site, condor_arc_lsf, gridengine_torque_gridftp as records, slurm};
use std::path::Path;
use wire::call::Call;
use wire::event::Outcome;

fn job(call: &Call) -> String {
    call.job.to_string()
}

fn any(_: &Call, _: &[Call]) -> bool {
    true
}

fn ran(call: &Call, _: &[Call]) -> bool {
    call.started.is_some()
}

/// The accounting has the tasks of an array, not the array.
fn ran_by_itself(call: &Call, all: &[Call]) -> bool {
    let task = format!("{}.", call.id);
    ran(call, all) && !all.iter().any(|other| other.id.starts_with(&task))
}

/// The server of a transfer: the session log and the transfer log have no number in common, so the nearest
/// start on the same server is taken as the same transfer.
fn server(call: &Call) -> String {
    let of_id = call
        .id
        .strip_prefix("gridftp:")
        .unwrap_or_default()
        .split(['#', '/', '.'])
        .next()
        .unwrap_or_default();
    call.hosts.first().map_or(of_id, |host| host.split('.').next().unwrap_or(host)).to_owned()
}

fn is_ok(call: &Call, _: &[Call]) -> bool {
    call.outcome == Some(Outcome::Ok)
}

const SITES: [Site; 8] = [
    Site {
        folder: "slurm/22.05.8-alpha",
        accounting: &["jobcomp.log"],
        accounts: slurm::accounts,
        key: job,
        is_accounted: any,
    },
    Site {
        folder: "slurm/15.08.7-linux",
        accounting: &["jobcomp.log"],
        accounts: slurm::accounts,
        key: job,
        is_accounted: any,
    },
    Site {
        folder: "gridengine/8.1.9-alpha",
        accounting: &["accounting"],
        accounts: records::gridengine,
        key: job,
        is_accounted: ran_by_itself,
    },
    Site {
        folder: "torque/2.4.16-delta",
        accounting: &["accounting.20261120"],
        accounts: records::torque,
        key: job,
        is_accounted: ran,
    },
    Site {
        folder: "htcondor/23.9.6-cat",
        accounting: &["sub01.EventLog", "joblogs"],
        accounts: condor_arc_lsf::condor,
        key: job,
        is_accounted: any,
    },
    Site {
        folder: "nordugrid-arc/6.17-alpha",
        accounting: &["arex-jobs.log"],
        accounts: condor_arc_lsf::arc,
        key: job,
        is_accounted: any,
    },
    Site {
        folder: "gridftp/13.24-alpha",
        accounting: &["se01.transfer.log", "se02.transfer.log"],
        accounts: records::gridftp,
        key: server,
        is_accounted: is_ok,
    },
    Site {
        folder: "lsf/from-apel-tests",
        accounting: &["lsb.acct"],
        accounts: condor_arc_lsf::lsf,
        key: job,
        is_accounted: any,
    },
];

#[test]
fn the_page_shows_how_calls_agree_with_accounting() {
    let measure = |site: &'static Site| {
        [Logs::Daemons, Logs::Accounting, Logs::All].into_iter().filter_map(|logs| site.measure(logs))
    };
    let rows: Vec<Row> = SITES.iter().flat_map(measure).collect();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/accounting.md");
    let page = std::fs::read_to_string(page).unwrap_or_default();
    println!("| logs of | read | jobs | recall | precision | outcome | hosts | start | end |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    rows.iter().for_each(|row| println!("{row}"));
    let inexact: Vec<String> =
        rows.iter().filter(|row| row.logs == Logs::All && !row.is_exact()).map(ToString::to_string).collect();
    assert!(
        inexact.is_empty(),
        "all logs together do not agree with the accounting:\n{}",
        inexact.join("\n")
    );
    for row in &rows {
        assert!(page.contains(&row.to_string()), "docs/accounting.md has no such row:\n{row}");
    }
}
