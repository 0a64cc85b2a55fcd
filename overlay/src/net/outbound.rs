//! Outbound connections: directly, through the site's own HTTP proxy if that is needed, and to a monitor
//! proxy also within HTTPS.
//!
//! ```text
//! /ip4/…/tcp/443          TCP: directly for two seconds, then CONNECT ── once needed: CONNECT, then directly
//! /ip4/…/tcp/443/wss      the same, and a WebSocket within TLS  ── after a second, unless it worked before
//! /ip4/…/tcp/443/https    the same, and requests within TLS     ── after three
//! ```
//! Connections that a proxy's listener accepted enter the transport here, too (`Arrival`), so that the layers
//! above treat them like any other.
//! Rules: an inbound connection gets a place for its handshake, or is refused (`half_open`); the HTTP proxy
//! sees names and encrypted bytes; an address that needed the HTTP proxy is requested from it first the next
//! time; no byte after the response head of CONNECT is lost; of several transports the first that connects is
//! used.
//! Not here: the text of CONNECT (`tunnel::connect`), which transport is delayed (`tunnel::ladder`), the
//! layers above (`transport`).

use super::conversion::multiaddr;
use super::half_open::{Decision, HalfOpen, Refusal, Source};
use super::handshake;
use super::https_stream::dial as https_dial;
use super::https_stream::{Duplex, HttpsStream};
use crate::clock;
use futures::future::BoxFuture;
use libp2p::core::transport::{DialOpts, ListenerId, TransportError, TransportEvent};
use libp2p::multiaddr::Protocol as Part;
use libp2p::{Multiaddr, Transport, tcp};
use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tunnel::connect::{Connect, HEAD_LEN_MAX_BYTES, Next, REQUESTS_MAX};
use tunnel::digest::client::Login;
use tunnel::ladder::{Ladder, TransportKind};
use wire::address::Address;

/// Time for which an address is dialled directly before the site's proxy is used; connections within a site
/// take less.
const DIRECTLY: Duration = Duration::from_secs(2);

/// Most addresses that are remembered as needing the proxy: as many as are dialled.
const REMEMBERED_MAX: usize = 256;

/// Most connections of a proxy's listener that may wait for the overlay: as many as may be half open.
pub(super) const ARRIVALS_MAX: usize = 128;

/// Time for which sent bytes may stay unacknowledged before the kernel closes the connection (`tcp(7)`,
/// `TCP_USER_TIMEOUT`): a little less than the limit on silence.
const USER_TIMEOUT: Duration = Duration::from_secs(10);

/// The site's own HTTP proxy.
#[derive(Clone, Debug)]
pub struct HttpProxy {
    /// Its address.
    pub at: Address,
    /// Login that is sent if the proxy requires authentication.
    pub login: Option<Login>,
}

/// A connection that arrived at another listener than the overlay's own.
pub(super) struct Arrival {
    /// Byte stream on which TLS or Noise comes next.
    pub(super) stream: Box<dyn Duplex>,
    pub(super) from: SocketAddr,
    /// Its transport.
    pub(super) transport: TransportKind,
}

/// Byte stream under the encryption.
pub(super) enum Wire {
    Tcp(tcp::tokio::TcpStream),
    Https(HttpsStream),
    Arrived(Box<dyn Duplex>),
}

/// Routes to other sites, shared by all connections.
#[derive(Default)]
pub(super) struct OutboundRoutes {
    through: Option<ViaHttpProxy>,
    ladder: Mutex<Ladder>,
}

#[derive(Debug)]
struct ViaHttpProxy {
    proxy: HttpProxy,
    needed: Mutex<BTreeSet<String>>,
}

/// The lowest transport: TCP, streams within HTTPS, and connections that arrived at another listener.
pub(super) struct OutboundTransport {
    tcp: tcp::tokio::Transport,
    routes: Arc<OutboundRoutes>,
    arrivals: mpsc::Receiver<Arrival>,
    arrivals_listener: ListenerId,
    half_open: HalfOpen,
}

impl OutboundRoutes {
    pub(super) fn new(proxy: Option<HttpProxy>) -> Arc<OutboundRoutes> {
        let through = proxy.map(|proxy| ViaHttpProxy { proxy, needed: Mutex::default() });
        Arc::new(OutboundRoutes { through, ladder: Mutex::default() })
    }

    /// Open a TCP connection to `place`, `HOST:PORT`: directly, or through the site's own proxy.
    pub(super) async fn connect(&self, place: &str) -> io::Result<TcpStream> {
        let stream = match &self.through {
            Some(through) => through.dial(place).await?,
            None => TcpStream::connect(place).await?,
        };
        stream.set_nodelay(true)?;
        limit_silence(&stream);
        Ok(stream)
    }

