//! Answers of a reading method as they come: server-sent events over the client's connection.
//!
//! Rule: one login, at the beginning; a stream that is silent for longer than comments are apart is given up.
//! Not here: coming back when it ends (the command).

use super::connection::Connection;
use super::http::{Begun, Lines, Response};
use super::{Answer, Client, Error, PATIENCE, connection, hint, lost};
use overlay::door;
use serde_json::Value;
use std::time::Duration;
use tunnel::digest;
use tunnel::digest::client::{Answered, Next, SENT_MAX};

/// Longest silence: daemons send a comment after 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// A stream of answers.
#[derive(Debug)]
pub(crate) struct Following {
    connection: Connection,
    lines: Lines,
    /// After how long to come back when it ends, as the daemon said.
    pub(crate) retry: Duration,
}

/// What came.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    /// An answer; so many before it were left out.
    Answer(Value, u64),
    /// A fault in its place.
    Fault { code: i64, message: String },
}

impl Client {
    /// Follow a method with these parameters of a query.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub(crate) fn follow(&mut self, method: &str, query: &str) -> Result<Following, Error> {
        let path = format!("{}/api/v1/{method}?{query}", self.target.via.prefix());
        let is_legacy = self.target.via.is_legacy();
        let forbidden = |error: digest::client::Error| hint::refused(&error.to_string(), is_legacy);
        for sent in 0..SENT_MAX {
            let mut connection = match self.connection.take() {
                Some(kept) => kept,
                None => self.target.connect()?,
            };
            let fields = self.login_field("GET", &path)?;
            let begun = connection.get(&path, &fields, PATIENCE);
            let begun = match begun {
                // Closed while idle: nothing of this request was answered.
                Err(connection::Error::Answer(super::http::Error::ClosedBefore)) => continue,
                begun => begun.map_err(|error| lost(&connection, &error))?,
            };
            let (response, lines) = match begun {
                Begun::Whole(response) => (response, None),
                Begun::Events(response, lines) => (response, Some(lines)),
            };
            let Response { status, body, challenges, info, .. } = response;
            if self.target.via.logs_in() {
                let login = self.login_there()?;
                let answered = Answered { status, challenges: &challenges, info: info.as_deref() };
                if login.handle(answered, sent).map_err(forbidden)? == Next::Again {
                    self.connection = connection.is_reusable().then_some(connection);
                    continue;
                }
            }
            let Some(lines) = lines else {
                self.read(&Answer { status, body })?;
                let found = "one answer where many were asked for; is it of an older version?".to_owned();
                return Err(Error::Answer { address: self.address(), found });
            };
            return Ok(Following { connection, lines, retry: Duration::from_secs(2) });
        }
        Err(Error::Answer { address: self.address(), found: "challenges without end".to_owned() })
    }

    /// Who logs in at the proxy.
    fn login_there(&mut self) -> Result<&mut digest::client::Client, Error> {
        if self.login.is_none() {
            let login = self.target.via.login().map_err(Error::Mistake)?;
            let login = login.ok_or_else(|| Error::Unreachable("a proxy asks for an account".to_owned()))?;
            self.login = Some(digest::client::Client::new(login));
        }
        self.login.as_mut().ok_or_else(|| Error::Unreachable("a proxy asks for an account".to_owned()))
    }

    fn login_field(&mut self, method: &str, path: &str) -> Result<String, Error> {
        let Some(login) = &mut self.login else { return Ok(String::new()) };
        let failed = |error| Error::Unreachable(format!("the system gives no random numbers: {error}"));
        let said = login.authorization(method, path, &door::cnonce().map_err(failed)?);
        Ok(said.map_or_else(String::new, |said| format!("Authorization: {said}\r\n")))
    }
}

impl Following {
    /// What comes next; none where the daemon ended it.
    ///
    /// # Errors
    /// If the connection is lost, or silent for too long.
    pub(crate) fn next(&mut self) -> Result<Option<Told>, Error> {
        loop {
            let line = self.connection.line(&mut self.lines, SILENCE_MAX);
            let Some(line) = line.map_err(|error| lost(&self.connection, &error))? else { return Ok(None) };
            if let Some(millis) = line.strip_prefix("retry: ").and_then(|text| text.parse().ok()) {
                self.retry = Duration::from_millis(millis);
            }
            // Each event is one line of data, and says within it what it is.
            if let Some(data) = line.strip_prefix("data: ") {
                return told(data).map(Some).ok_or_else(|| Error::Answer {
                    address: self.connection.address().to_owned(),
                    found: format!(
                        "an event that cannot be read: {}",
                        data.chars().take(80).collect::<String>()
                    ),
                });
            }
        }
    }
}

fn told(data: &str) -> Option<Told> {
    let mut data: Value = serde_json::from_str(data).ok()?;
    if let Some(error) = data.get("error") {
        let message = error.get("message")?.as_str()?.to_owned();
        return Some(Told::Fault { code: error.get("code")?.as_i64()?, message });
    }
    let skipped = data.get("skipped")?.as_u64()?;
    Some(Told::Answer(data.get_mut("answer")?.take(), skipped))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_an_answer_or_a_fault() {
        let answer = r#"{"skipped":3,"time":1.5,"answer":{"a":1}}"#;
        assert_eq!(told(answer), Some(Told::Answer(json!({"a": 1}), 3)));
        let fault = r#"{"skipped":0,"time":1.5,"error":{"code":-32011,"message":"away"}}"#;
        assert_eq!(told(fault), Some(Told::Fault { code: -32011, message: "away".to_owned() }));
        for other in ["", "{}", "[]", r#"{"answer":1}"#, r#"{"error":{}}"#] {
            assert_eq!(told(other), None, "{other}");
        }
    }
}
