//! Archives of the series of jobs: each host's series are at as many of them as wanted, whatever comes, goes or lies.

mod site;

use rpc::codec::value::Value;
use sensor::archive::owners::owners;
use site::{DAY, NOON, Site, config, name, state_of};
use std::collections::BTreeSet;
use std::time::Duration;
use wire::api::archive::SeriesCopyParams;
use wire::fault;
use wire::query::Viewer;
use wire::time::Time;

const LARGE: u64 = 64 << 20;
const HOSTS: [&str; 6] = ["wn1", "wn2", "wn3", "wn4", "wn5", "wn6"];

fn archives(names: &[&str]) -> BTreeSet<wire::id::HostName> {
    names.iter().map(|each| name(each)).collect()
}

fn owners_of(host: &str, among: &[&str]) -> Vec<String> {
    owners(&name(host), &archives(among), 2).into_iter().map(ToString::to_string).collect()
}

/// Six hosts with a job of two days each.
fn six_hosts() -> Site {
    let site = Site::default();
    for host in HOSTS {
        site.start(host, None);
        site.run_job(host, "slurm:17", NOON, 400);
        site.run_job(host, "slurm:18", NOON.plus(DAY), 90);
    }
    site
}

/// Waits until each host's series are where they belong, and nowhere else.
async fn settled(site: &Site, among: &[&str], days: &[(&str, Vec<(jiff::civil::Date, u64)>)]) {
    let what = format!("series are where they belong among {among:?}");
    site.until(&what, |site| {
        days.iter().all(|(host, days)| {
            let at = |archive: &&&str| !site.days(archive, host).is_empty();
            let found: BTreeSet<String> = among.iter().filter(at).map(ToString::to_string).collect();
            let expected: BTreeSet<String> = owners_of(host, among).into_iter().collect();
            found == expected && expected.iter().all(|archive| site.days(archive, host) == *days)
        })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_hosts_series_are_at_two_archives_and_answered_there_to_the_same_users() {
    let (site, three) = (six_hosts(), ["store1", "store2", "store3"]);
    three.iter().for_each(|archive| site.start(archive, Some(config(LARGE, 2))));
    let days: Vec<_> = HOSTS.iter().map(|host| (*host, site.own_days(host))).collect();
    assert!(days.iter().all(|(_, days)| days.len() == 2));
    settled(&site, &three, &days).await;
    let archive = owners_of("wn1", &three).remove(0);
    let users = [(Viewer::Trusted, 1), (Viewer::User(1000), 1), (Viewer::User(7), 0), (Viewer::Anonymous, 0)];
    for (viewer, curves) in users {
        let own = site.series("wn1", None, "slurm:17", NOON, viewer).await.expect("an answer");
        let copy = site.series(&archive, Some("wn1"), "slurm:17", NOON, viewer).await.expect("an answer");
        assert_eq!((own.curves.len(), &own.curves), (curves, &copy.curves), "{viewer:?}");
        assert_eq!((copy.host.as_str(), copy.archive.as_deref()), ("wn1", Some(archive.as_str())));
    }
    // What goes on is copied, too.
    site.run_job("wn1", "slurm:19", NOON.plus(2 * DAY), 200);
    site.until("the third day", |site| site.days(&archive, "wn1") == site.own_days("wn1")).await;
    let unknown = site.series(&archive, Some("wn9"), "slurm:17", NOON, Viewer::Trusted).await;
    assert!(unknown.is_err_and(|fault| fault.code == fault::NOT_FOUND && fault.message.contains("wn9")));
    let none = site.series("wn1", Some("wn2"), "slurm:17", NOON, Viewer::Trusted).await;
    assert!(none.is_err_and(|fault| fault.message.contains("[sensor.archive]")));
}

#[tokio::test(flavor = "multi_thread")]
async fn others_take_over_from_an_archive_that_is_gone_and_give_back_what_a_new_one_has() {
    let (site, three) = (six_hosts(), ["store1", "store2", "store3"]);
    three.iter().for_each(|archive| site.start(archive, Some(config(LARGE, 2))));
    let days: Vec<_> = HOSTS.iter().map(|host| (*host, site.own_days(host))).collect();
    settled(&site, &three, &days).await;
    // The hosts are gone: what an archive has of them is nowhere else than at another one.
    HOSTS.iter().for_each(|host| site.stop(host, 3600.0));
    site.stop("store1", 5.0);
    let has_all = |archive: &str| HOSTS.iter().all(|host| !site.days(archive, host).is_empty());
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!has_all("store2") || !has_all("store3"), "a restart moves nothing");
    site.stop("store1", 61.0);
    settled(&site, &["store2", "store3"], &days).await;
    site.start("store1", Some(config(LARGE, 2)));
    site.start("store4", Some(config(LARGE, 2)));
    settled(&site, &["store1", "store2", "store3", "store4"], &days).await;
    for host in HOSTS {
        let archive = owners_of(host, &["store1", "store2", "store3", "store4"]).remove(1);
        let series = site.series(&archive, Some(host), "slurm:17", NOON, Viewer::Trusted).await;
        assert_eq!(series.expect("an answer").curves[0].times.len(), 400, "{host} at {archive}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_archive_does_not_give_is_asked_for_again() {
    let (site, three) = (six_hosts(), ["store1", "store2", "store3"]);
    three[..2].iter().for_each(|archive| site.start(archive, Some(config(LARGE, 2))));
    let days: Vec<_> = HOSTS.iter().map(|host| (*host, site.own_days(host))).collect();
    settled(&site, &three[..2], &days).await;
    HOSTS.iter().for_each(|host| site.stop(host, 3600.0));
    three[..2].iter().for_each(|archive| site.lie(archive, Value::Bool(true)));
    site.start("store3", Some(config(LARGE, 2)));
    let has_failed = |site: &Site| site.state("store3").hosts.iter().any(|host| host.problem.is_some());
    site.until("a copy that failed", has_failed).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    for (host, archive) in HOSTS.iter().flat_map(|host| three[..2].iter().map(move |archive| (host, archive)))
    {
        assert!(!site.days(archive, host).is_empty(), "{archive} gives up {host}, which store3 has not yet");
    }
    three[..2].iter().for_each(|archive| site.honest(archive));
    settled(&site, &three, &days).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_a_new_disk_costs_the_archive_nothing() {
    let site = six_hosts();
    site.start("store1", Some(config(LARGE, 1)));
    site.until("all is there", |site| {
        HOSTS.iter().all(|host| site.days("store1", host) == site.own_days(host))
    })
    .await;
    site.stop("wn1", 1.0);
    site.lose("wn1");
    site.start("wn1", None);
    // Of the same day, and shorter.
    site.run_job("wn1", "slurm:20", NOON, 40);
    site.until("the new log is copied", |site| site.days("store1", "wn1")[0] == site.own_days("wn1")[0])
        .await;
    for (job, points) in [("slurm:17", 400), ("slurm:20", 40)] {
        let series = site.series("store1", Some("wn1"), job, NOON, Viewer::Trusted).await.expect("an answer");
        assert_eq!(series.curves[0].times.len(), points, "{job}");
    }
    let later = NOON.plus(DAY);
    let series =
        site.series("store1", Some("wn1"), "slurm:18", later, Viewer::Trusted).await.expect("an answer");
    assert_eq!(series.curves[0].times.len(), 90, "a day that the host has lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn short_space_costs_the_oldest_days_of_those_that_take_most_and_they_are_not_fetched_again() {
    let site = Site::default();
    site.start("small", None);
    site.start("large", None);
    site.run_job("small", "slurm:1", NOON, 60);
    for day in 0..12 {
        site.run_job("large", "slurm:2", NOON.plus(DAY * day), 6000);
    }
    let all: u64 = site.own_days("large").iter().map(|(_, len)| len).sum();
    let budget = all / 2;
    site.start("store1", Some(config(budget, 1)));
    let newest = |days: &[(jiff::civil::Date, u64)]| days.last().copied();
    site.until("the newest day", |site| {
        newest(&site.days("store1", "large")) == newest(&site.own_days("large"))
    })
    .await;
    let retained = site.days("store1", "large");
    assert!((3..=6).contains(&retained.len()), "{retained:?}");
    assert_eq!(
        site.days("store1", "small"),
        site.own_days("small"),
        "the older day of a host that takes little"
    );
    let state = site.state("store1");
    assert!(state.used_bytes <= budget && state.days_deleted >= 6, "{state:?}");
    let copied = site.copied();
    // As after a restart.
    site.stop("store1", 1.0);
    site.start("store1", Some(config(budget, 1)));
    site.until("a round", |site| {
        site.archived("store1", "large").is_some_and(|host| host.complete.is_some())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!((site.copied(), site.days("store1", "large")), (copied, retained), "nothing is fetched again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_lies_harms_no_other_and_is_named() {
    let site = six_hosts();
    let part = |day: &str, differs: bool, data: &[u8]| {
        Value::object([
            ("day", Value::from(day)),
            ("differs", Value::Bool(differs)),
            ("data", Value::Bytes(data.to_vec())),
        ])
    };
    let copy = |days: &[(&str, i64)], parts: Vec<Value>| {
        let day = |(day, bytes): &(&str, i64)| {
            Value::object([("day", Value::from(*day)), ("bytes", Value::Int(*bytes))])
        };
        Value::object([("days", Value::array(days.iter().map(day))), ("parts", Value::array(parts))])
    };
    site.lie("wn1", copy(&[("2026-11-20", 900)], vec![part("2026-11-20", true, b"")]));
    site.lie("wn2", copy(&[], vec![part("2026-11-20", false, b"not asked for")]));
    site.lie("wn3", copy(&[("../../etc", 900)], Vec::new()));
    site.lie("wn4", Value::from("nothing"));
    site.lie("wn5", copy(&[("2026-11-20", i64::MAX)], Vec::new()));
    site.start("store1", Some(config(LARGE, 1)));
    site.until("the honest one", |site| site.days("store1", "wn6") == site.own_days("wn6")).await;
    for (host, problem) in [("wn2", "not asked for"), ("wn3", "expected a day"), ("wn4", "another form")] {
        site.until(host, |site| site.archived("store1", host).is_some_and(|host| host.problem.is_some()))
            .await;
        let found = site.archived("store1", host).and_then(|host| host.problem).unwrap_or_default();
        assert!(found.contains(problem), "{host}: {found}");
    }
    assert_eq!(site.state("store1").problem, None, "the archive itself has none");
    // Honest again.
    for host in ["wn1", "wn2"] {
        site.lie(host, Value::Nil);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_series_are_given_to_daemons_of_the_domain_alone() {
    let site = six_hosts();
    site.start("store1", Some(config(LARGE, 2)));
    site.until("all is there", |site| {
        HOSTS.iter().all(|host| site.days("store1", host) == site.own_days(host))
    })
    .await;
    for (host, measured_by) in [("wn1", None), ("store1", Some("wn1".to_owned()))] {
        let request = SeriesCopyParams { measured_by, days: Vec::new() };
        for viewer in [Viewer::Anonymous, Viewer::User(1000)] {
            let refused = site.ask(host, &request, viewer).await;
            assert!(refused.is_err_and(|fault| fault.code == fault::REFUSED), "{host} {viewer:?}");
        }
        let answer = site.ask(host, &request, Viewer::Trusted).await.expect("an answer");
        assert_eq!((answer.days.len(), answer.parts.len()), (2, 0));
    }
    let state = site.ask("store1", &state_of("wn1"), Viewer::Anonymous).await.expect("an answer");
    assert_eq!((state.hosts.len(), state.hosts[0].days.len(), state.copies), (1, 2, 2));
    assert!(state.hosts[0].complete.is_some_and(|at| at.0 > Time::default()));
}