    fn delay(&self, place: &str, transport: TransportKind) -> Duration {
        self.ladder.lock().unwrap_or_else(PoisonError::into_inner).delay(place, transport, clock::now())
    }

    /// The transport of the established connection that was dialled at `at`; it is preferred from now on.
    pub(super) fn handle_connected(&self, at: &Multiaddr) -> TransportKind {
        let Some((place, transport)) = target(at) else { return TransportKind::Direct };
        let now = clock::now();
        let mut ladder = self.ladder.lock().unwrap_or_else(PoisonError::into_inner);
        // Most peers are reached directly; those take no place in the memory.
        if transport != TransportKind::Direct || ladder.best(&place, now).is_some() {
            ladder.handle_connected(&place, transport, now);
        }
        let is_asked = transport == TransportKind::Direct
            && self.through.as_ref().is_some_and(|it| it.is_needed(&place));
        if is_asked { TransportKind::Connect } else { transport }
    }
}

impl OutboundTransport {
    pub(super) fn new(
        routes: Arc<OutboundRoutes>,
        arrivals: mpsc::Receiver<Arrival>,
        half_open: HalfOpen,
    ) -> OutboundTransport {
        let tcp = tcp::tokio::Transport::new(tcp::Config::default().nodelay(true));
        OutboundTransport { tcp, routes, arrivals, arrivals_listener: ListenerId::next(), half_open }
    }

    /// Accept a connection from this address, or refuse it; returns the future of its byte stream.
    fn accept(
        &self,
        from: &Multiaddr,
        wire: impl Future<Output = io::Result<Wire>> + Send + 'static,
    ) -> BoxFuture<'static, io::Result<Wire>> {
        let most = handshake::most(transport_of(from) != TransportKind::Direct);
        match self.half_open.enter(Source::of(from), clock::now()) {
            Some(place) => {
                self.half_open.hand_up(Decision::Handshake(place, most));
                Box::pin(wire)
            }
            None => {
                self.half_open.hand_up(Decision::Refused);
                let leave: Option<Refusal> = self.half_open.refusal();
                Box::pin(async move { Err(handshake::refuse(wire.await?, leave).await) })
            }
        }
    }
}

impl Transport for OutboundTransport {
    type Output = Wire;
    type Error = io::Error;
    type ListenerUpgrade = BoxFuture<'static, io::Result<Wire>>;
    type Dial = BoxFuture<'static, io::Result<Wire>>;

    fn listen_on(&mut self, id: ListenerId, at: Multiaddr) -> Result<(), TransportError<Self::Error>> {
        self.tcp.listen_on(id, at)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.tcp.remove_listener(id)
    }

    fn dial(&mut self, at: Multiaddr, options: DialOpts) -> Result<Self::Dial, TransportError<Self::Error>> {
        let Some((place, transport)) = target(&at) else {
            return Err(TransportError::MultiaddrNotSupported(at));
        };
        let delay = self.routes.delay(&place, transport);
        let routes = Arc::clone(&self.routes);
        if transport != TransportKind::Direct {
            return Ok(Box::pin(async move {
                tokio::time::sleep(delay).await;
                https_dial::dial(routes, place, transport).await.map(Wire::Https)
            }));
        }
        if self.routes.through.is_some() {
            return Ok(Box::pin(async move {
                tokio::time::sleep(delay).await;
                routes.connect(&place).await.map(Wire::tcp)
            }));
        }
        let dialling = self.tcp.dial(at, options)?;
        Ok(Box::pin(async move {
            tokio::time::sleep(delay).await;
            match dialling.await {
                Ok(stream) => Ok(Wire::tcp(stream.0)),
                // libp2p dials from the port that it listens at, at any local address; another program may
                // use that port at one of them.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    routes.connect(&place).await.map(Wire::tcp)
                }
                Err(error) => Err(error),
            }
        }))
    }

    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, Self::Error>> {
        if let Poll::Ready(event) = Pin::new(&mut self.tcp).poll(context) {
            let from = match &event {
                TransportEvent::Incoming { send_back_addr, .. } => send_back_addr.clone(),
                TransportEvent::NewAddress { .. }
                | TransportEvent::AddressExpired { .. }
                | TransportEvent::ListenerClosed { .. }
                | TransportEvent::ListenerError { .. } => Multiaddr::empty(),
            };
            return Poll::Ready(event.map_upgrade(|upgrade| {
                self.accept(&from, async move { upgrade.await.map(|stream| Wire::tcp(stream.0)) })
            }));
        }
        match self.arrivals.poll_recv(context) {
            Poll::Ready(Some(Arrival { stream, from, transport })) => {
                let from = on_transport(multiaddr(from), transport);
                Poll::Ready(TransportEvent::Incoming {
                    listener_id: self.arrivals_listener,
                    upgrade: self.accept(&from, std::future::ready(Ok(Wire::Arrived(stream)))),
                    local_addr: multiaddr(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))),
                    send_back_addr: from,
                })
            }
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// The same address by another transport.
pub(super) fn on_transport(at: Multiaddr, transport: TransportKind) -> Multiaddr {
    match transport {
        TransportKind::WebSocket => at.with(Part::Wss("/".into())),
        TransportKind::Polling => at.with(Part::Https),
        TransportKind::Direct | TransportKind::Punched | TransportKind::Circuit | TransportKind::Connect => {
            at
        }
    }
}

