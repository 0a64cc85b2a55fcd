//! Viewers that poll, with a login for each request.

use super::{Kind, Plan, ViewerResults};
use crate::visitor::Visitor;
use std::time::{Duration, Instant};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// Bytes that a slow viewer reads per second.
const SLOWLY_BYTES: usize = 4 << 10;
/// Timeout of a healthy viewer's request.
const GIVES_UP: Duration = Duration::from_secs(20);

impl Plan {
    pub(crate) async fn ask(self, number: usize, kind: Kind, mut visitor: Visitor) -> ViewerResults {
        while self.end().is_none() {
            sleep(Duration::from_millis(50)).await;
        }
        // Spread the viewers over the interval.
        sleep(self.every.mul_f64((number % 97) as f64 / 97.0)).await;
        match kind {
            Kind::Healthy => self.ask_well(number, visitor).await,
            Kind::Slow => {
                let mut seen = ViewerResults::default();
                while !self.is_over() {
                    let answer = visitor.get(&self.path).await;
                    let secs = answer.body.len() as f64 / SLOWLY_BYTES as f64;
                    seen.failures += usize::from(answer.status != 200);
                    sleep(Duration::from_secs_f64(secs.max(0.5))).await;
                }
                seen
            }
            Kind::Stalled => {
                visitor.get(&self.path).await;
                let request = visitor.request(&self.path, "");
                // Sends requests and never reads, until the server closes the connection.
                self.until_cut(visitor, &request, self.every).await
            }
        }
    }

    async fn ask_well(&self, number: usize, mut visitor: Visitor) -> ViewerResults {
        let mut seen = ViewerResults::default();
        let mut tick = interval(self.every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut last = Instant::now();
        while !self.is_over() {
            tick.tick().await;
            let asked = Instant::now();
            match timeout(GIVES_UP, visitor.get(&self.path)).await {
                Ok(answer) if answer.status == 200 => {
                    seen.gap_max = seen.gap_max.max(last.elapsed());
                    last = Instant::now();
                    seen.times.push(asked.elapsed().as_secs_f64() * 1e3);
                }
                Ok(_) => seen.failures += 1,
                Err(_) => {
                    seen.failures += 1;
                    visitor = self.connect(number, Kind::Healthy).await;
                }
            }
        }
        seen.gap_max = seen.gap_max.max(last.elapsed());
        seen
    }
}
