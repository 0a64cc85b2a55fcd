//! Minutes that are stored elsewhere, and those of the store, are one series where host and metric are the same.

use crate::made::{UNLIMITED, host, metric};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::bucket::Bucket;
use store::merge::{Elsewhere, Merge};
use store::query::By;
use store::reader::Selection;
use store::writer::{Sweep, Writer};
use wire::id::HostName;
use wire::sample::{Metric, Number, Semantics};
use wire::time::Time;

/// A whole hour.
const START: i64 = 1_794_999_600;

fn at(minute: i64) -> Time {
    Time::from_micros((START + 60 * minute) * 1_000_000)
}

fn bucket(value: u64) -> Bucket {
    Bucket::of(Number::Whole(value).into())
}

#[test]
fn minutes_elsewhere_come_before_those_of_the_store_and_mix_with_no_other_series() {
    let folder = tempfile::tempdir().expect("a folder");
    let metrics = ["load", "unasked", "also_asked"].map(|name| metric(name, Semantics::Gauge, &[]));
    let only_elsewhere = metric("only_elsewhere", Semantics::Gauge, &[]);
    let (here, there) = (host("wn01"), host("wn02"));
    let mut writer = Writer::open(folder.path(), UNLIMITED).expect("opened");
    let all: Arc<[Arc<Metric>]> = metrics.clone().into();
    for minute in 120..180 {
        let values = [1, 1000, 2].map(Number::Whole);
        writer.push(&here, Sweep { time: at(minute), metrics: &all, values: &values });
    }
    let is_asked = |metric: &Metric| metric.name != "unasked";
    let selection = Selection { host: &|_: &HostName| true, metric: &is_asked, since: at(0), until: at(180) };
    let mut asked = Vec::new();
    let mut read = |(since, until): (Time, Time), merge: &mut Merge| {
        asked.push((since, until));
        for minute in (0..).take_while(|minute| at(*minute) < until) {
            for (host, metric, value) in
                [(&here, &metrics[0], 1), (&here, &only_elsewhere, 5), (&there, &metrics[0], 7)]
            {
                assert!(merge.add(host, metric, at(minute), &bucket(value)));
            }
        }
    };
    // A day that ends after the store begins.
    let elsewhere = Elsewhere { spans: &[(at(0), at(150))], read: &mut read };
    let step = Duration::from_secs(1800);
    let answer = writer
        .reader()
        .steps_with(&selection, step, &By::Series, (false, 1000), elsewhere)
        .expect("few values");
    assert_eq!((asked, answer.elsewhere), (vec![(at(0), at(120))], vec![(at(0), at(120))]));
    let sums: BTreeMap<(String, String), Vec<u64>> = answer
        .series
        .into_iter()
        .map(|(subject, points)| {
            let sum = |bucket: &Bucket| match Number::from(bucket.sum) {
                Number::Whole(sum) => sum,
                Number::Real(_) => panic!("whole numbers were stored: {bucket:?}"),
            };
            let name = subject.metric.name.to_string();
            let host = subject.host.map(|host| host.to_string()).unwrap_or_default();
            ((host, name), points.iter().map(|point| sum(&point.bucket)).collect())
        })
        .collect();
    let row = |host: &str, name: &str, sums: &[u64]| ((host.to_owned(), name.to_owned()), sums.to_vec());
    assert_eq!(
        sums,
        [
            row("wn01", "also_asked", &[60, 60]),
            row("wn01", "load", &[30; 6]),
            row("wn01", "only_elsewhere", &[150; 4]),
            row("wn02", "load", &[210; 4]),
        ]
        .into()
    );
}