/// The transport by which a peer connected from `at`.
pub(super) fn transport_of(at: &Multiaddr) -> TransportKind {
    target(at).map_or(TransportKind::Direct, |(_, transport)| transport)
}

/// The address `at` of a proxy by every transport that leads to one, in the order of the ladder.
pub(super) fn all_transports(at: &Multiaddr) -> impl Iterator<Item = Multiaddr> {
    let plain: Multiaddr = at.iter().take(2).collect();
    TransportKind::TO_PROXY.into_iter().map(move |transport| on_transport(plain.clone(), transport))
}

/// Let the kernel detect a peer that no longer acknowledges.
pub(super) fn limit_silence(stream: &TcpStream) {
    let millis = u32::try_from(USER_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    if let Err(error) = rustix::net::sockopt::set_tcp_user_timeout(stream, millis) {
        // Pings still detect a dead peer, only later.
        tracing::debug!(%error, "cannot limit how long a peer may stay silent");
    }
}

impl Wire {
    fn tcp(stream: TcpStream) -> Wire {
        limit_silence(&stream);
        Wire::Tcp(tcp::tokio::TcpStream(stream))
    }

    fn duplex(self: Pin<&mut Self>) -> Pin<&mut dyn Duplex> {
        match self.get_mut() {
            Wire::Tcp(stream) => Pin::new(stream),
            Wire::Https(stream) => Pin::new(stream),
            Wire::Arrived(stream) => Pin::new(stream.as_mut()),
        }
    }
}

impl futures::AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.duplex().poll_read(cx, into)
    }
}

impl futures::AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.duplex().poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.duplex().poll_write_vectored(cx, parts)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.duplex().poll_flush(cx)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.duplex().poll_close(cx)
    }
}

impl ViaHttpProxy {
    fn is_needed(&self, place: &str) -> bool {
        self.needed.lock().unwrap_or_else(PoisonError::into_inner).contains(place)
    }

    async fn dial(&self, target: &str) -> io::Result<TcpStream> {
        let directly = async { tokio::time::timeout(DIRECTLY, TcpStream::connect(target)).await? };
        if self.is_needed(target) {
            return match self.ask(target).await {
                Ok(stream) => Ok(stream),
                Err(error) => directly.await.map_err(|_: io::Error| error),
            };
        }
        match directly.await {
            Ok(stream) => Ok(stream),
            Err(_) => {
                let stream = self.ask(target).await?;
                let mut needed = self.needed.lock().unwrap_or_else(PoisonError::into_inner);
                if needed.len() >= REMEMBERED_MAX {
                    needed.pop_first();
                }
                needed.insert(target.to_owned());
                Ok(stream)
            }
        }
    }

    /// Request a connection from the site's proxy by CONNECT.
    async fn ask(&self, target: &str) -> io::Result<TcpStream> {
        let mut connect = Connect::new(target.to_owned(), self.proxy.login.clone());
        for _ in 0..REQUESTS_MAX {
            let mut stream = TcpStream::connect((self.proxy.at.host(), self.proxy.at.port())).await?;
            stream.set_nodelay(true)?;
            let mut drawn = [0; 16];
            getrandom::fill(&mut drawn).map_err(io::Error::other)?;
            let request = connect.request(&data_encoding::HEXLOWER.encode(&drawn));
            stream.write_all(request.as_bytes()).await?;
            match connect.handle_head(&head(&mut stream).await?).map_err(io::Error::other)? {
                Next::Through => return Ok(stream),
                Next::Again => {}
            }
        }
        Err(io::Error::other("the HTTP proxy asks for a login again and again"))
    }
}

