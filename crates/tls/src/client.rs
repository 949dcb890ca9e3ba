//! The client's side: which servers it trusts, and the certificate that it shows them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rustls::client::WebPkiServerVerifier;
use rustls::{ClientConfig, RootCertStore};

use crate::error::TlsError;
use crate::verify::{LenientVerifier, Verification};
use crate::{HTTP1, pem, provider};

/// The files of a certificate with its chain, and of its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The trust and the identity of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientTls {
    /// A file with authorities that are trusted beside those of the system.
    pub ca: Option<PathBuf>,
    /// The certificate that the client shows to servers that ask for one.
    pub identity: Option<IdentityFiles>,
}

impl ClientTls {
    /// The configuration for HTTP over TLS. Reads the authorities of the system.
    pub fn config(&self) -> Result<ClientConfig, TlsError> {
        let mut roots = SYSTEM_ROOTS.clone();
        if let Some(ca) = &self.ca {
            pem::add_authorities(&mut roots, ca)?;
        }
        let builder = builder()?.with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(IdentityFiles { cert, key }) => builder
                .with_client_auth_cert(pem::certificates(cert)?, pem::private_key(key)?)
                .map_err(|error| TlsError::Pair {
                    cert: cert.clone(),
                    key: key.clone(),
                    reason: error.to_string(),
                })?,
        };
        config.alpn_protocols = vec![HTTP1.to_vec()];
        Ok(config)
    }

    /// The configuration of a client that trusts no server: it speaks plain HTTP only, and reads no file.
    pub fn without_trust() -> Result<ClientConfig, TlsError> {
        Ok(builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
    }

    /// The configuration for a database: `ca` is trusted instead of the authorities of the system.
    pub fn for_database(verification: Verification, ca: Option<&Path>) -> Result<ClientConfig, TlsError> {
        let roots = match ca {
            _ if verification == Verification::Nothing => None,
            Some(ca) => {
                let mut roots = RootCertStore::empty();
                pem::add_authorities(&mut roots, ca)?;
                Some(roots)
            }
            None => Some(SYSTEM_ROOTS.clone()),
        };
        let builder = builder()?;
        let Some(roots) = roots else {
            return Ok(lenient(builder, LenientVerifier::any(provider())));
        };
        if verification == Verification::Full {
            return Ok(builder.with_root_certificates(roots).with_no_client_auth());
        }
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider()).build();
        let chain = chain.map_err(|error| {
            let path = ca.map_or_else(|| PathBuf::from("the system"), Path::to_owned);
            TlsError::Untrusted { path, reason: error.to_string() }
        })?;
        Ok(lenient(builder, LenientVerifier::any_name(provider(), chain)))
    }
}

type Builder = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn builder() -> Result<Builder, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider());
    builder.with_safe_default_protocol_versions().map_err(TlsError::Setup)
}

fn lenient(builder: Builder, verifier: LenientVerifier) -> ClientConfig {
    builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
}

/// The authorities that the system trusts, read once. A system may have none, or some that are unreadable: connections
/// that need those fail and say so.
static SYSTEM_ROOTS: LazyLock<RootCertStore> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
});
