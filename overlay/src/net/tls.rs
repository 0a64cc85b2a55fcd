//! TLS 1.3 between two daemons; each is identified by its ed25519 key.
//!
//! Raw public keys (RFC 7250) replace certificates: an end sends its key as it is and signs the handshake
//! with it, so there is no certificate to make, to parse or to expire. The permissions of a peer are decided
//! above, from the certificate in its hello.
//! Rules: TLS 1.3 alone, no resumption and no early data, so every connection proves both keys; AES-GCM goes
//! first where the processor has instructions for it (`has_aes`), ChaCha20-Poly1305 elsewhere.
//! Not here: whether TLS is used at all (`security`), which keys are admitted (`accept`).

use super::Error;
use super::conversion::peer_id;
use futures::io::BufReader;
use futures::{AsyncRead, AsyncWrite};
use libp2p::PeerId;
use libp2p::identity::Keypair;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use tokio_rustls::rustls::crypto::ring::{cipher_suite, default_provider, kx_group, sign};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use tokio_rustls::rustls::pki_types::{
    CertificateDer, IpAddr, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    self, CertificateError, ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName,
    PeerIncompatible, ServerConfig, SignatureScheme,
};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt as _, TokioAsyncReadCompatExt as _};
use wire::id::PeerKey;

/// Protocol name for the application-layer protocol negotiation of TLS: it binds the signatures to this
/// protocol.
const ALPN: &[u8] = b"visperf/1";

/// DER bytes before the secret half of an ed25519 key in PKCS #8 (RFC 8410, section 7).
const PKCS8_HEAD: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// DER bytes before the public half in a `SubjectPublicKeyInfo` (RFC 8410, section 4).
const SPKI_HEAD: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Bytes to read from the socket at a time: a record of the largest size; rustls alone reads 4 KiB.
const READ_LEN_BYTES: usize = 17 << 10;

/// A connection after its handshake.
pub(super) type Stream<C> = Compat<TlsStream<Compat<BufReader<C>>>>;

/// TLS configuration of both roles.
#[derive(Clone)]
pub(super) struct Config {
    client: TlsConnector,
    server: TlsAcceptor,
}

/// Whether the processor has instructions for AES-GCM, which make it faster than ChaCha20-Poly1305.
pub(super) fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("pclmulqdq")
    }
    #[cfg(target_arch = "aarch64")]
    {
        std::arch::is_aarch64_feature_detected!("aes") && std::arch::is_aarch64_feature_detected!("pmull")
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        false
    }
}

impl Config {
    /// For the daemon of this key; `has_aes` decides the order of the cipher suites.
    ///
    /// # Errors
    /// If the key cannot sign for TLS.
    pub(super) fn new(key: &Keypair, has_aes: bool) -> Result<Config, Error> {
        Config::of(key, has_aes).map_err(|error| Error::Key(error.to_string()))
    }

    fn of(key: &Keypair, has_aes: bool) -> Result<Config, rustls::Error> {
        let provider = Arc::new(provider(has_aes));
        let own = Arc::new(own_key(key)?);
        let peers = Arc::new(PeerKeys(provider.signature_verification_algorithms));
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&peers) as Arc<dyn ServerCertVerifier>)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&own))));
        client.alpn_protocols = vec![ALPN.to_vec()];
        client.resumption = Resumption::disabled();
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(peers)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own)));
        server.alpn_protocols = vec![ALPN.to_vec()];
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        // A cipher that is slow here makes the connection slow for both; a client without AES puts ChaCha20
        // first itself.
        server.ignore_client_order = !has_aes;
        Ok(Config { client: Arc::new(client).into(), server: Arc::new(server).into() })
    }

    /// Run the handshake of the listener on `socket`; returns the key of the peer, and the stream.
    ///
    /// # Errors
    /// If the peer closes, speaks another protocol or does not prove its key.
    pub(super) async fn accept<C: Socket>(&self, socket: C) -> io::Result<(PeerId, Stream<C>)> {
        let stream = self.server.accept(buffered(socket)).await?;
        let peer = peer(stream.get_ref().1)?;
        Ok((peer, TlsStream::Server(stream).compat()))
    }

    /// Run the handshake of the dialler.
    ///
    /// # Errors
    /// As [`Config::accept`].
    pub(super) async fn connect<C: Socket>(&self, socket: C) -> io::Result<(PeerId, Stream<C>)> {
        // rustls sends no server name for an IP address, and there is no name to send.
        let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::UNSPECIFIED.into()));
        let stream = self.client.connect(name, buffered(socket)).await?;
        let peer = peer(stream.get_ref().1)?;
        Ok((peer, TlsStream::Client(stream).compat()))
    }
}