/// Read the head of a response, byte by byte: the bytes after it belong to the other end.
async fn head(stream: &mut TcpStream) -> io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_LEN_MAX_BYTES {
            return Err(io::Error::other("the HTTP proxy answers with a head without end"));
        }
        head.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// `HOST:PORT` and transport of an address that can be dialled.
fn target(at: &Multiaddr) -> Option<(String, TransportKind)> {
    let mut parts = at.iter();
    let first = parts.next()?;
    let host = if let Part::Ip4(ip) = first {
        ip.to_string()
    } else if let Part::Ip6(ip) = first {
        format!("[{ip}]")
    } else if let Part::Dns(name) = first {
        name.into_owned()
    } else {
        return None;
    };
    let Part::Tcp(port) = parts.next()? else { return None };
    let mut rest = parts.filter(|part| !matches!(part, Part::P2p(_)));
    let transport = match (rest.next(), rest.next()) {
        (None, _) => TransportKind::Direct,
        (Some(Part::Wss(_)), None) => TransportKind::WebSocket,
        (Some(Part::Https), None) => TransportKind::Polling,
        (Some(_), _) => return None,
    };
    Some((format!("{host}:{port}"), transport))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_asked_for_is_a_host_and_a_port() {
        let check = |text: &str, expected: Option<(&str, TransportKind)>| {
            let at: Multiaddr = text.parse().expect("an address");
            let expected = expected.map(|(place, transport)| (place.to_owned(), transport));
            assert_eq!(target(&at), expected, "{text}");
        };
        let key = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA";
        check("/ip4/10.0.0.1/tcp/443", Some(("10.0.0.1:443", TransportKind::Direct)));
        check("/ip6/2001:db8::1/tcp/443", Some(("[2001:db8::1]:443", TransportKind::Direct)));
        check(
            &format!("/dns/proxy.example/tcp/443/p2p/{key}"),
            Some(("proxy.example:443", TransportKind::Direct)),
        );
        check("/ip4/10.0.0.1/tcp/443/wss", Some(("10.0.0.1:443", TransportKind::WebSocket)));
        check(
            &format!("/dns/proxy.example/tcp/443/https/p2p/{key}"),
            Some(("proxy.example:443", TransportKind::Polling)),
        );
        check("/ip4/10.0.0.1/tcp/443/wss/https", None);
        check(&format!("/ip4/10.0.0.1/tcp/443/p2p/{key}/p2p-circuit"), None);
        check("/ip4/10.0.0.1/udp/443", None);
    }

    #[test]
    fn a_proxy_is_dialled_by_every_transport_and_each_is_known_again() {
        let at: Multiaddr = "/ip4/10.0.0.1/tcp/443".parse().expect("an address");
        let transports: Vec<TransportKind> =
            all_transports(&on_transport(at, TransportKind::Polling)).map(|at| transport_of(&at)).collect();
        assert_eq!(transports, TransportKind::TO_PROXY);
    }

    #[test]
    fn only_a_way_that_needed_more_than_tcp_is_remembered() {
        let routes = OutboundRoutes::new(None);
        let at: Multiaddr = "/ip4/10.0.0.1/tcp/443".parse().expect("an address");
        assert_eq!(routes.handle_connected(&at), TransportKind::Direct);
        let best = || routes.ladder.lock().expect("whole").best("10.0.0.1:443", clock::now());
        assert_eq!(best(), None);
        assert_eq!(
            routes.handle_connected(&on_transport(at.clone(), TransportKind::Polling)),
            TransportKind::Polling
        );
        assert_eq!(best(), Some(TransportKind::Polling));
        assert!(
            routes.delay("10.0.0.1:443", TransportKind::Polling)
                < routes.delay("10.0.0.1:443", TransportKind::Direct)
        );
        routes.handle_connected(&at);
        assert_eq!(best(), Some(TransportKind::Direct), "what is better is taken again");
    }

    #[tokio::test]
    async fn what_follows_the_head_is_left_to_the_other_end() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let at = listener.local_addr().expect("an address");
        let serving = async {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let asked = head(&mut stream).await.expect("a request");
            stream.write_all(b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\nhello").await.expect("written");
            asked
        };
        let through =
            ViaHttpProxy { proxy: HttpProxy { at: at.into(), login: None }, needed: Mutex::default() };
        let asking = async {
            let mut stream = through.ask("inside.example:7318").await.expect("through");
            let mut said = [0; 5];
            stream.read_exact(&mut said).await.expect("said");
            said
        };
        let (asked, said) = tokio::join!(serving, asking);
        assert!(asked.starts_with("CONNECT inside.example:7318 HTTP/1.1\r\n"), "{asked}");
        assert_eq!(&said, b"hello");
    }
}
