//! Viewers that follow: one login, then a stream of answers.

use super::{Kind, Plan, ViewerResults};
use crate::visitor::Visitor;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::{sleep, timeout};

/// Bytes that a slow viewer reads per second: less than half of what is sent.
const SLOWLY_BYTES: usize = 512;
/// Timeout of a read, after which the end of the run is checked.
const LOOKS: Duration = Duration::from_secs(1);
/// Shortest reconnection delay of a stream; the longest is five times that.
const COMES_BACK: Duration = Duration::from_secs(1);

/// Parser of the events of one stream.
#[derive(Default)]
struct Events(Vec<u8>);

struct Event {
    is_fault: bool,
    skipped: u64,
    /// When the answer was ready, in seconds since 1970.
    time: f64,
}

impl Events {
    fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.0.extend_from_slice(bytes);
        let mut events = Vec::new();
        while let Some(end) = self.0.windows(2).position(|two| two == b"\n\n") {
            let block: Vec<u8> = self.0.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&block);
            let figure = |name: &str| {
                let rest = &text[text.find(name)? + name.len()..];
                rest[..rest.find([',', '}'])?].parse::<f64>().ok()
            };
            if let (Some(skipped), Some(time)) = (figure("\"skipped\":"), figure("\"time\":")) {
                events.push(Event { is_fault: text.contains("event: fault"), skipped: skipped as u64, time });
            }
        }
        events
    }
}

impl Plan {
    pub(crate) async fn follow(self, number: usize, kind: Kind, visitor: Visitor) -> ViewerResults {
        let path = format!("{}?follow={}", self.path, self.every.as_secs_f64());
        let (mut visitor, mut events, mut seen) =
            (Some(visitor), Events::default(), ViewerResults::default());
        let mut last = Instant::now();
        let mut was_open = false;
        while !self.is_over() {
            let is_open = self.end().is_some();
            if is_open && !was_open {
                (was_open, last) = (true, Instant::now());
            }
            let Some(stream) = &mut visitor else {
                visitor = self.begin_again(number, kind, &path, &mut seen).await;
                continue;
            };
            if kind == Kind::Stalled && is_open {
                let cut = self.until_cut(visitor.take().unwrap(), b"\r\n", LOOKS).await;
                return ViewerResults { cut_after: cut.cut_after, ..seen };
            }
            let most = if kind == Kind::Slow && is_open { SLOWLY_BYTES } else { 64 << 10 };
            if most == SLOWLY_BYTES {
                sleep(Duration::from_secs(1)).await;
            }
            let Ok(bytes) = timeout(LOOKS, stream.some(most)).await else { continue };
            if bytes.is_empty() {
                (visitor, events) = (None, Events::default());
                seen.ended += 1;
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
            for event in events.take(&bytes).into_iter().filter(|_| is_open) {
                seen.skipped += event.skipped;
                if event.is_fault {
                    seen.failures += 1;
                } else if kind == Kind::Healthy {
                    seen.gap_max = seen.gap_max.max(last.elapsed());
                    last = Instant::now();
                    seen.times.push((now - event.time) * 1e3);
                }
            }
        }
        seen.gap_max = seen.gap_max.max(last.elapsed());
        seen
    }

    /// Log in and start to follow.
    pub(crate) async fn begin(&self, visitor: &mut Visitor) -> bool {
        let path = format!("{}?follow={}", self.path, self.every.as_secs_f64());
        visitor.get(&path).await.status == 200
    }

    async fn begin_again(
        &self,
        number: usize,
        kind: Kind,
        path: &str,
        seen: &mut ViewerResults,
    ) -> Option<Visitor> {
        sleep(COMES_BACK.mul_f64(1.0 + (number % 41) as f64 / 10.0)).await;
        let mut visitor = self.connect(number, kind).await;
        let is_in = visitor.get(path).await.status == 200;
        seen.failures += usize::from(!is_in);
        is_in.then_some(visitor)
    }
}
