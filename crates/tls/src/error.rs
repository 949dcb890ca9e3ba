//! Problems with certificates, keys and trust, each with its remedy.

use std::io;
use std::path::PathBuf;

/// A file or a pair of files that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Correct the path or the rights.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// Name another file.
    #[error("{} is larger than {max} bytes: name a PEM file", path.display())]
    TooLarge { path: PathBuf, max: u64 },
    /// Name a file in the right form.
    #[error("{} has no {wanted}: name a PEM file with one", path.display())]
    Missing { path: PathBuf, wanted: &'static str },
    /// Repair the file.
    #[error("{} cannot be read as PEM: {reason}", path.display())]
    Malformed { path: PathBuf, reason: String },
    /// Name two files that belong together.
    #[error("{} and {} cannot be used together: {reason}", cert.display(), key.display())]
    Pair { cert: PathBuf, key: PathBuf, reason: String },
    /// Name certificates of an authority.
    #[error("{} has a certificate that cannot be trusted: {reason}", path.display())]
    Untrusted { path: PathBuf, reason: String },
    /// Report it: the settings of this build do not fit together.
    #[error("tls cannot be configured: {0}")]
    Setup(#[source] rustls::Error),
}
