//! Pages: together they are the whole answer, whatever their size.

use crate::made::{Maker, open, push};
use std::time::Duration;
use store::page::{Page, Place};
use store::query::{By, Point, Subject, TooLarge};
use store::reader::{Reader, Selection};
use wire::time::Time;

/// Series and their points.
type All = Vec<(Subject, Vec<Point>)>;

const STEP: Duration = Duration::from_secs(60);

fn all(reader: &Reader, selection: &Selection) -> All {
    reader.steps(selection, STEP, &By::Series, false, usize::MAX).expect("no limit").series
}

/// All pages of this size at most; how many there are.
fn pages(reader: &Reader, selection: &Selection, max: usize) -> Result<(All, usize), TooLarge> {
    let (mut series, mut count, mut after) = (Vec::new(), 0, None::<Place>);
    loop {
        let Page { answer, next } = reader.page(selection, STEP, max, after)?;
        assert!(answer.series.iter().map(|(_, points)| points.len()).sum::<usize>() <= max);
        let hosts: Vec<_> = answer.series.iter().map(|(subject, _)| &subject.host).collect();
        assert!(hosts.windows(2).all(|pair| pair[0] == pair[1]), "of one host: {hosts:?}");
        series.extend(answer.series);
        count += 1;
        after = next;
        if after.is_none() {
            return Ok((series, count));
        }
    }
}

#[test]
fn pages_of_any_size_are_the_whole_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = open(folder.path());
    let mut makers = [Maker::new("wn02", 5), Maker::new("wn01", 9), Maker::new("wn10", 12)];
    for _ in 0..900 {
        makers.iter_mut().for_each(|maker| push(&mut writer, &maker.next()));
    }
    let reader = writer.reader();
    let (any_host, any_metric) = (|_: &_| true, |_: &_| true);
    let since = Time::from_micros(1_795_000_000_000_000);
    let selection = Selection { host: &any_host, metric: &any_metric, since, until: since.plus(STEP * 900) };
    let wanted = all(&reader, &selection);
    assert_eq!(wanted.len(), 3 * 6);
    let longest = wanted.iter().map(|(_, points)| points.len()).max().expect("some");
    assert!(longest > 20, "{longest}");
    for (max, at_least) in [(usize::MAX, 3), (3 * longest, 6), (longest, 18)] {
        let (found, count) = pages(&reader, &selection, max).expect("each series fits");
        assert_eq!(found, wanted, "{max}");
        assert!((at_least..=40).contains(&count), "{max}: {count}");
    }
    assert_eq!(pages(&reader, &selection, longest - 1), Err(TooLarge::Answer { max: longest - 1 }));
    let none = Selection { metric: &|metric| metric.name == "none", ..selection };
    assert_eq!(pages(&reader, &none, 10), Ok((Vec::new(), 1)));
    let one = Selection { metric: &|metric| metric.name == "load", ..selection };
    assert_eq!(pages(&reader, &one, longest).expect("fits"), (all(&reader, &one), 3));
}

#[test]
fn a_host_that_is_new_between_two_pages_moves_no_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = open(folder.path());
    let mut makers = [Maker::new("wn02", 5), Maker::new("wn05", 9)];
    for _ in 0..100 {
        makers.iter_mut().for_each(|maker| push(&mut writer, &maker.next()));
    }
    let reader = writer.reader();
    let (any_host, any_metric) = (|_: &_| true, |_: &_| true);
    let since = Time::from_micros(0);
    let until = Time::from_micros(i64::MAX / 2);
    let selection = Selection { host: &any_host, metric: &any_metric, since, until };
    let first = reader.page(&selection, STEP, usize::MAX, None).expect("no limit");
    let mut late = [Maker::new("wn01", 3), Maker::new("wn03", 4)];
    late.iter_mut().for_each(|maker| push(&mut writer, &maker.next()));
    let names = |page: &Page| {
        let host = |subject: &Subject| subject.host.as_ref().map(ToString::to_string).unwrap_or_default();
        page.answer.series.first().map(|(subject, _)| host(subject)).unwrap_or_default()
    };
    assert_eq!(names(&first), "wn02");
    let second = reader.page(&selection, STEP, usize::MAX, first.next).expect("no limit");
    assert_eq!(names(&second), "wn03", "and wn01 is not missed by those who begin now");
    let third = reader.page(&selection, STEP, usize::MAX, second.next).expect("no limit");
    assert_eq!((names(&third).as_str(), third.next), ("wn05", None));
}
