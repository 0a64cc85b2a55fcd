//! Dialler of streams within HTTPS: opens one at a proxy's listener, and makes a new path when one ends.
//!
//! Rules: TLS is used here only because middleboxes let it through; the other end is authenticated by TLS or
//! Noise within, whose key is known before dialling. Therefore the certificate is not verified: a site that
//! intercepts HTTPS with a certificate of its own can be passed, and sees encrypted bytes. A stream ends if
//! the proxy no longer knows it.
//! Not here: which transport is tried when (`outbound`), the transports (`web_socket`, `polling`).

use super::polling::Asker;
use super::{HttpsStream, Shared, polling, web_socket};
use crate::net::outbound::OutboundRoutes;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{ClientConfig, DigitallySignedStruct, Error as TlsError, SignatureScheme};
use tokio_tungstenite::WebSocketStream;
use tunnel::carrier::frame::{Opened, Opening, Refused, Token};
use tunnel::ladder::TransportKind;
use wire::backoff::Backoff;

/// Timeout of one attempt at a new path.
const PATH_TIMEOUT: Duration = Duration::from_secs(8);

/// The pauses between attempts: the carrier waits for a path for 20 s.
const PAUSES: Backoff = Backoff::new(Duration::from_millis(250), Duration::from_secs(2));

/// An open path.
enum Path {
    WebSocket(Box<WebSocketStream<TlsStream<TcpStream>>>),
    /// The connections for sending and for receiving.
    Polling(Box<[Asker<TlsStream<TcpStream>>; 2]>),
}

/// Destination and transport of the stream.
struct Dialler {
    routes: Arc<OutboundRoutes>,
    place: String,
    transport: TransportKind,
}

/// Open a stream to the proxy that listens at `place`, `HOST:PORT`, by WebSocket or by polling.
pub(in crate::net) async fn dial(
    routes: Arc<OutboundRoutes>,
    place: String,
    transport: TransportKind,
) -> io::Result<HttpsStream> {
    let dialler = Dialler { routes, place, transport };
    let shared = Shared::open();
    let (path, opened) = dialler.open(Opening { token: None, received: 0 }).await?;
    let (token, received) = match opened {
        Opened::Here { token, received } => (token, received),
        Opened::Refused(refused) => return Err(io::Error::other(refused)),
    };
    let epoch = shared.attach(received).map_err(io::Error::other)?;
    let kept_up = Arc::clone(&shared);
    let keeping = async move {
        dialler.carry(path, token, &kept_up, epoch).await;
        dialler.keep_up(token, &kept_up).await;
    };
    Ok(HttpsStream::new(shared, Some(Box::pin(keeping)), Box::new(())))
}

impl Dialler {
    /// Make new paths until the stream has ended.
    async fn keep_up(&self, token: Token, shared: &Shared) {
        let mut failures = 0;
        while shared.end().is_none() {
            let opening = Opening { token: Some(token), received: shared.received() };
            let opened = tokio::time::timeout(PATH_TIMEOUT, self.open(opening)).await;
            match opened {
                Ok(Ok((path, Opened::Here { received, .. }))) => {
                    let Ok(epoch) = shared.attach(received) else { return shared.give_up() };
                    tracing::debug!(
                        place = self.place,
                        transport = self.transport.name(),
                        "another path carries a stream on"
                    );
                    self.carry(path, token, shared, epoch).await;
                    failures = 0;
                }
                Ok(Ok((_, Opened::Refused(Refused::Unknown)))) => return shared.give_up(),
                Ok(Ok((_, Opened::Refused(_))) | Err(_)) | Err(_) => {}
            }
            tokio::time::sleep(PAUSES.pause(failures)).await;
            failures = failures.saturating_add(1);
        }
    }

    async fn open(&self, opening: Opening) -> io::Result<(Path, Opened)> {
        match self.transport {
            TransportKind::Polling => {
                let mut up = Asker::new(self.connect().await?, &self.place).await?;
                let opened = up.open(opening).await?;
                let down = Asker::new(self.connect().await?, &self.place).await?;
                Ok((Path::Polling(Box::new([up, down])), opened))
            }
            TransportKind::Direct
            | TransportKind::Punched
            | TransportKind::Circuit
            | TransportKind::Connect
            | TransportKind::WebSocket => {
                let (socket, opened) = web_socket::dial(self.connect().await?, &self.place, opening).await?;
                Ok((Path::WebSocket(Box::new(socket)), opened))
            }
        }
    }

    /// Connect to the proxy by TCP and TLS.
    async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = self.routes.connect(&self.place).await?;
        let host = self.place.rsplit_once(':').map_or(self.place.as_str(), |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(Arc::new(encryption()?)).connect(name, stream).await
    }

    async fn carry(&self, path: Path, token: Token, shared: &Shared, epoch: super::Epoch) {
        let carried = match path {
            Path::WebSocket(socket) => web_socket::carry(*socket, shared, epoch).await,
            Path::Polling(askers) => polling::carry(*askers, token, shared, epoch).await,
        };
        if let Err(error) = carried {
            tracing::debug!(place = self.place, transport = self.transport.name(), %error, "a path ended");
        }
    }
}

fn encryption() -> io::Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_safe_default_protocol_versions().map_err(io::Error::other)?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    // HTTP/1.1 alone, the version of both transports.
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Verifier that accepts every certificate. See the rules above.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, TlsError> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
