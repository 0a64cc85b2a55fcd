//! The tutorial on writing a filter, followed command by command: its commands print what it shows.
//!
//! A line `…` of the page matches any lines, a line that ends in ` …` any rest.

use crate::program::Home;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each fenced block: its info string and its text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let inside = page.split("\n```").skip(1).step_by(2);
    inside.map(|block| block.split_once('\n').unwrap_or((block, ""))).collect()
}

/// Execute a block of the page; returns the number of commands.
fn follow(home: &Home, mark: &str, text: &str, pieces: &mut usize) -> usize {
    match mark.split_once(' ') {
        Some(("toml", file)) => {
            // The first piece replaces the draft.
            let old = match *pieces {
                0 => String::new(),
                _ => std::fs::read_to_string(home.path().join(file)).unwrap() + "\n",
            };
            *pieces += 1;
            home.file(file, format!("{old}{text}\n"));
            0
        }
        Some((_, file)) => {
            home.file(file, format!("{text}\n"));
            0
        }
        None if mark == "console" => {
            let commands = text.strip_prefix("$ ").expect("a block of commands begins with one");
            commands.split("\n$ ").map(|command| compare(home, command)).count()
        }
        None => 0,
    }
}

/// Run a command of the page and compare its output.
fn compare(home: &Home, example: &str) {
    let (line, expected) = example.split_once('\n').unwrap_or((example, ""));
    let program = PathBuf::from(env!("CARGO_BIN_EXE_visperf"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{line} 2>&1")]).current_dir(home.path()).env_clear();
    shell.env("HOME", home.path()).env("TZ", "UTC");
    shell.env("PATH", format!("{}:/usr/bin:/bin", program.parent().unwrap().display()));
    let output = shell.output().unwrap();
    let all = String::from_utf8(output.stdout).unwrap();
    let mut printed = all.lines().map(str::trim_end);
    let mut skips = false;
    for expected in expected.lines() {
        if expected == "…" {
            skips = true;
            continue;
        }
        let fits = |line: &str| match expected.strip_suffix(" …") {
            Some(start) => line.starts_with(start),
            None => line == expected,
        };
        let found = if skips { printed.any(fits) } else { printed.next().is_some_and(fits) };
        assert!(found, "`{line}` does not print, where the page has it: {expected}\nbut:\n{all}");
        skips = false;
    }
    let left: Vec<&str> = printed.filter(|_| !skips).collect();
    assert!(left.is_empty(), "`{line}` prints more than the page has: {left:?}");
}

#[test]
fn the_page_about_filters_can_be_followed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/writing-a-filter.md");
    let page = std::fs::read_to_string(path).unwrap();
    let home = Home::new();
    let (mut pieces, mut commands) = (0, 0);
    for (mark, text) in blocks(&page) {
        commands += follow(&home, mark, text, &mut pieces);
    }
    assert!(commands >= 9 && pieces >= 5, "only {commands} commands and {pieces} pieces of a filter");
}
