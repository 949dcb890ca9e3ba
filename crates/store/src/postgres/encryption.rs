//! Encrypted connections: `sslmode` and `sslrootcert` of an address, and the handshake.

use std::borrow::Cow;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use windlass_tls::rustls::ClientConfig;
use windlass_tls::rustls::pki_types::{InvalidDnsNameError, ServerName};
use windlass_tls::{ClientTls, Verification};

use super::trouble::Trouble;
use crate::error::StoreError;

/// The encryption that an address asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Encryption {
    pub(super) mode: EncryptionMode,
    /// The file of the authorities that count instead of those of the system.
    ca: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EncryptionMode {
    Off,
    /// If the database offers it; its certificate is not checked.
    Preferred,
    Required(Verification),
}

impl EncryptionMode {
    /// Without a mode there is no encryption: `prefer` keeps nothing from an attacker who can change what is sent, and
    /// costs the connections to a database of this machine.
    const DEFAULT: EncryptionMode = EncryptionMode::Off;

    fn read(text: &str) -> Result<Self, Trouble> {
        Ok(match text {
            "disable" => EncryptionMode::Off,
            "prefer" => EncryptionMode::Preferred,
            "require" => EncryptionMode::Required(Verification::Nothing),
            "verify-ca" => EncryptionMode::Required(Verification::Chain),
            "verify-full" => EncryptionMode::Required(Verification::Full),
            _ => {
                let what = "`sslmode` is none of the known ones: write disable, prefer, require, verify-ca or verify-full";
                return Err(Trouble::new(what));
            }
        })
    }
}

/// Takes `sslmode` and `sslrootcert` out of an address.
pub(super) fn split(address: &str) -> Result<(Cow<'_, str>, Encryption), StoreError> {
    // A password may hold a question mark.
    let after_user = address.find('@').unwrap_or(0);
    let mut encryption = Encryption { mode: EncryptionMode::DEFAULT, ca: None };
    let Some(at) = address[after_user..].find('?') else { return Ok((address.into(), encryption)) };
    let (place, query) = address.split_at(after_user + at);
    let mut others = Vec::new();
    for part in query[1..].split('&') {
        match part.split_once('=') {
            Some(("sslmode", mode)) => encryption.mode = EncryptionMode::read(mode)?,
            Some(("sslrootcert", path)) => encryption.ca = Some(path_of(path)?),
            _ => others.push(part),
        }
    }
    if encryption.ca.is_some()
        && !matches!(encryption.mode, EncryptionMode::Required(Verification::Chain | Verification::Full))
    {
        let what = "`sslrootcert` has no effect without a check: add `sslmode=verify-full`, or leave it out";
        return Err(Trouble::new(what).into());
    }
    let query = others.join("&");
    let mark = if query.is_empty() { "" } else { "?" };
    Ok((format!("{place}{mark}{query}").into(), encryption))
}

/// Decodes a path of an address.
fn path_of(text: &str) -> Result<PathBuf, Trouble> {
    let wrong =
        || Trouble::new("`sslrootcert` is no path: name a PEM file, such as /etc/ssl/database-ca.pem");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [rest.next().ok_or_else(wrong)?, rest.next().ok_or_else(wrong)?];
        let digits = std::str::from_utf8(&digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
    }
    let path = String::from_utf8(bytes).map_err(|_| wrong())?;
    if path.is_empty() { Err(wrong()) } else { Ok(path.into()) }
}

/// Makes encrypted connections of plain ones.
#[derive(Clone)]
pub(super) struct DatabaseTls(Arc<ClientConfig>);

impl std::fmt::Debug for DatabaseTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DatabaseTls")
    }
}

impl DatabaseTls {
    pub(super) fn new(encryption: &Encryption) -> Result<Self, StoreError> {
        let config = match encryption.mode {
            EncryptionMode::Off => ClientTls::without_trust(),
            EncryptionMode::Preferred => ClientTls::for_database(Verification::Nothing, None),
            EncryptionMode::Required(verification) => {
                ClientTls::for_database(verification, encryption.ca.as_deref())
            }
        };
        let config = config.map_err(|error| Trouble::new(error.to_string()))?;
        Ok(DatabaseTls(Arc::new(config)))
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> MakeTlsConnect<S> for DatabaseTls {
    type Stream = EncryptedStream<S>;
    type TlsConnect = Handshake;
    type Error = Infallible;

    /// The driver also asks for a handshake with the path of a socket, which it never begins.
    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        let name = ServerName::try_from(host).map(|name| name.to_owned());
        Ok(Handshake { connector: TlsConnector::from(self.0.clone()), name })
    }
}

/// The handshake with one host.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: Result<ServerName<'static>, InvalidDnsNameError>,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> TlsConnect<S> for Handshake {
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let name = self.name.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            Ok(EncryptedStream(self.connector.connect(name, stream).await?))
        })
    }
}

/// An encrypted connection.
pub(super) struct EncryptedStream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    /// Passwords are checked by SCRAM without a binding to the certificate; `verify-full` binds the server to its name.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_encryption_are_taken_out_of_an_address() {
        let (rest, encryption) =
            split("postgres://a:?sslmode=x@h/d?sslmode=verify-ca&b=c&sslrootcert=/my%20ca.pem").unwrap();
        assert_eq!(rest, "postgres://a:?sslmode=x@h/d?b=c");
        let mode = EncryptionMode::Required(Verification::Chain);
        assert_eq!(encryption, Encryption { mode, ca: Some("/my ca.pem".into()) });
        let (rest, encryption) = split("postgres://h/d?sslmode=disable").unwrap();
        assert_eq!((&*rest, encryption.mode), ("postgres://h/d", EncryptionMode::Off));
    }

    #[test]
    fn an_authority_without_a_check_is_refused() {
        let refused = |address| match split(address).unwrap_err() {
            StoreError::Unavailable(reason) => reason.to_string(),
            other => panic!("{other:?}"),
        };
        assert!(refused("postgres://h/d?sslrootcert=/ca.pem").contains("sslmode=verify-full"));
        assert!(refused("postgres://h/d?sslmode=require&sslrootcert=/ca.pem").contains("no effect"));
        assert!(refused("postgres://h/d?sslmode=verify-full&sslrootcert=%zz").contains("no path"));
    }
}
