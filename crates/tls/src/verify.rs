//! How much of a database's certificate is checked, in the words of PostgreSQL's `sslmode`.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// The checks of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verification {
    /// None: the connection is encrypted, and may lead to any server (`require`).
    Nothing,
    /// An authority signed it, for whichever name (`verify-ca`).
    Chain,
    /// An authority signed it for this name (`verify-full`).
    Full,
}

/// Checks less than a whole certificate. The signature of the handshake is always checked.
#[derive(Debug)]
pub(crate) struct LenientVerifier {
    provider: Arc<CryptoProvider>,
    /// Checks the chain; `None` = no check.
    chain: Option<Arc<WebPkiServerVerifier>>,
}

impl LenientVerifier {
    pub(crate) fn any(provider: Arc<CryptoProvider>) -> Self {
        LenientVerifier { provider, chain: None }
    }

    pub(crate) fn any_name(provider: Arc<CryptoProvider>, chain: Arc<WebPkiServerVerifier>) -> Self {
        LenientVerifier { provider, chain: Some(chain) }
    }
}

impl ServerCertVerifier for LenientVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last, after the chain.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            checked => checked,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
