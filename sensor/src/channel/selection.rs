//! Whose processes a channel is about.
//!
//! Pure. Not here: finding a user's number (`process::details`).

use super::fields::Seen;
use crate::likeness;
use crate::process::table::Table;
use wire::channel::{Error, Selection, TEXT_LEN_MAX_BYTES};
use wire::process::Process;

/// Longest way up looked at for an ancestor: no real tree of processes is deeper, and numbers that were taken anew may form
/// a circle.
const ANCESTORS_MAX: usize = 256;

/// Refuse a selection whose texts are too long.
///
/// # Errors
/// Which is.
pub fn check(selection: &Selection) -> Result<(), Error> {
    for (what, text) in [("name", &selection.name), ("command", &selection.command)] {
        let found = text.as_ref().map_or(0, |text| text.len());
        if found > TEXT_LEN_MAX_BYTES {
            return Err(Error::Text { what, max: TEXT_LEN_MAX_BYTES, found });
        }
    }
    Ok(())
}

/// Whether the process is one of those that are meant.
#[must_use]
pub fn fits(selection: &Selection, seen: &Seen<'_>, table: &Table) -> bool {
    let Selection { name, uid, command, pid, under } = selection;
    let process = seen.process;
    pid.is_none_or(|pid| process.key.pid == pid)
        && uid.is_none_or(|uid| process.uid == uid)
        && name.as_ref().is_none_or(|name| likeness::means(name, &process.name))
        && command
            .as_ref()
            .is_none_or(|command| seen.command.is_some_and(|told| likeness::means(command, told)))
        && under.is_none_or(|top| is_under(top, process, table))
}

fn is_under(top: u32, process: &Process, table: &Table) -> bool {
    let up = |process: &&Process| table.get(process.parent);
    std::iter::successors(Some(process), up).take(ANCESTORS_MAX).any(|process| process.key.pid == top)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::table::Coverage;
    use wire::process::ProcessKey;

    #[test]
    fn those_are_meant_that_fit_all_that_is_given() {
        let mut table = Table::default();
        table.begin(1, 1, Coverage::All);
        for (pid, parent, uid, name) in [
            (1, 0, 0, "init"),
            (2, 1, 7, "bash"),
            (3, 2, 7, "python3"),
            (4, 1, 7, "python3"),
            (8, 9, 7, "a"),
            (9, 8, 7, "b"),
        ] {
            let key = ProcessKey { pid, start_ns: 0 };
            table.set(Process { key, parent, uid, name: name.into(), ..Process::default() });
        }
        table.end(0);
        let check = |selection: Selection, expected: &[u32]| {
            let told = |process: &&Process| {
                let command = (process.key.pid == 3).then_some("python3 train.py");
                fits(&selection, &Seen { process, cpu: None, command }, &table)
            };
            let pids: Vec<u32> =
                table.rows().iter().flatten().filter(told).map(|process| process.key.pid).collect();
            assert_eq!(pids, expected, "{selection:?}");
        };
        check(Selection::default(), &[1, 2, 3, 4, 8, 9]);
        check(Selection { name: Some("py*".into()), ..Selection::default() }, &[3, 4]);
        check(Selection { uid: Some(7), under: Some(2), ..Selection::default() }, &[2, 3]);
        check(Selection { under: Some(1), ..Selection::default() }, &[1, 2, 3, 4]);
        check(Selection { under: Some(5), ..Selection::default() }, &[]);
        check(Selection { pid: Some(4), uid: Some(0), ..Selection::default() }, &[]);
        check(Selection { command: Some("*train*".into()), ..Selection::default() }, &[3]);
        let long =
            Selection { name: Some("a".repeat(TEXT_LEN_MAX_BYTES + 1).into()), ..Selection::default() };
        assert!(super::check(&long).is_err());
    }
}
