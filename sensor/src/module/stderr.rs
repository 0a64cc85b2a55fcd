//! Tail of a module's standard error: its last lines, stored for queries.
//!
//! Rule: the number and length of lines are bounded, and so are the bytes read per second: a module that
//! writes more blocks on its own pipe, and delays nothing else.

use crate::sample::ticker::locked;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::MissedTickBehavior;
use wire::harmless::replaced;

/// Most lines that are stored.
pub(super) const LINES_MAX: usize = 20;
/// Longest line that is stored, in bytes; longer ones are cut.
const LINE_LEN_MAX_BYTES: usize = 400;
/// Most bytes read per second.
const READ_MAX_BYTES: usize = 64 << 10;

/// The last lines; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// The lines, the oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        locked(&self.0).iter().cloned().collect()
    }

    /// Adds a line, cut to the longest length with control characters replaced by spaces.
    pub fn push(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(&line[..line.len().min(LINE_LEN_MAX_BYTES)]);
        let line = replaced(line.trim_end(), ' ');
        let mut lines = locked(&self.0);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Reads lines until the end of the stream.
    pub(super) async fn read(self, from: impl AsyncRead + Unpin) {
        self.read_at(from, Duration::from_secs(1)).await;
    }

    /// Reads at most [`READ_MAX_BYTES`] in each `period`.
    async fn read_at(self, mut from: impl AsyncRead + Unpin, period: Duration) {
        let mut buffer = [0; 4096];
        let mut line = Vec::new();
        let mut next = tokio::time::interval(period);
        // Unused seconds are not a credit for a burst later.
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut left = READ_MAX_BYTES;
        loop {
            if left == 0 {
                next.tick().await;
                left = READ_MAX_BYTES;
            }
            let part = buffer.len().min(left);
            // An error ends the stream: there is nowhere to report it.
            let Ok(len @ 1..) = from.read(&mut buffer[..part]).await else { break };
            left -= len;
            for byte in &buffer[..len] {
                match byte {
                    b'\n' => {
                        self.push(&line);
                        line.clear();
                    }
                    _ if line.len() < LINE_LEN_MAX_BYTES => line.push(*byte),
                    _ => {}
                }
            }
        }
        if !line.is_empty() {
            self.push(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_lines_are_kept_and_long_ones_cut() {
        let (tail, mut text) = (Tail::default(), String::new());
        for line in 0..100 {
            text += &format!("line {line}\n");
        }
        text += &format!("\u{1b}[2J\u{202e}\u{2028}{}\nend", "x".repeat(10_000));
        tail.clone().read(text.as_bytes()).await;
        let lines = tail.lines();
        assert_eq!((lines.len(), lines[0].as_str(), lines[19].as_str()), (LINES_MAX, "line 82", "end"));
        assert_eq!(lines[18], format!(" [2J  {}", "x".repeat(LINE_LEN_MAX_BYTES - 10)));
    }

    #[tokio::test]
    async fn a_flood_is_read_at_a_pace() {
        let (started, period) = (tokio::time::Instant::now(), Duration::from_millis(20));
        let text = "x\n".repeat(5 * READ_MAX_BYTES / 2);
        Tail::default().read_at(text.as_bytes(), period).await;
        assert!(started.elapsed() >= 4 * period, "{:?}", started.elapsed());
    }
}
