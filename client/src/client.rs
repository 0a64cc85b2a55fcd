//! Client of a daemon: typed calls over one persistent connection.
//!
//! Shell. Rules: if the daemon closed the idle connection, a request is retried once on a new connection,
//! unless a part of an answer was received; an order, which must not be executed twice, is never sent twice.
//! Not here: the parameters and answers as JSON (`typed`), one exchange (`exchange`), streams (`follow`).

use crate::connect::{Connect, Connected};
use crate::error::Error;
use crate::exchange::{BODY_LEN_MAX_BYTES, Connection, Failed, Outgoing, Received, Reply};
use crate::login::{Account, Login};
use crate::patience::Patience;
use crate::recovery::{self, Recovery, Retries};
use crate::typed::{self, About};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tunnel::digest::client::{Next, SENT_MAX};
use wire::api::Request;
use wire::backoff::Backoff;

/// First and longest pause between the attempts of [`Client::call_until`].
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(8));

/// Timeout of connecting, for all addresses together.
const CONNECT_MAX: Duration = Duration::from_secs(60);

/// Called with the address of the daemon and the remaining waiting time.
type OnWait = Arc<dyn Fn(&str, Duration) + Send + Sync>;

/// Client of a daemon, for one request at a time; [`Client::another`] makes requests in parallel.
pub struct Client {
    connect: Arc<dyn Connect>,
    connection: Option<Connection>,
    /// Account at a proxy; `None` for a daemon.
    account: Option<Account>,
    /// Prefix of every path.
    prefix: String,
    patience: Patience,
    on_wait: Option<OnWait>,
    body_max: usize,
    /// Whether the present request must not be sent twice.
    is_order: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address()).finish_non_exhaustive()
    }
}

/// HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// Body of the response.
    pub body: Vec<u8>,
}

impl Client {
    /// Create a client of the daemon that `connect` reaches; it connects with the first call.
    pub fn new(connect: impl Connect + 'static) -> Client {
        Client {
            connect: Arc::new(connect),
            connection: None,
            account: None,
            prefix: String::new(),
            patience: Patience::default(),
            on_wait: None,
            body_max: BODY_LEN_MAX_BYTES,
            is_order: false,
        }
    }

    /// Use a proxy: every request logs in by HTTP Digest, and every path gets the prefix `prefix`
    /// (`/d/DOMAIN`).
    #[must_use]
    pub fn logging_in(mut self, login: Login, prefix: impl Into<String>) -> Client {
        self.account = Some(Account::new(login));
        self.prefix = prefix.into();
        self
    }

    /// Set the function that is called when an answer takes longer than [`Patience::notice_after`].
    #[must_use]
    pub fn on_wait(mut self, on_wait: impl Fn(&str, Duration) + Send + Sync + 'static) -> Client {
        self.on_wait = Some(Arc::new(on_wait));
        self
    }

    /// Set the longest accepted answer in bytes; 64 MiB by default.
    #[must_use]
    pub fn answers_up_to(mut self, bytes: usize) -> Client {
        self.body_max = bytes;
        self
    }

    /// Set the timeouts of answers.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// A client of the same daemon with its own connection.
    #[must_use]
    pub fn another(&self) -> Client {
        Client {
            connect: Arc::clone(&self.connect),
            connection: None,
            account: self.account.as_ref().map(Account::another),
            prefix: self.prefix.clone(),
            patience: self.patience,
            on_wait: self.on_wait.clone(),
            body_max: self.body_max,
            is_order: false,
        }
    }

    /// Address of the open connection, or else the one that would be tried first.
    #[must_use]
    pub fn address(&self) -> String {
        let standing = self.connection.as_ref().map(|connection| connection.address.clone());
        standing.unwrap_or_else(|| self.connect.address())
    }

