//! TLS certificate of the proxy's listener: configured, or generated and stored here; reloaded while the
//! proxy runs.
//!
//! Rules: a certificate and a key that do not match are refused, and the ones in use stay; a key that other
//! users may read is refused. A generated certificate is self-signed, so clients receive the file or check
//! the printed fingerprint.
//! Not here: HTTP and authentication.

use daemon::{state_file, state_folder};
use data_encoding::HEXUPPER;
use overlay::identity::safe_file;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::{self, ServerConfig, crypto, sign};

/// File of the generated certificate, in the proxy's folder.
pub const CERTIFICATE_FILE: &str = "certificate.pem";

/// File of the key of the generated certificate.
pub const KEY_FILE: &str = "key.pem";

/// Why there is no usable certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A configured file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// Path of the certificate or the key.
        path: PathBuf,
        error: io::Error,
    },
    /// The file is not the expected PEM.
    #[error("{}: expected {expected} in PEM, found none that can be read: {error}", path.display())]
    Pem {
        path: PathBuf,
        /// Expected content of the file.
        expected: &'static str,
        error: pem::Error,
    },
    /// Other users may read the key.
    #[error("{}: expected a key that others may not read, found mode {mode:04o}; type `chmod o-rwx {}`", path.display(), path.display())]
    Mode {
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// Certificate and key do not match, or their kind is not supported.
    #[error("{} and its key cannot be used: {error}", path.display())]
    Use {
        /// Path of the certificate.
        path: PathBuf,
        error: rustls::Error,
    },
    /// One of the names is not valid in a certificate.
    #[error("a certificate for {names:?} cannot be made: {error}; give names of hosts or addresses")]
    Make {
        /// Requested names.
        names: Vec<String>,
        error: rcgen::Error,
    },
    /// A file of the generated certificate cannot be read or written.
    #[error(transparent)]
    Keep(#[from] safe_file::Error),
}

/// Source of the certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Two configured files.
    Given {
        /// Certificate chain, the own certificate first.
        certificate: PathBuf,
        key: PathBuf,
    },
    /// Generated here if it does not exist.
    Own {
        folder: PathBuf,
        /// Names and addresses by which clients reach the proxy.
        names: Vec<String>,
    },
}

impl Origin {
    /// Path of the certificate.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        match self {
            Origin::Given { certificate, .. } => certificate.clone(),
            Origin::Own { folder, .. } => folder.join(CERTIFICATE_FILE),
        }
    }

    /// Path of the key.
    #[must_use]
    pub fn key(&self) -> PathBuf {
        match self {
            Origin::Given { key, .. } => key.clone(),
            Origin::Own { folder, .. } => folder.join(KEY_FILE),
        }
    }

    /// A configured file may be a symbolic link: programs that renew certificates use links.
    fn file(&self, path: &Path) -> Result<File, Error> {
        let opened = match self {
            Origin::Given { .. } => File::open(path),
            Origin::Own { .. } => state_file::open_to_read(path),
        };
        opened.map_err(read_error(path))
    }

    fn bytes_of(&self, path: &Path) -> Result<Vec<u8>, Error> {
        content(self.file(path)?, path)
    }

    fn read(&self) -> Result<sign::CertifiedKey, Error> {
        let (path, key_path) = (self.certificate(), self.key());
        let chain = self.bytes_of(&path)?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
        let chain = match chain {
            Ok(chain) if !chain.is_empty() => chain,
            Ok(_) => {
                let error = pem::Error::NoItemsFound;
                return Err(Error::Pem { path, expected: "a certificate", error });
            }
            Err(error) => return Err(Error::Pem { path, expected: "a certificate", error }),
        };
        let key_file = self.file(&key_path)?;
        let mode = key_file.metadata().map_err(read_error(&key_path))?.permissions().mode() & 0o7777;
        if mode & 0o007 != 0 {
            return Err(Error::Mode { path: key_path, mode });
        }
        let key = PrivateKeyDer::from_pem_slice(&content(key_file, &key_path)?);
        let key = key.map_err(|error| Error::Pem { path: key_path, expected: "a private key", error })?;
        sign::CertifiedKey::from_der(chain, key, &crypto::ring::default_provider())
            .map_err(|error| Error::Use { path, error })
    }
}

fn content(mut file: File, path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(read_error(path))?;
    Ok(bytes)
}

fn read_error(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |error| Error::Read { path, error }
}

/// The certificate in use.
pub struct Certificate {
    origin: Origin,
    current: RwLock<Arc<sign::CertifiedKey>>,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate({})", self.fingerprint())
    }
}

