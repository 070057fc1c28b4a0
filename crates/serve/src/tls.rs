//! HTTPS without a proxy: the certificate and its key, which are reloaded when their files change.

use crate::files::{Stamp, stamp};
use crate::listen::Io;
use regard_core::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, SignatureScheme, StreamOwned,
};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_rustls::TlsAcceptor;

/// A certificate and its private key, in PEM files that may change while the server runs.
#[derive(Clone, Debug)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    certificate: PathBuf,
    key: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stamps: [Stamp; 2],
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Reads a certificate chain, the server's certificate first, and the private key of that
    /// certificate.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self> {
        // Taken before reading, so that a change in the meantime is noticed.
        let stamps = [certificate, key].map(stamp);
        let config = server_config(certificate, key)?;
        let state = Mutex::new(State { stamps, config });
        Ok(Tls(Arc::new(Shared { certificate: certificate.to_owned(), key: key.to_owned(), state })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the files again if one of them has changed, or unconditionally with `always`, and
    /// returns whether it did. Files that cannot be used change nothing: while two files are
    /// replaced one after the other, they do not match until the second has been replaced.
    pub(crate) fn reload(&self, always: bool) -> Result<bool> {
        let Shared { certificate, key, .. } = &*self.0;
        let now = [stamp(certificate), stamp(key)];
        {
            let mut state = self.lock();
            if !always && state.stamps == now {
                return Ok(false);
            }
            // Files that cannot be used are reported only once.
            state.stamps = now;
        }
        let config = server_config(certificate, key)?;
        self.lock().config = config;
        Ok(true)
    }

    /// Performs the TLS handshake with a client.
    pub(crate) async fn accept(&self, stream: tokio::net::TcpStream) -> io::Result<Box<dyn Io>> {
        let config = Arc::clone(&self.lock().config);
        Ok(Box::new(TlsAcceptor::from(config).accept(stream).await?))
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn unreadable(path: &Path, error: pem::Error) -> Error {
    match error {
        pem::Error::Io(error) => Error::io(path, error),
        pem::Error::NoItemsFound => Error::file(path, "there is no private key in PEM format in it"),
        error => Error::file(path, format!("this is not PEM: {error}")),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let read =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>);
    let chain = read.map_err(|error| unreadable(path, error))?;
    match chain.is_empty() {
        true => Err(Error::file(path, "there is no certificate in PEM format in it")),
        false => Ok(chain),
    }
}

fn server_config(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let chain = certificates(certificate)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error))?;
    let unusable = |error: rustls::Error| {
        Error::file(certificate, format!("it cannot be used with {}: {error}", key.display()))
    };
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A connection to the server on this machine that accepts only the certificate in this file. Names
/// and dates are not checked, because the file is the server's own.
pub(crate) fn pinned(
    stream: TcpStream,
    address: SocketAddr,
    certificate: &Path,
) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let unusable = |error: rustls::Error| Error::file(certificate, error.to_string());
    let own = certificates(certificate)?.swap_remove(0);
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { own, provider: provider() }))
        .with_no_client_auth();
    let name = ServerName::from(address.ip());
    let connection = ClientConnection::new(Arc::new(config), name).map_err(unusable)?;
    Ok(StreamOwned::new(connection, stream))
}

/// Accepts exactly one certificate.
#[derive(Debug)]
struct Pinned {
    own: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        match *shown == self.own {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(rustls::Error::General("the server presents another certificate".into())),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