/// Transport under TLS.
pub(super) trait Socket: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<C: AsyncRead + AsyncWrite + Unpin + Send + 'static> Socket for C {}

fn buffered<C: Socket>(socket: C) -> Compat<BufReader<C>> {
    BufReader::with_capacity(READ_LEN_BYTES, socket).compat()
}

fn provider(has_aes: bool) -> CryptoProvider {
    use cipher_suite::{TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256};
    let mut cipher_suites =
        vec![TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256];
    if !has_aes {
        cipher_suites.rotate_right(1);
    }
    CryptoProvider { cipher_suites, kx_groups: vec![kx_group::X25519], ..default_provider() }
}

/// The daemon's key in the form of rustls.
fn own_key(key: &Keypair) -> Result<CertifiedKey, rustls::Error> {
    let unusable = |_| rustls::Error::General("it is no ed25519 key".to_owned());
    let key = key.clone().try_into_ed25519().map_err(unusable)?;
    let secret = [&PKCS8_HEAD[..], key.secret().as_ref()].concat();
    let public = [&SPKI_HEAD[..], &key.public().to_bytes()].concat();
    let signing = sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(secret))?;
    Ok(CertifiedKey::new(vec![CertificateDer::from(public)], signing))
}

/// The key that a peer sends in place of a certificate.
fn shown_key(shown: &CertificateDer<'_>) -> Option<PeerKey> {
    let key = shown.as_ref().strip_prefix(&SPKI_HEAD)?;
    Some(PeerKey(key.try_into().ok()?))
}

/// The key that the peer proved in a finished handshake.
fn peer(state: &CommonState) -> io::Result<PeerId> {
    let shown = state.peer_certificates().and_then(<[_]>::first).and_then(shown_key);
    shown
        .and_then(peer_id)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the peer showed no key"))
}

/// Verifier that accepts every ed25519 key that signs the handshake.
#[derive(Debug)]
struct PeerKeys(WebPkiSupportedAlgorithms);

impl PeerKeys {
    fn check(shown: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        let unusable = || rustls::Error::InvalidCertificate(CertificateError::BadEncoding);
        shown_key(shown).and_then(peer_id).map(|_| ()).ok_or_else(unusable)
    }

    fn check_signature(
        &self,
        signed: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(signed, &key, signature, &self.0)
    }
}

/// Error for the callbacks of TLS 1.2, which is disabled.
fn too_old() -> Result<HandshakeSignatureValid, rustls::Error> {
    Err(rustls::Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13))
}

