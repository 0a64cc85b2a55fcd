//! Feed of a handler, without the handler: waiting entries are not lost, and reading continues.

use crate::report::rig::Member;
use sensor::channel::hub::{Error, Hub};
use sensor::journal;
use sensor::module::feed::{Feed, Sources};
use sensor::module::protocol::Flow;
use sensor::process::source::View;
use sensor::process::table::Coverage;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::mpsc::sync_channel;
use std::task::Poll;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;
use wire::channel::{ChannelRequest, Rate};
use wire::process::{Process, ProcessKey};

fn sources(member: &Member) -> Sources {
    Sources {
        hub: Hub::default(),
        reader: member.journal.reader(),
        sweeps: watch::Sender::new(None).subscribe(),
    }
}

fn processes() -> Flow {
    Flow {
        processes: Some(ChannelRequest { rate: Rate::try_from(10.0).unwrap(), ..ChannelRequest::default() }),
        ..Flow::default()
    }
}

fn sweep(hub: &Hub, view: &mut View, numbers: std::ops::RangeInclusive<u32>) {
    let mut tap = hub.tap();
    for number in numbers {
        let now = Duration::from_millis(1000) + Duration::from_millis(100) * number;
        view.table.begin(number.into(), u64::try_from(now.as_nanos()).unwrap(), Coverage::All);
        let key = ProcessKey { pid: 7, start_ns: 1 };
        view.table.set(Process { key, name: "worker".into(), ..Process::default() });
        view.table.end(0);
        tap.swept(view, now);
    }
}

/// Returns all entries that can be sent now, by type.
async fn sendable(feed: &mut Feed) -> Vec<String> {
    let mut kinds = Vec::new();
    while timeout(Duration::from_millis(200), feed.ready()).await.is_ok() {
        let (line, count) = feed.call();
        feed.mark_delivered(count);
        let call: serde_json::Value = serde_json::from_str(&line).unwrap();
        let entries = call["handle"]["entries"].as_array().unwrap();
        kinds.extend(entries.iter().map(|entry| entry["what"].as_str().unwrap().to_owned()));
    }
    kinds
}

#[tokio::test]
async fn what_waits_in_a_subscription_that_is_stopped_is_sent() {
    let member = Member::new(0, journal::Config::default());
    let (sources, mut view) = (sources(&member), View::default());
    let mut feed = Feed::new(&sources, processes()).unwrap();
    sweep(&sources.hub, &mut view, 1..=100);
    let id = sources.hub.statuses()[0].0;
    let endless = |wanted: ChannelRequest| {
        Ok::<_, Error>(ChannelRequest { script: Some("loop {}".to_owned()), ..wanted })
    };
    sources.hub.alter(id, endless).unwrap();
    sweep(&sources.hub, &mut view, 101..=101);
    let kinds = sendable(&mut feed).await;
    assert_eq!(kinds.iter().filter(|what| *what == "sample").count(), 100, "{kinds:?}");
    assert_eq!(kinds.last().map(String::as_str), Some("quarantined"));
    assert!(feed.trouble().is_some_and(|why| why.contains("end the loop")) && sources.hub.is_empty());
}

#[tokio::test]
async fn a_subscription_that_ended_is_had_again_with_the_same_wish_and_with_another() {
    let member = Member::new(0, journal::Config::default());
    let sources = sources(&member);
    let mut feed = Feed::new(&sources, processes()).unwrap();
    let slower = ChannelRequest { rate: Rate::try_from(1.0).unwrap(), ..ChannelRequest::default() };
    let other = Flow { processes: Some(slower), ..Flow::default() };
    for flow in [processes(), other] {
        sources.hub.drop_idle(Duration::MAX);
        assert!(sources.hub.is_empty());
        feed.alter(flow.clone()).unwrap();
        assert_eq!(Some(&sources.hub.statuses()[0].1.wanted), flow.processes.as_ref());
        assert_eq!(sendable(&mut feed).await, ["missed"]);
    }
    feed.alter(Flow { events: Some(Vec::new()), ..Flow::default() }).unwrap();
    assert!(sources.hub.is_empty(), "what is wanted no more ends");
}

#[test]
fn a_reading_goes_on_where_something_else_always_comes_first() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build();
    runtime.unwrap().block_on(async {
        let mut member = Member::new(0, journal::Config::default());
        let flow = Flow { events: Some(Vec::new()), ..Flow::default() };
        let mut feed = Feed::new(&sources(&member), flow).unwrap();
        member.read(5);
        look(&mut feed).await;
        // The started read is done now, and the only blocking thread gets no other task.
        tokio::task::spawn_blocking(|| {}).await.unwrap();
        let (release, held) = sync_channel::<()>(0);
        let busy = tokio::task::spawn_blocking(move || held.recv());
        assert!(look(&mut feed).await, "what was started before is taken");
        assert_eq!(feed.waiting(), 5);
        drop(release);
        assert!(busy.await.unwrap().is_err());
    });
}

/// Polls once whether something is to be sent, and drops the future.
async fn look(feed: &mut Feed) -> bool {
    poll_fn(|context| Poll::Ready(pin!(feed.ready()).poll(context).is_ready())).await
}