    /// Call a method.
    ///
    /// # Errors
    /// See [`Error`]. After an error the next call connects again if needed.
    pub async fn call<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        let answer = self.post_json(R::METHOD, &typed::params(request, about)).await?;
        if answer.status != 200 {
            self.read(&answer)?;
        }
        typed::answer::<R>(&answer.body).map_err(|error| self.other_form::<R>(&error))
    }

    /// Call a method. Returns the answer also as raw JSON.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn answered<R: Request>(
        &mut self,
        request: &R,
        about: &About,
    ) -> Result<typed::Answered<R::Answer>, Error> {
        let raw = self.call_raw(R::METHOD, &typed::params(request, about)).await?;
        typed::answered::<R>(raw).map_err(|error| self.other_form::<R>(&error))
    }

    /// Call a method repeatedly, with growing pauses, until it is answered or `most` is over.
    ///
    /// # Errors
    /// The last error, if the time is over or a retry cannot help.
    pub async fn call_until<R: Request>(
        &mut self,
        request: &R,
        about: &About,
        most: Duration,
    ) -> Result<R::Answer, Error> {
        let mut last = None;
        let asking = async {
            let mut retries = Retries::new(BACKOFF);
            loop {
                match self.call(request, about).await {
                    Err(error) if recovery::of(&error, true) != Recovery::End => last = Some(error),
                    answered => return answered,
                }
                tokio::time::sleep(retries.pause()).await;
            }
        };
        let answered = tokio::time::timeout(most, asking).await;
        answered.unwrap_or_else(|_| {
            Err(last.unwrap_or_else(|| Error::Late { address: self.address(), after: most }))
        })
    }

    /// Call a method that must not be executed twice: on a new connection, and without retry after it was
    /// sent.
    ///
    /// # Errors
    /// See [`Error`]. After [`Error::Lost`], [`Error::Late`] or [`Error::Answer`] the order may have been
    /// executed.
    pub async fn order<R: Request>(&mut self, request: &R, about: &About) -> Result<R::Answer, Error> {
        self.connection = None;
        self.is_order = true;
        let answer = self.call(request, about).await;
        self.is_order = false;
        answer
    }

    /// Call a method by name, with parameters and answer as JSON, for methods that this program does not
    /// know.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn call_raw(&mut self, method: &str, params: &Value) -> Result<Value, Error> {
        let answer = self.post_json(method, params).await?;
        self.read(&answer)
    }

    /// Send a body by POST. Returns the response whatever its status.
    ///
    /// # Errors
    /// As [`Client::call`], except faults.
    pub async fn post(&mut self, path: &str, content_type: &str, body: Bytes) -> Result<Answer, Error> {
        let sent = self.send(&Method::POST, path, (content_type, body)).await?;
        match sent {
            (connection, Received::Whole(Reply { status, body, .. })) => {
                self.connection = Some(connection);
                Ok(Answer { status, body })
            }
            (connection, Received::Events(..)) => {
                Err(connection.unexpected("answers without end, which were not asked for".to_owned()))
            }
        }
    }

    async fn post_json(&mut self, method: &str, params: &Value) -> Result<Answer, Error> {
        self.post(&format!("/api/v1/{method}"), "application/json", params.to_string().into()).await
    }

    /// Send a GET whose response is a stream.
    pub(crate) async fn get(&mut self, path: &str) -> Result<(Connection, Received), Error> {
        self.send(&Method::GET, path, ("", Bytes::new())).await
    }

    /// Store a connection for the next request.
    pub(crate) fn keep(&mut self, connection: Connection) {
        self.connection = Some(connection);
    }

    /// Send a request, repeatedly if a login requires it.
    async fn send(
        &mut self,
        method: &Method,
        path: &str,
        (content_type, body): (&str, Bytes),
    ) -> Result<(Connection, Received), Error> {
        let path = &format!("{}{path}", self.prefix);
        let mut outgoing = Outgoing { method, path, content_type, authorization: None, body: body.clone() };
        for sent in 0..SENT_MAX {
            let Some(account) = &mut self.account else { return self.exchange(&outgoing).await };
            outgoing.body = if account.is_challenged() { body.clone() } else { Bytes::new() };
            outgoing.authorization = account.authorization(method.as_str(), path)?;
            let (connection, started) = self.exchange(&outgoing).await?;
            let (Received::Whole(reply) | Received::Events(reply, _)) = &started;
            let Some(account) = &mut self.account else { continue };
            match account.handle(reply, sent)? {
                Next::Again => self.connection = Some(connection),
                Next::Taken => return Ok((connection, started)),
            }
        }
        let found = "challenges without end".to_owned();
        Err(Error::Answer { address: self.address(), found })
    }

    /// Send once, on the open connection or a new one.
    async fn exchange(&mut self, outgoing: &Outgoing<'_>) -> Result<(Connection, Received), Error> {
        if let Some(mut kept) = self.connection.take() {
            match self.exchange_on(&mut kept, outgoing).await {
                Err(Failed::Unsent) => {}
                // Closed while idle: no part of an answer was received, so the request may be sent again.
                Err(Failed::Closed) if !self.is_order => {}
                Err(Failed::Closed) => return Err(kept.closed_at_once()),
                Err(Failed::Error(error)) => return Err(error),
                Ok(started) => return Ok((kept, started)),
            }
        }
        let mut fresh = Connection::new(self.connected().await?, self.body_max).await?;
        match self.exchange_on(&mut fresh, outgoing).await {
            Err(Failed::Unsent | Failed::Closed) => Err(fresh.closed_at_once()),
            Err(Failed::Error(error)) => Err(error),
            Ok(started) => Ok((fresh, started)),
        }
    }

    async fn connected(&self) -> Result<Connected, Error> {
        let late = |_| Error::Late { address: self.address(), after: CONNECT_MAX };
        tokio::time::timeout(CONNECT_MAX, self.connect.connect()).await.map_err(late)?
    }

    async fn exchange_on(
        &self,
        connection: &mut Connection,
        outgoing: &Outgoing<'_>,
    ) -> Result<Received, Failed> {
        let (patience, address) = (self.patience, connection.address.clone());
        let exchanged = async { Ok(connection.exchange(outgoing, &patience).await) };
        self.noticed(&address, patience.all(&address, exchanged)).await?
    }

    /// Wait for `what`, and call the function of [`Client::on_wait`] when it takes long.
    async fn noticed<T>(&self, address: &str, what: impl Future<Output = T>) -> T {
        let (Some(after), Some(on_wait)) = (self.patience.notice_after, &self.on_wait) else {
            return what.await;
        };
        let mut what = pin!(what);
        tokio::select! {
            done = &mut what => return done,
            () = tokio::time::sleep(after) => on_wait(address, self.patience.most.saturating_sub(after)),
        }
        what.await
    }

    /// Parse the body of a response.
    pub(crate) fn read(&self, answer: &Answer) -> Result<Value, Error> {
        let Answer { status, body } = answer;
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| self.unexpected(format!("HTTP status {status} and no JSON ({error})")))?;
        if *status == 200 {
            return Ok(value);
        }
        let fault = value.get("error").map(|error| (error.get("code"), error.get("message")));
        match fault {
            Some((Some(code), Some(message))) => Err(Error::Fault {
                code: code.as_i64().unwrap_or(0),
                message: message.as_str().unwrap_or_default().to_owned(),
            }),
            _ => Err(self.unexpected(format!("HTTP status {status}"))),
        }
    }

    fn other_form<R: Request>(&self, error: &serde_json::Error) -> Error {
        self.unexpected(format!("an answer of another form to {}: {error}", R::METHOD))
    }

    fn unexpected(&self, found: String) -> Error {
        Error::Answer { address: self.address(), found }
    }
}
