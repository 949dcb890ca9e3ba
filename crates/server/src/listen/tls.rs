//! Handshakes of TLS, bounded in number and time, and the loop that reads changed certificates.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use windlass_tls::{H2, ServerTls, TlsError};

/// Handshakes at once; further ones wait within their time limit. More than one address may have connections, so that
/// one address cannot take them all.
const HANDSHAKES_MAX: usize = 2_048;
/// How often the server looks for changed files.
const LOOK: Duration = Duration::from_secs(1);

/// The protocol that client and server agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// The handshakes of one listener. Cheap to clone.
#[derive(Clone)]
pub(super) struct TlsHandshakes {
    tls: Arc<ServerTls>,
    permits: Arc<Semaphore>,
    shutdown: CancellationToken,
}

impl TlsHandshakes {
    pub(super) fn new(tls: Arc<ServerTls>, shutdown: CancellationToken) -> Self {
        TlsHandshakes { tls, permits: Arc::new(Semaphore::new(HANDSHAKES_MAX)), shutdown }
    }

    /// Shakes hands under the current certificate. A client that speaks plain HTTP is an error like any other.
    pub(super) async fn accept(
        &self,
        stream: TcpStream,
        at_most: Duration,
    ) -> io::Result<(TlsStream<TcpStream>, Protocol)> {
        let shaking = async {
            let _permit = self.permits.acquire().await.map_err(io::Error::other)?;
            TlsAcceptor::from(self.tls.current()).accept(stream).await
        };
        let shaken = self.shutdown.run_until_cancelled(tokio::time::timeout(at_most, shaking)).await;
        let Some(shaken) = shaken else { return Err(io::ErrorKind::ConnectionAborted.into()) };
        let stream = shaken??;
        let is_h2 = stream.get_ref().1.alpn_protocol() == Some(H2);
        Ok((stream, if is_h2 { Protocol::Http2 } else { Protocol::Http1 }))
    }

    /// Reads the files again when they change, and on SIGHUP, until the server stops.
    pub(super) async fn reload_loop(&self) {
        let mut hangups = match signal(SignalKind::hangup()) {
            Ok(hangups) => Some(hangups),
            Err(error) => {
                tracing::warn!(%error, "SIGHUP is not heard: certificates are read again when their files change");
                None
            }
        };
        loop {
            let is_asked = tokio::select! {
                () = self.shutdown.cancelled() => return,
                () = tokio::time::sleep(LOOK) => false,
                Some(()) = async { hangups.as_mut()?.recv().await } => true,
            };
            let tls = self.tls.clone();
            let read = tokio::task::spawn_blocking(move || {
                if is_asked { Some(tls.reload()) } else { tls.reload_if_changed() }
            });
            match read.await {
                Ok(read) => report(read),
                Err(error) => tracing::error!(%error, "certificates could not be read again"),
            }
        }
    }
}

fn report(read: Option<Result<(), TlsError>>) {
    match read {
        None => {}
        Some(Ok(())) => tracing::info!("the certificate was read again: new connections get it"),
        Some(Err(error)) => {
            tracing::warn!(%error, "new connections get the earlier certificate: repair the files");
        }
    }
}
