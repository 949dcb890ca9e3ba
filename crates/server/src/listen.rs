//! The HTTP listener, with limits on the number of connections, in all and of one client, and on their slowness.

pub(crate) mod client;
mod held_body;
mod room;
mod timed;

use std::convert::Infallible;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use windlass_runtime::Runtime;

use crate::Options;
use crate::problem::{ApiError, Code};
use client::{ClientLimits, ClientSlot};
use held_body::HeldBody;
use room::{ConnectionPlace, ConnectionRoom};
use timed::{ConnectionTimeouts, RequestCount, TimedConnection};

/// Bytes of the head of a request.
const HEAD_BYTES: usize = 64 << 10;
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
    let door = Listener {
        router: crate::build(runtime, &options, shutdown.clone()),
        graceful: GracefulShutdown::new(),
        cut: CancellationToken::new(),
        room,
        clients: ClientLimits::new(options.connections_per_address_max, &options.trusted_proxies),
        options,
    };
    while let Some(accepted) = shutdown.run_until_cancelled(door.accept(&listener)).await {
        door.converse(accepted);
    }
    drop(listener);
    let Listener { graceful, cut, options, .. } = door;
    if tokio::time::timeout(options.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections that did not end in time are cut");
        cut.cancel();
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
                    None => refuse(stream, peer),
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
        let answering = RequestCount::default();
        let timeouts =
            ConnectionTimeouts { head: self.options.head_timeout, write: self.options.write_timeout };
        let stream = TimedConnection::new(stream, answering.clone(), timeouts);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).max_buf_size(HEAD_BYTES);
        // It counts from the end of the request before: it is the time that a kept connection may be idle.
        builder.header_read_timeout(self.options.idle_timeout.max(self.options.head_timeout));
        let (router, clients, its_place) = (self.router.clone(), self.clients.clone(), place.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            answering.begin();
            let (router, answering) = (router.clone(), answering.clone());
            let (busy, clients) = (its_place.begin_request(), clients.clone());
            async move {
                let (answer, of_client) = answer(router, &clients, peer, request).await;
                answering.end();
                Ok::<_, Infallible>(answer.map(|body| HeldBody::new(body, (busy, of_client))))
            }
        });
        let connection = self.graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        let cut = self.cut.clone();
        tokio::spawn(async move {
            tokio::select! {
                ended = cut.run_until_cancelled(connection) => {
                    if let Some(Err(error)) = ended {
                        tracing::debug!(%error, "a connection broke");
                    }
                }
                () = place.closed.cancelled() => tracing::debug!(%peer, "an idle connection made room"),
            }
            drop((place, of_client));
        });
    }
}

/// Answers a request, unless its client has too many open ones; with the slot that the client holds meanwhile.
async fn answer(
    router: Router,
    clients: &ClientLimits,
    peer: SocketAddr,
    mut request: hyper::Request<Incoming>,
) -> (Response, Option<ClientSlot>) {
    let (client, slot) = clients.request(peer.ip(), request.headers());
    if slot.is_none() {
        let detail = format!("{client} has too many open requests: wait for the answer of one");
        let busy = ApiError::new(Code::Busy, detail).retry_after(Duration::from_secs(1));
        return (crate::forbid_sniffing(busy.into_response()).await, None);
    }
    request.extensions_mut().insert(ConnectInfo(SocketAddr::new(client, peer.port())));
    let answer = router.oneshot(request.map(Body::new)).await;
    (answer.unwrap_or_else(|never| match never {}), slot)
}

/// Tells a client that it has too many connections, if it listens.
fn refuse(stream: TcpStream, peer: SocketAddr) {
    tracing::debug!(%peer, "a client has too many connections");
    let told = stream.into_std().and_then(|mut stream| stream.write(TOO_MANY.as_bytes()));
    if let Err(error) = told {
        tracing::debug!(%error, "a refused client was not told");
    }
}
