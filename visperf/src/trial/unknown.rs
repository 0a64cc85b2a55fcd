//! Lines that no rule matched, grouped by shape.
//!
//! Pure. At most [`GROUPS_MAX`] shapes are distinguished; lines of further shapes are only counted.

use crate::exit::Failure;
use crate::output::{Color, Output, shortened};
use crate::trial::shape::shape;
use std::collections::BTreeMap;
use wire::shown::count;

/// Maximum number of shapes: a log with more does not belong to its filter.
const GROUPS_MAX: usize = 10_000;
/// Bytes stored of an example.
const EXAMPLE_LEN_BYTES: usize = 2_000;
/// Characters shown of an example.
const EXAMPLE_SHOWN_CHARS: usize = 300;

#[derive(Debug)]
struct Group {
    count: u64,
    file: usize,
    line: u64,
    example: String,
}

/// Lines by shape.
#[derive(Debug, Default)]
pub(crate) struct Unknown {
    groups: BTreeMap<String, Group>,
    beyond: u64,
    total: u64,
}

impl Unknown {
    /// Add a line that no rule matched, from the file with this index.
    pub(crate) fn add(&mut self, file: usize, line: u64, text: &[u8]) {
        self.total += 1;
        let text = String::from_utf8_lossy(&text[..text.len().min(EXAMPLE_LEN_BYTES)]);
        let shape = shape(&text);
        let full = self.groups.len() >= GROUPS_MAX;
        match self.groups.get_mut(&shape) {
            Some(group) => group.count += 1,
            None if full => self.beyond += 1,
            None => {
                self.groups.insert(shape, Group { count: 1, file, line, example: text.into_owned() });
            }
        }
    }

    /// Print the groups, most frequent first, at most `most` of them; `files` names the files.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn print(&self, most: usize, files: &[String], output: &mut Output) -> Result<(), Failure> {
        if self.total == 0 {
            return output.line("every line was taken by a rule");
        }
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.count), group.file, group.line));
        let head = format!(
            "{} that no rule took, in {} (first example of each, stamp cut off):",
            count(self.total, "line"),
            count(groups.len() as u64, "group"),
        );
        output.line(&output.paint(Color::Head, &head))?;
        let width = groups.first().map_or(0, |group| group.count.to_string().len());
        for group in groups.iter().take(most) {
            let place = match files {
                [_] => format!("line {}", group.line),
                files => format!("{}:{}", files[group.file], group.line),
            };
            let place = output.paint(Color::Dim, &place).into_owned();
            let example = shortened(&group.example, EXAMPLE_SHOWN_CHARS);
            output.line(&format!("  {:>width$} x  {place}: {example}", group.count))?;
        }
        if groups.len() > most {
            let left: u64 = groups.iter().skip(most).map(|group| group.count).sum();
            let more = groups.len() - most;
            output.line(&format!(
                "  and {} in {}; see them with --unknown {}",
                count(left, "line"),
                count(more as u64, "more group"),
                groups.len()
            ))?;
        }
        if self.beyond > 0 {
            output.line(&format!("  and {} of further shapes", count(self.beyond, "line")))?;
        }
        Ok(())
    }

    /// Number of shapes.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The first line of each of the most frequent shapes, most frequent first.
    pub(crate) fn examples(&self, most: usize) -> Vec<(u64, &str)> {
        let mut groups: Vec<&Group> = self.groups.values().collect();
        groups.sort_by_key(|group| (std::cmp::Reverse(group.count), group.line));
        groups.into_iter().take(most).map(|group| (group.count, group.example.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_shape_are_counted_together() {
        let mut unknown = Unknown::default();
        for (line, text) in [(3, "once 1"), (4, "job 1 lost"), (5, "job 2 lost"), (9, "job 3 lost")] {
            unknown.add(0, line, text.as_bytes());
        }
        assert_eq!(unknown.examples(9), [(3, "job 1 lost"), (1, "once 1")]);
        assert_eq!(unknown.total, 4);
        let group = &unknown.groups["job <n> lost"];
        assert_eq!((group.count, group.line), (3, 4));
    }

    #[test]
    fn shapes_beyond_the_limit_are_only_counted() {
        let mut unknown = Unknown::default();
        for number in 0..GROUPS_MAX + 5 {
            let letters: String = number.to_string().chars().map(|c| char::from(c as u8 + 50)).collect();
            unknown.add(0, 1, letters.as_bytes());
        }
        assert_eq!((unknown.groups.len(), unknown.beyond), (GROUPS_MAX, 5));
    }
}
