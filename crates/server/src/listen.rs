//! The HTTP listener, with limits on the number of connections, in all and of one client, and on their slowness; over
//! TLS if the options have a certificate.

pub(crate) mod client;
mod conversation;
mod held_body;
mod paced_body;
mod room;
mod timed;
mod tls;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use windlass_runtime::Runtime;

use crate::Options;
use client::{ClientLimits, ClientSlot};
use conversation::{Conversation, ConversationLimits};
use room::{ConnectionPlace, ConnectionRoom};
use tls::TlsHandshakes;

/// How long to wait when the system has no room for another connection.
const FULL: Duration = Duration::from_millis(50);
/// The answer to a connection of a client that has too many.
const TOO_MANY: &str =
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Serves until `shutdown` is canceled; then accepts no more connections, ends streams, finishes open requests within
/// the grace period, cuts the others, and returns. The runtime ends the waits of workers for jobs: shut it down at the
/// same time, not after.
pub async fn serve(
    listener: TcpListener,
    runtime: Runtime,
    options: Options,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let room = ConnectionRoom::new(options.connections_max, runtime.bodies().clone());
    let tls = options.tls.clone().map(|tls| TlsHandshakes::new(tls, shutdown.clone()));
    let door = Listener {
        router: crate::build(runtime, &options, shutdown.clone()),
        graceful: GracefulShutdown::new(),
        cut: CancellationToken::new(),
        room,
        clients: ClientLimits::new(options.connections_per_address_max, &options.trusted_proxies),
        tls,
        options,
    };
    let reloading = door.tls.clone().map(|tls| tokio::spawn(async move { tls.reload_loop().await }));
    while let Some(accepted) = shutdown.run_until_cancelled(door.accept(&listener)).await {
        door.converse(accepted);
    }
    drop(listener);
    let Listener { graceful, cut, options, .. } = door;
    if tokio::time::timeout(options.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections that did not end in time are cut");
        cut.cancel();
    }
    if let Some(reloading) = reloading {
        reloading.await?;
    }
    Ok(())
}

/// The state that all connections share.
struct Listener {
    router: Router,
    options: Options,
    graceful: GracefulShutdown,
    cut: CancellationToken,
    room: ConnectionRoom,
    clients: ClientLimits,
    tls: Option<TlsHandshakes>,
}

/// A connection that has a place.
struct AcceptedConnection {
    stream: TcpStream,
    peer: SocketAddr,
    place: Arc<ConnectionPlace>,
    of_client: ClientSlot,
}

impl Listener {
    /// The next connection, once there is a place for it; those behind it wait where the system keeps them.
    async fn accept(&self, listener: &TcpListener) -> AcceptedConnection {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => match self.clients.connect(peer.ip()) {
                    Some(of_client) => {
                        let place = self.room.enter().await;
                        return AcceptedConnection { stream, peer, place, of_client };
                    }
                    None => self.refuse(stream, peer),
                },
                Err(error) => {
                    // Out of descriptors, or a client that left while it waited: neither is a reason to stop.
                    tracing::debug!(%error, "a connection could not be taken");
                    tokio::time::sleep(FULL).await;
                }
            }
        }
    }

    fn converse(&self, accepted: AcceptedConnection) {
        let AcceptedConnection { stream, peer, place, of_client } = accepted;
        // Answers are small and awaited: they must not wait to be joined by others.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let conversation = Conversation {
            router: self.router.clone(),
            clients: self.clients.clone(),
            peer,
            place: place.clone(),
            limits: ConversationLimits::of(&self.options),
            watcher: self.graceful.watcher(),
        };
        let (cut, tls) = (self.cut.clone(), self.tls.clone());
        tokio::spawn(async move {
            let talking = async {
                match tls {
                    None => conversation.http1(stream).await,
                    Some(tls) => Box::pin(conversation.over_tls(stream, tls)).await,
                }
            };
            tokio::select! {
                ended = cut.run_until_cancelled(talking) => {
                    if let Some(Err(error)) = ended {
                        tracing::debug!(%peer, %error, "a connection broke");
                    }
                }
                () = place.closed.cancelled() => tracing::debug!(%peer, "an idle connection made room"),
            }
            drop((place, of_client));
        });
    }

    /// Tells a client that it has too many connections, if it listens. Over TLS it would have to shake hands first.
    fn refuse(&self, stream: TcpStream, peer: SocketAddr) {
        tracing::debug!(%peer, "a client has too many connections");
        if self.tls.is_some() {
            return;
        }
        let told = stream.into_std().and_then(|mut stream| stream.write(TOO_MANY.as_bytes()));
        if let Err(error) = told {
            tracing::debug!(%error, "a refused client was not told");
        }
    }
}
