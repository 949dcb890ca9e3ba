//! PEM files with certificates and keys.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::TlsError;

/// Bytes of a file: all authorities of a system fit.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The certificates of a file, in their order.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(found) if found.is_empty() => Err(missing(path, "certificate")),
        Ok(found) => Ok(found),
        Err(error) => Err(malformed(path, &error)),
    }
}

/// The first private key of a file.
pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(&read(path)?).map_err(|error| match error {
        pem::Error::NoItemsFound => missing(path, "private key"),
        other => malformed(path, &other),
    })
}

/// Trust in the authorities of a file.
pub(crate) fn add_authorities(roots: &mut RootCertStore, path: &Path) -> Result<(), TlsError> {
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| TlsError::Untrusted { path: path.to_owned(), reason: error.to_string() })?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    let mut text = Vec::new();
    File::open(path)
        .map_err(unreadable)?
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(unreadable)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(TlsError::TooLarge { path: path.to_owned(), max: FILE_BYTES_MAX });
    }
    Ok(text)
}

fn missing(path: &Path, wanted: &'static str) -> TlsError {
    TlsError::Missing { path: path.to_owned(), wanted }
}

fn malformed(path: &Path, error: &pem::Error) -> TlsError {
    TlsError::Malformed { path: path.to_owned(), reason: error.to_string() }
}