/// Methods that are the same in the verifier traits of both roles.
macro_rules! signatures_by_raw_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            too_old()
        }

        fn verify_tls13_signature(
            &self,
            signed: &[u8],
            shown: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            self.check_signature(signed, shown, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for PeerKeys {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        PeerKeys::check(shown).map(|()| ServerCertVerified::assertion())
    }

    signatures_by_raw_keys!();
}

impl ClientCertVerifier for PeerKeys {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        PeerKeys::check(shown).map(|()| ClientCertVerified::assertion())
    }

    signatures_by_raw_keys!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::{AsyncReadExt as _, AsyncWriteExt as _};

    fn key(number: u8) -> Keypair {
        crate::identity::key::Key::from_seed([number; 32]).for_transport()
    }

    fn config(number: u8, has_aes: bool) -> Config {
        Config::new(&key(number), has_aes).expect("an ed25519 key")
    }

    /// The results of a handshake at both ends.
    async fn shake<T>(
        client: &Config,
        server: &Config,
        of: impl Fn(PeerId, &CommonState) -> T,
    ) -> (io::Result<T>, io::Result<T>) {
        let (near, far) = tokio::io::duplex(64 << 10);
        let connecting = async {
            let (peer, mut stream) = client.connect(near.compat()).await?;
            // The server's acceptance of the client's key shows only with its first bytes.
            let mut read = [0; 4];
            stream.read_exact(&mut read).await?;
            Ok(of(peer, stream.get_ref().get_ref().1))
        };
        let accepting = async {
            let (peer, mut stream) = server.accept(far.compat()).await?;
            stream.write_all(b"well").await?;
            stream.flush().await?;
            Ok(of(peer, stream.get_ref().get_ref().1))
        };
        tokio::join!(connecting, accepting)
    }

    #[tokio::test]
    async fn each_end_knows_the_other_by_its_key() {
        let (one, other) = shake(&config(1, true), &config(2, true), |peer, _| peer).await;
        assert_eq!(one.expect("connected"), key(2).public().to_peer_id());
        assert_eq!(other.expect("accepted"), key(1).public().to_peer_id());
    }

    #[tokio::test]
    async fn aes_is_taken_where_both_have_it() {
        use rustls::CipherSuite::{TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256};
        let suite = |_, state: &CommonState| state.negotiated_cipher_suite().expect("agreed").suite();
        for (client, server, expected) in [
            (true, true, TLS13_AES_128_GCM_SHA256),
            (true, false, TLS13_CHACHA20_POLY1305_SHA256),
            (false, true, TLS13_CHACHA20_POLY1305_SHA256),
        ] {
            let (one, other) = shake(&config(1, client), &config(2, server), suite).await;
            assert_eq!((one.expect("connected"), other.expect("accepted")), (expected, expected));
        }
    }

    /// A peer that shows the key of another.
    fn impostor(number: u8, shown: u8) -> Config {
        let mut own = own_key(&key(number)).expect("an ed25519 key");
        own.cert = own_key(&key(shown)).expect("an ed25519 key").cert;
        let own = Arc::new(own);
        let Config { client, server } = config(number, true);
        let (mut client, mut server) =
            (ClientConfig::clone(client.config()), ServerConfig::clone(server.config()));
        client.client_auth_cert_resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&own)));
        server.cert_resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(own));
        Config { client: Arc::new(client).into(), server: Arc::new(server).into() }
    }

    #[tokio::test]
    async fn a_peer_that_shows_a_key_that_is_not_its_own_is_refused_in_either_role() {
        let (one, _) = shake(&config(1, true), &impostor(2, 3), |peer, _| peer).await;
        assert_eq!(one.expect_err("not its key").kind(), io::ErrorKind::InvalidData);
        let (_, other) = shake(&impostor(1, 3), &config(2, true), |peer, _| peer).await;
        assert_eq!(other.expect_err("not its key").kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn only_the_32_bytes_of_an_ed25519_key_are_a_key() {
        let shown = |bytes: &[u8]| shown_key(&CertificateDer::from(bytes.to_vec()));
        let whole = [&SPKI_HEAD[..], &[7; 32]].concat();
        assert_eq!(shown(&whole), Some(PeerKey([7; 32])));
        assert_eq!(shown(&whole[..43]), None);
        assert_eq!(shown(&[&whole[..], &[0]].concat()), None);
        assert_eq!(shown(b""), None);
        let mut of_another_kind = whole;
        of_another_kind[8] ^= 1;
        assert_eq!(shown(&of_another_kind), None);
    }
}