impl Certificate {
    /// Load the certificate, generating it first if needed.
    ///
    /// # Errors
    /// If the certificate cannot be used.
    pub fn open(origin: Origin) -> Result<Arc<Certificate>, Error> {
        if let Origin::Own { folder, names } = &origin
            && !(origin.certificate().exists() && origin.key().exists())
        {
            make(folder, names)?;
        }
        let current = RwLock::new(Arc::new(origin.read()?));
        Ok(Arc::new(Certificate { origin, current }))
    }

    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Reload the files. Returns whether they contain another certificate, which is then used from now on.
    ///
    /// # Errors
    /// If the files cannot be used; the certificate in use stays.
    pub fn reread(&self) -> Result<bool, Error> {
        let fresh = self.origin.read()?;
        let is_other = fresh.cert != self.current().cert;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        Ok(is_other)
    }

    /// SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` prints it.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let current = self.current();
        let hash = Sha256::digest(current.cert.first().map_or(&[][..], |first| first.as_ref()));
        let pairs: Vec<String> = hash.iter().map(|byte| HEXUPPER.encode(&[*byte])).collect();
        pairs.join(":")
    }

    /// TLS acceptor with this certificate: TLS 1.2 and 1.3, HTTP/1.1 by ALPN.
    ///
    /// # Panics
    /// Never: the TLS library supports these versions.
    #[must_use]
    pub fn acceptor(self: &Arc<Certificate>) -> TlsAcceptor {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("ring speaks the usual versions").with_no_client_auth();
        let mut config = builder.with_cert_resolver(Arc::new(Resolver(Arc::clone(self))));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    fn current(&self) -> Arc<sign::CertifiedKey> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Resolver(Arc<Certificate>);

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<sign::CertifiedKey>> {
        Some(self.0.current())
    }
}

fn make(folder: &Path, names: &[String]) -> Result<(), Error> {
    let made = generate_simple_self_signed(names.to_vec());
    let CertifiedKey { cert, signing_key } =
        made.map_err(|error| Error::Make { names: names.to_vec(), error })?;
    state_folder::prepare_below(folder).map_err(safe_file::Error::from)?;
    safe_file::replace(&folder.join(KEY_FILE), signing_key.serialize_pem().as_bytes())?;
    Ok(safe_file::replace(&folder.join(CERTIFICATE_FILE), cert.pem().as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn own(folder: &Path, name: &str) -> Origin {
        Origin::Own { folder: folder.to_owned(), names: vec![name.to_owned(), "127.0.0.1".to_owned()] }
    }

    #[test]
    fn one_made_here_stays_and_is_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("proxy");
        let first = Certificate::open(own(&place, "proxy.example")).expect("made").fingerprint();
        assert_eq!((first.len(), first.matches(':').count()), (95, 31));
        let again = Certificate::open(own(&place, "another.example")).expect("read");
        assert_eq!(again.fingerprint(), first);
        let mode = fs::metadata(again.origin().key()).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn another_is_taken_up_and_one_that_does_not_fit_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        Certificate::open(own(&one, "proxy.example")).expect("made");
        let other = Certificate::open(own(&two, "proxy.example")).expect("made");
        let given = Origin::Given { certificate: one.join(CERTIFICATE_FILE), key: one.join(KEY_FILE) };
        let certificate = Certificate::open(given).expect("read");
        assert!(!certificate.reread().expect("the same"));
        let before = certificate.fingerprint();
        fs::copy(two.join(CERTIFICATE_FILE), one.join(CERTIFICATE_FILE)).expect("copied");
        assert!(matches!(certificate.reread(), Err(Error::Use { .. })), "the key is another's");
        assert_eq!(certificate.fingerprint(), before);
        fs::copy(two.join(KEY_FILE), one.join(KEY_FILE)).expect("copied");
        assert!(certificate.reread().expect("another"));
        assert_eq!(certificate.fingerprint(), other.fingerprint());
        fs::set_permissions(one.join(KEY_FILE), fs::Permissions::from_mode(0o644)).expect("changed");
        assert!(matches!(certificate.reread(), Err(Error::Mode { mode: 0o644, .. })));
        fs::write(one.join(CERTIFICATE_FILE), "nothing").expect("written");
        assert!(matches!(certificate.reread(), Err(Error::Pem { .. })));
    }

    #[test]
    fn names_are_checked_before_anything_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("proxy");
        assert!(matches!(Certificate::open(own(&place, "ü.example")), Err(Error::Make { .. })));
        assert!(!place.exists());
    }
}
