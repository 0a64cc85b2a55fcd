//! Report of jobs: a table, comma-separated values, or a page of HTML.
//!
//! Pure. Not here: the request (`command::job`).

use crate::exit::Failure;
use crate::harmless::clean;
use crate::output::figures::user;
use crate::output::table::{Cell, Table};
use crate::output::{Color, Output};
use wire::api::job_report::{JobGroup, JobGroupBy, JobReport};
use wire::shown::share;

/// Columns to leave out on a narrow terminal, in this order.
const SPARED: [&str; 6] = ["NODE_FAIL", "CANCELLED", "TIMEOUT", "OK", "FINDINGS", "MEASURED"];

/// Kinds of findings that a line names.
const KINDS_SHOWN: usize = 3;

/// Columns of the comma-separated form, after the key.
const COLUMNS: &str = "jobs,ok,failed,timeout,node_fail,cancelled,finished,allocated_cpu_secs,failed_cpu_secs,measured,\
    used_cpu_secs,wasted_cpu_secs,findings";

/// Head and style of the page.
const PAGE_HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Report of jobs</title>\n\
<style>\nbody { font: 15px/1.4 sans-serif; margin: 2em; color: #222; }\ntable { border-collapse: collapse; }\n\
th, td { padding: .3em .8em; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }\n\
th:first-child, td:first-child, th:last-child, td:last-child { text-align: left; }\nth { border-bottom: 2px solid #888; }\n\
td:last-child { white-space: normal; }\nth:first-child { text-transform: capitalize; }\n\
tr.total td { font-weight: bold; }\nspan.bar { display: inline-block; width: 8em; height: .7em; background: #e4e4e4; }\n\
span.bar span { display: block; height: 100%; background: #2a7ab0; }\n</style>\n</head>\n<body>\n";

/// Print a table of the groups and their total.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_report(by: JobGroupBy, report: &JobReport, output: &mut Output) -> Result<(), Failure> {
    let heads: Vec<&'static str> = [head(by)].into_iter().chain(HEADS).collect();
    let mut table = Table::new(&heads).spares(&SPARED);
    for group in &report.groups {
        table.row(row(by, group, Color::Name));
    }
    if report.groups.len() > 1 || report.left_out > 0 {
        table.row(row(by, &JobGroup { key: "(all)".to_owned(), ..report.total.clone() }, Color::Head));
    }
    table.print(output)
}

const HEADS: [&str; 12] = [
    "JOBS",
    "OK",
    "FAILED",
    "TIMEOUT",
    "NODE_FAIL",
    "CANCELLED",
    "CPU HOURS",
    "LOST",
    "MEASURED",
    "USED",
    "WASTED",
    "FINDINGS",
];

fn row(by: JobGroupBy, group: &JobGroup, color: Color) -> Vec<Cell> {
    let count = |number: u64| Cell::figure(if number == 0 { String::new() } else { number.to_string() });
    let used = efficiency(group).map(share).unwrap_or_default();
    vec![
        Cell::text(key(by, group)).color(color),
        count(group.jobs),
        count(group.ok),
        count(group.failed),
        count(group.timeout),
        count(group.node_fail),
        count(group.cancelled),
        Cell::figure(hours(group.allocated_cpu_secs)),
        Cell::figure(hours(group.failed_cpu_secs)),
        count(group.measured),
        Cell::figure(used),
        Cell::figure(if group.measured > 0 { hours(group.wasted_cpu_secs) } else { String::new() }),
        Cell::text(kinds(group)),
    ]
}

fn key(by: JobGroupBy, group: &JobGroup) -> String {
    match (by, group.key.as_str()) {
        (_, "") => "(not known)".to_owned(),
        (JobGroupBy::User, name) => clean(&user(name)).into_owned(),
        (_, key) => clean(key).into_owned(),
    }
}

const fn head(by: JobGroupBy) -> &'static str {
    match by {
        JobGroupBy::User => "USER",
        JobGroupBy::Account => "ACCOUNT",
        JobGroupBy::Queue => "QUEUE",
        JobGroupBy::Name => "NAME",
        JobGroupBy::Product => "PRODUCT",
        JobGroupBy::Outcome => "OUTCOME",
        JobGroupBy::Month => "MONTH",
    }
}

/// Measured CPU time as a share of that of the allocated CPUs.
fn efficiency(group: &JobGroup) -> Option<f64> {
    let allocated = group.used_cpu_secs + group.wasted_cpu_secs;
    (group.measured > 0 && allocated > 0.0).then(|| group.used_cpu_secs / allocated)
}

/// Seconds as hours.
fn hours(secs: f64) -> String {
    match secs / 3600.0 {
        0.0 => "0".to_owned(),
        hours if hours < 10.0 => format!("{hours:.2}"),
        hours => format!("{hours:.0}"),
    }
}

fn kinds(group: &JobGroup) -> String {
    let shown = group.findings.iter().take(KINDS_SHOWN);
    let shown: Vec<String> = shown.map(|count| format!("{} {}", clean(&count.kind), count.jobs)).collect();
    let more = if group.findings.len() > KINDS_SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

/// Print comma-separated values, with a line of names (RFC 4180, but lines end with a newline alone).
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_csv(by: JobGroupBy, report: &JobReport, output: &mut Output) -> Result<(), Failure> {
    output.line(&format!("{by},{COLUMNS}"))?;
    for group in &report.groups {
        let key = clean(&group.key).replace('"', "\"\"");
        let key = if key.contains([',', '"']) { format!("\"{key}\"") } else { key };
        let counts = [
            group.jobs,
            group.ok,
            group.failed,
            group.timeout,
            group.node_fail,
            group.cancelled,
            group.finished,
        ];
        let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
        let findings: Vec<String> =
            group.findings.iter().map(|count| format!("{}={}", clean(&count.kind), count.jobs)).collect();
        output.line(&format!(
            "{key},{},{:.3},{:.3},{},{:.3},{:.3},{}",
            counts.join(","),
            group.allocated_cpu_secs,
            group.failed_cpu_secs,
            group.measured,
            group.used_cpu_secs,
            group.wasted_cpu_secs,
            findings.join(" ")
        ))?;
    }
    Ok(())
}

/// Print a page of HTML that needs nothing else; `span` is the time of the report.
///
/// # Errors
/// As [`Output::line`].
pub(crate) fn print_html(
    by: JobGroupBy,
    report: &JobReport,
    span: &str,
    output: &mut Output,
) -> Result<(), Failure> {
    let mut page = String::from(PAGE_HEAD);
    page.push_str(&format!(
        "<h1>Jobs of {} by {by}</h1>\n<p>Ended from {}.",
        escaped(&report.domain),
        escaped(span)
    ));
    if report.own_only {
        page.push_str(" Own jobs alone.");
    }
    if report.is_cut {
        page.push_str(" There were too many jobs: the oldest are not summed up.");
    }
    page.push_str("</p>\n<table>\n<tr>");
    let heads = [
        "Jobs",
        "Failed",
        "Time limit",
        "Host failed",
        "Cancelled",
        "CPU hours",
        "Lost",
        "Used",
        "Wasted",
        "Findings",
    ];
    page.push_str(&format!("<th>{by}</th>"));
    heads.iter().for_each(|head| page.push_str(&format!("<th>{head}</th>")));
    page.push_str("</tr>\n");
    report.groups.iter().for_each(|group| page.push_str(&html_row(&key(by, group), group, "")));
    page.push_str(&html_row("all", &report.total, " class=\"total\""));
    page.push_str(
        "</table>\n<p>CPU hours are those of the allocated CPUs. Lost: of jobs that failed, ran until their time limit, or whose \
         host failed. Used: measured CPU time as a share of the allocated.</p>\n</body>\n</html>",
    );
    page.lines().try_for_each(|line| output.line(line))
}

fn html_row(key: &str, group: &JobGroup, class: &str) -> String {
    let counts = [group.jobs, group.failed, group.timeout, group.node_fail, group.cancelled];
    let mut cells: Vec<String> = vec![escaped(key)];
    cells.extend(counts.iter().map(ToString::to_string));
    cells.extend([hours(group.allocated_cpu_secs), hours(group.failed_cpu_secs)]);
    let bar = |part: f64| {
        let width = (part.clamp(0.0, 1.0) * 100.0).round();
        format!("<span class=\"bar\"><span style=\"width: {width}%\"></span></span> {}", share(part))
    };
    cells.push(efficiency(group).map(bar).unwrap_or_default());
    cells.push(if group.measured > 0 { hours(group.wasted_cpu_secs) } else { String::new() });
    cells.push(escaped(&kinds(group)));
    let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
    format!("<tr{class}>{cells}</tr>\n")
}

/// Text in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::capture::Capture;
    use wire::api::job_report::FindingCount;

    fn report() -> JobReport {
        let count = |kind: &str, jobs: u64| FindingCount { kind: kind.to_owned(), jobs };
        let group = |key: &str, jobs: u64| JobGroup {
            key: key.to_owned(),
            jobs,
            failed: 2,
            allocated_cpu_secs: 36_000.0 * 3.0,
            failed_cpu_secs: 900.0,
            measured: 5,
            used_cpu_secs: 300.0,
            wasted_cpu_secs: 900.0,
            findings: ["low_cpu", "idle", "failed_process", "signal"].map(|kind| count(kind, 2)).to_vec(),
            ..JobGroup::default()
        };
        let groups = vec![group("a, \"b\"<\x1b[2J>", 7), JobGroup { measured: 0, ..group("", 1) }];
        JobReport { domain: "site".to_owned(), groups, total: group("", 8), ..JobReport::default() }
    }

    fn printed(
        print: impl FnOnce(&JobReport, &mut Output) -> Result<(), Failure>,
        width: Option<usize>,
    ) -> String {
        let shared = Capture::default();
        print(&report(), &mut Output::into_writer(shared.clone(), width)).unwrap();
        shared.text()
    }

    #[test]
    fn a_table_has_hours_efficiency_and_the_most_frequent_findings() {
        let table = |report: &JobReport, output: &mut Output| print_report(JobGroupBy::Name, report, output);
        let text = printed(table, None);
        for part in
            ["NAME", "(not known)", "(all)", "30", "0.25", "25 %", "low_cpu 2, idle 2, failed_process 2, …"]
        {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
        assert!(!text.contains('\x1b'), "{text:?}");
        assert!(printed(table, Some(80)).lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn a_row_of_values_has_all_columns_and_html_is_escaped() {
        let text = printed(|report, output| print_csv(JobGroupBy::User, report, output), None);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("user,jobs,ok,") && lines[1].starts_with("\"a, \"\"b\"\"<"), "{text}");
        assert_eq!(lines[2].split(',').count(), lines[0].split(',').count(), "{text}");
        assert!(lines[2].ends_with("low_cpu=2 idle=2 failed_process=2 signal=2"), "{text}");
        let page = printed(|report, output| print_html(JobGroupBy::User, report, "a to b", output), None);
        assert!(page.contains("a, &quot;b&quot;&lt;") && !page.contains('\x1b'), "{page}");
        assert!(page.contains("width: 25%") && page.contains("<td>all</td><td>8</td>"), "{page}");
    }
}
