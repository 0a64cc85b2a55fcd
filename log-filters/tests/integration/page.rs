//! The guide to writing a filter is correct: its filter reads its log, and its faulty filters are refused
//! with the quoted messages.
//!
//! Not here: the output of the program, which the program's own tests compare with the page.

use crate::one_filter;

use log_filters::filter::Filter;
use log_filters::test_lines;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use wire::time::Time;

/// Text before a faulty line of a rule.
const HEAD: &str = "[filter]\nname = \"x\"\nproduct = \"X\"\n[[rule]]\n";

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/writing-a-filter.md");
    std::fs::read_to_string(path).expect("the page")
}

/// The text of all blocks with this mark, separated by blank lines.
fn blocks(page: &str, mark: &str) -> String {
    let fence = format!("\n```{mark}\n");
    let mut parts = page.split(&fence).skip(1);
    let first = parts.next().expect("at least one block").split("```").next().expect("a first part");
    parts.fold(first.to_owned(), |all, part| all + "\n" + part.split("```").next().expect("a first part"))
}

#[test]
fn the_filter_reads_the_log() {
    let page = page();
    let filter = Filter::parse("tern.toml", &blocks(&page, "toml tern.toml")).expect("a filter");
    let filter = Arc::new(filter);
    assert!(filter.tests() >= 2);
    assert_eq!(test_lines::run(&filter), []);

    let mut engine = one_filter::engine(&filter);
    let (mut found, mut offset) = (Vec::new(), 0);
    let log = blocks(&page, "text ternd.log");
    for line in log.lines() {
        engine.line(line.as_bytes(), offset, Time::default(), &mut found);
        offset += line.len() as u64 + 1;
    }
    engine.idle(Time::default(), &mut found);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for event in &found {
        *kinds.entry(event.content.kind.to_string()).or_default() += 1;
    }
    let kinds: Vec<String> = kinds.iter().map(|(kind, times)| format!("{kind} {times}")).collect();
    let expected = [
        "job_cancel 1",
        "job_end 2",
        "job_select 2",
        "job_start 2",
        "job_submit 3",
        "node_down 1",
        "node_up 2",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(engine.counters().unknown, 0);
    assert!(engine.rule_counts().all(|(_, took)| took > 0), "every rule of the page takes a line of it");
}

#[test]
fn mistakes_are_refused_in_the_words_of_the_page() {
    let page = page();
    let table = page.split("| written | said |").nth(1).expect("the table of mistakes");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut seen = 0;
    for row in rows {
        let row = row.replace("\\|", "\u{1}");
        let mut texts = row.split('`').skip(1).step_by(2).map(|text| text.replace('\u{1}', "|"));
        let (written, said) = (texts.next().expect("what is written"), texts.next().expect("what is said"));
        let rule = if written.starts_with("match") {
            written.clone()
        } else {
            format!("match = '^job (?P<job>\\d+)'\n{written}")
        };
        let error = Filter::parse("x", &format!("{HEAD}{rule}\n")).expect_err(&written);
        let message = error.message.replace('`', "");
        assert!(message.contains(&said), "{written}: page `{said}`, program `{message}`");
        seen += 1;
    }
    assert!(seen >= 8, "only {seen} rows");
}
