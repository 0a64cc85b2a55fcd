//! Follows a read method: a stream of its answers by server-sent events, with reconnection.
//!
//! ```text
//! GET /api/v1/METHOD?…&follow=SECONDS ──▶ answer, answer, … ── lost ──▶ pause ──▶ reconnect at the last cursor
//! ```
//! Shell. Rules: once a daemon has answered, the client reconnects after growing pauses; the cursor in an
//! answer is the position at which to resume; a stream that is silent for longer than the interval of its
//! keepalive comments is lost.

use crate::client::{Answer, Client};
use crate::error::Error;
use crate::exchange::{Connection, Received};
use crate::patience::Patience;
use crate::query;
use crate::recovery::{self, Recovery, Retries};
use bytes::{Buf as _, BytesMut};
use hyper::body::Incoming;
use serde_json::{Map, Value};
use std::ops::RangeInclusive;
use std::time::Duration;
use wire::backoff::Backoff;

/// Fault code for a cursor that a daemon does not know.
const INVALID_PARAMS: i64 = wire::fault::INVALID_PARAMS as i64;
/// Longest silence; daemons send a comment after 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// Reconnection delay, unless the daemon sends another one.
const RETRY: Duration = Duration::from_secs(2);
/// Longest reconnection delay.
const RETRY_MAX: Duration = Duration::from_secs(8);
/// Accepted range of a delay sent by the daemon instead of [`RETRY`].
const RETRY_SAID: RangeInclusive<Duration> = Duration::from_millis(250)..=Duration::from_secs(60);

/// Item of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// An answer of the method.
    Answer {
        /// The answer as JSON.
        answer: Value,
        /// Number of answers skipped before this one, because the client was slow.
        skipped: u64,
    },
    /// A fault instead of an answer; answers may follow.
    Fault {
        /// One of the codes of [`wire::fault`].
        code: i64,
        /// The daemon's message.
        message: String,
    },
    /// The connection was lost; the stream reconnects by itself.
    Lost(Error),
    /// The connection was restored.
    Again,
    /// The connection was restored, but the daemon does not know the cursor, because it has another store.
    /// The stream restarts from the original parameters.
    Restarted,
}

/// Stream of the answers of one method; dropping it ends it.
#[derive(Debug)]
pub struct Stream {
    client: Client,
    method: String,
    params: Map<String, Value>,
    /// The original parameters, if `params` now contains a cursor.
    original: Option<Map<String, Value>>,
    every_secs: String,
    events: Option<Events>,
    /// Backoff of the reconnection, while the connection is lost.
    lost: Option<Retries>,
}

impl Client {
    /// Follow a read method with these named parameters: at most one answer per `every_secs` seconds, only
    /// when it changed.
    ///
    /// # Errors
    /// As [`Client::call`]; [`Error::Mistake`] for a parameter that cannot be written in a query string.
    pub async fn follow(
        self,
        method: &str,
        params: Map<String, Value>,
        every_secs: &str,
    ) -> Result<Stream, Error> {
        let (method, every_secs) = (method.to_owned(), every_secs.to_owned());
        let mut stream =
            Stream { client: self, method, params, original: None, every_secs, events: None, lost: None };
        stream.begin().await?;
        Ok(stream)
    }
}

impl Stream {
    /// Wait for the next item.
    ///
    /// # Errors
    /// An error that a retry cannot help; the stream is then at its end.
    pub async fn next_item(&mut self) -> Result<Item, Error> {
        let Some(events) = &mut self.events else {
            return self.reconnect().await;
        };
        let item = match events.next().await {
            Ok(Some(item)) => item,
            Ok(None) => self.lose(|address| Error::Lost { address, what: "it ended the answers".to_owned() }),
            Err(error) if recovery::of(&error, true) != Recovery::End => self.lose(|_| error),
            Err(error) => return Err(error),
        };
        match &item {
            Item::Answer { answer, .. } => self.go_on_from(answer.get("cursor")),
            Item::Fault { code, message } if recovery::of_fault(*code, true) == Recovery::End => {
                return Err(Error::Fault { code: *code, message: message.clone() });
            }
            Item::Fault { .. } | Item::Lost(_) | Item::Again | Item::Restarted => {}
        }
        Ok(item)
    }

    /// Address of the daemon.
    #[must_use]
    pub fn address(&self) -> String {
        let standing = self.events.as_ref().map(|events| events.connection.address.clone());
        standing.unwrap_or_else(|| self.client.address())
    }

    fn lose(&mut self, error: impl FnOnce(String) -> Error) -> Item {
        let address = self.address();
        let retry = self.events.take().map_or(RETRY, |events| events.retry);
        let retry = retry.clamp(*RETRY_SAID.start(), *RETRY_SAID.end());
        self.lost = Some(Retries::new(Backoff::new(retry, RETRY_MAX.max(retry))));
        Item::Lost(error(address))
    }

