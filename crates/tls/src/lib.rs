//! TLS for every connection of Windlass: the listener, workers, PostgreSQL, Redis, and clients of the server.
//!
//! The crate reads certificates and keys from PEM files and makes configurations of rustls. It opens no connections. All
//! configurations use one crypto provider, `ring`.

mod client;
mod error;
mod pem;
mod server;
mod verify;

use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;

pub use client::{ClientTls, IdentityFiles};
pub use error::TlsError;
pub use rustls;
pub use server::{ServerTls, ServerTlsFiles};
pub use verify::Verification;

/// The protocol names of ALPN.
pub const H2: &[u8] = b"h2";
pub const HTTP1: &[u8] = b"http/1.1";

/// The one crypto provider.
fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> =
        LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));
    PROVIDER.clone()
}
