//! The server's side: its certificate, and the authorities of its clients. Files that change are read again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::error::TlsError;
use crate::{H2, HTTP1, pem, provider};

/// The files of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTlsFiles {
    /// The certificate with its chain.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Authorities of clients: with them, a client without a certificate of theirs is refused.
    pub client_ca: Option<PathBuf>,
}

/// The configuration of a server. Connections that begin get the current one; open connections keep theirs.
pub struct ServerTls {
    files: ServerTlsFiles,
    current: RwLock<Arc<ServerConfig>>,
    /// The state of the files at the last read, whether they were usable or not.
    read: Mutex<Vec<Option<FileState>>>,
}

/// The facts that differ once a file is written or replaced. Links are followed, so a link to another file counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    n_bytes: u64,
    modified: (i64, i64),
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ServerTls {
    /// Reads the files.
    pub fn open(files: ServerTlsFiles) -> Result<Self, TlsError> {
        // Taken before the files are read: a change meanwhile is found by the next look.
        let read = Mutex::new(states(&files));
        let current = RwLock::new(Arc::new(configure(&files)?));
        Ok(ServerTls { files, current, read })
    }

    /// The configuration for a connection that begins.
    pub fn current(&self) -> Arc<ServerConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the files again. After an error the configuration stays as it was.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.load(states(&self.files))
    }

    /// Reads the files again if one of them changed; `None` = none did.
    pub fn reload_if_changed(&self) -> Option<Result<(), TlsError>> {
        let now = states(&self.files);
        let is_same = *self.read.lock().unwrap_or_else(PoisonError::into_inner) == now;
        (!is_same).then(|| self.load(now))
    }

    fn load(&self, now: Vec<Option<FileState>>) -> Result<(), TlsError> {
        // Noted in any case: a broken pair is reported once, and read again when a file changes again.
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = now;
        let config = Arc::new(configure(&self.files)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }
}

fn states(files: &ServerTlsFiles) -> Vec<Option<FileState>> {
    let paths = [&files.cert, &files.key].into_iter().chain(&files.client_ca);
    paths.map(|path| state(path)).collect()
}

/// `None` = the file is not there or cannot be looked at.
fn state(path: &Path) -> Option<FileState> {
    let facts = fs::metadata(path).ok()?;
    Some(FileState {
        device: facts.dev(),
        inode: facts.ino(),
        n_bytes: facts.size(),
        modified: (facts.mtime(), facts.mtime_nsec()),
    })
}

fn configure(files: &ServerTlsFiles) -> Result<ServerConfig, TlsError> {
    let (chain, key) = (pem::certificates(&files.cert)?, pem::private_key(&files.key)?);
    let builder = ServerConfig::builder_with_provider(provider());
    let builder = builder.with_safe_default_protocol_versions().map_err(TlsError::Setup)?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            pem::add_authorities(&mut roots, path)?;
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
            let verifier = verifier
                .map_err(|error| TlsError::Untrusted { path: path.clone(), reason: error.to_string() })?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(|error| TlsError::Pair {
        cert: files.cert.clone(),
        key: files.key.clone(),
        reason: error.to_string(),
    })?;
    config.alpn_protocols = vec![H2.to_vec(), HTTP1.to_vec()];
    Ok(config)
}

#[cfg(test)]
mod tests;