    async fn reconnect(&mut self) -> Result<Item, Error> {
        let mut item = Item::Again;
        loop {
            let retries = self.lost.get_or_insert_with(|| Retries::new(Backoff::new(RETRY, RETRY_MAX)));
            tokio::time::sleep(retries.pause()).await;
            match self.begin().await {
                Ok(()) => return Ok(item),
                Err(error) if recovery::of(&error, true) != Recovery::End => {}
                Err(Error::Fault { code, .. }) if code == INVALID_PARAMS && self.original.is_some() => {
                    self.params = self.original.take().unwrap_or_default();
                    item = Item::Restarted;
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn begin(&mut self) -> Result<(), Error> {
        let mut params = self.params.clone();
        params.insert("follow".to_owned(), self.every_secs.as_str().into());
        let path = format!("/api/v1/{}?{}", self.method, query::encoded(&params)?);
        let (connection, started) = self.client.get(&path).await?;
        match started {
            Received::Events(_, body) => {
                self.events = Some(Events { connection, body, unread: BytesMut::new(), retry: RETRY });
                self.lost = None;
                Ok(())
            }
            Received::Whole(reply) => {
                self.client.keep(connection);
                self.client.read(&Answer { status: reply.status, body: reply.body })?;
                let found = "one answer where many were asked for; is it of an older version?".to_owned();
                Err(Error::Answer { address: self.client.address(), found })
            }
        }
    }

    fn go_on_from(&mut self, cursor: Option<&Value>) {
        if let Some(cursor @ Value::String(_)) = cursor {
            self.original.get_or_insert_with(|| self.params.clone());
            self.params.insert("cursor".to_owned(), cursor.clone());
            // The cursor is after the last received events; a span relative to the present time would now
            // mean another one.
            for name in ["last", "since"] {
                self.params.remove(name);
            }
        }
    }
}

/// Parser of the events of one connection.
#[derive(Debug)]
struct Events {
    connection: Connection,
    body: Incoming,
    unread: BytesMut,
    /// Reconnection delay sent by the daemon.
    retry: Duration,
}

impl Events {
    /// The next item; `None` when the daemon ended the stream.
    async fn next(&mut self) -> Result<Option<Item>, Error> {
        loop {
            let Some(line) = self.line().await? else { return Ok(None) };
            if let Some(millis) = line.strip_prefix("retry: ").and_then(|text| text.parse().ok()) {
                self.retry = Duration::from_millis(millis);
            }
            // Each event is one line of data, which contains its type.
            if let Some(data) = line.strip_prefix("data: ") {
                let shown = || data.chars().take(80).collect::<String>();
                let unreadable =
                    || self.connection.unexpected(format!("an event that cannot be read: {}", shown()));
                return item(data).map(Some).ok_or_else(unreadable);
            }
        }
    }

    /// The next line without its newline; `None` at the end of the stream.
    async fn line(&mut self) -> Result<Option<String>, Error> {
        let mut looked_at = 0;
        loop {
            if let Some(end) = self.unread[looked_at..].iter().position(|byte| *byte == b'\n') {
                let line = self.unread.split_to(looked_at + end);
                self.unread.advance(1);
                return Ok(Some(String::from_utf8_lossy(&line).trim_end_matches('\r').to_owned()));
            }
            looked_at = self.unread.len();
            if looked_at > self.connection.body_max {
                return Err(self.connection.too_large());
            }
            let patience = Patience::of(SILENCE_MAX);
            match self.connection.part(&mut self.body, &patience).await? {
                Some(part) => self.unread.extend_from_slice(&part),
                None => return Ok(None),
            }
        }
    }
}

fn item(data: &str) -> Option<Item> {
    let mut data: Value = serde_json::from_str(data).ok()?;
    if let Some(error) = data.get("error") {
        let message = error.get("message")?.as_str()?.to_owned();
        return Some(Item::Fault { code: error.get("code")?.as_i64()?, message });
    }
    let skipped = data.get("skipped")?.as_u64()?;
    Some(Item::Answer { answer: data.get_mut("answer")?.take(), skipped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_an_answer_or_a_fault() {
        let answer = r#"{"skipped":3,"time":1.5,"answer":{"a":1}}"#;
        assert_eq!(item(answer), Some(Item::Answer { answer: json!({"a": 1}), skipped: 3 }));
        let fault = r#"{"skipped":0,"time":1.5,"error":{"code":-32011,"message":"away"}}"#;
        assert_eq!(item(fault), Some(Item::Fault { code: -32011, message: "away".to_owned() }));
        for other in ["", "{}", "[]", r#"{"answer":1}"#, r#"{"error":{}}"#] {
            assert_eq!(item(other), None, "{other}");
        }
    }
}
