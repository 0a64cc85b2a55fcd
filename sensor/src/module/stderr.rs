//! What a module says beside its answers: the last lines, kept for whoever asks.
//!
//! Rule: lines and their number are bounded, and a module that says more than is read in a second waits for the next one; what
//! waits in its pipe then holds up no one but itself.

use crate::sample::beat::locked;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::MissedTickBehavior;
use wire::harmless::replaced;

/// Lines that are kept.
pub(super) const LINES_MAX: usize = 20;
/// Longest line that is kept, in bytes; the rest of it is not.
const LINE_LEN_MAX_BYTES: usize = 400;
/// Bytes read in a second.
const READ_MAX_BYTES: usize = 64 << 10;

/// The last lines; to be cloned freely.
#[derive(Clone, Debug, Default)]
pub struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Them, the oldest first.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        locked(&self.0).iter().cloned().collect()
    }

    /// One more.
    pub fn push(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(&line[..line.len().min(LINE_LEN_MAX_BYTES)]);
        let line = replaced(line.trim_end(), ' ');
        let mut lines = locked(&self.0);
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Read them until there are no more.
    pub(super) async fn read(self, from: impl AsyncRead + Unpin) {
        self.read_at(from, Duration::from_secs(1)).await;
    }

    /// As many bytes in each `period` as otherwise in a second.
    async fn read_at(self, mut from: impl AsyncRead + Unpin, period: Duration) {
        let mut buffer = [0; 4096];
        let mut line = Vec::new();
        let mut next = tokio::time::interval(period);
        // Seconds in which it said little are no credit for a flood later.
        next.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut left = READ_MAX_BYTES;
        loop {
            if left == 0 {
                next.tick().await;
                left = READ_MAX_BYTES;
            }
            let part = buffer.len().min(left);
            // An error is an end: there is no one to tell it to.
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
        let (begun, period) = (tokio::time::Instant::now(), Duration::from_millis(20));
        let text = "x\n".repeat(5 * READ_MAX_BYTES / 2);
        Tail::default().read_at(text.as_bytes(), period).await;
        assert!(begun.elapsed() >= 4 * period, "{:?}", begun.elapsed());
    }
}
