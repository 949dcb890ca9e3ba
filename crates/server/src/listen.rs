//! The HTTP listener, with limits on the number of connections and on their slowness.

mod timed;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use windlass_runtime::Runtime;

use crate::Options;
use timed::{ConnectionTimeouts, RequestCount, TimedConnection};

/// Bytes of the head of a request.
const HEAD_BYTES: usize = 64 << 10;
/// How long to wait when the system has no room for another connection.
const FULL: Duration = Duration::from_millis(50);

/// Serves until `shutdown` is cancelled; then accepts no more connections, ends streams, finishes open requests within
/// the grace period, cuts the others, and returns. The runtime ends the waits of workers for jobs: shut it down at the
/// same time, not after.
pub async fn serve(
    listener: TcpListener,
    runtime: Runtime,
    options: Options,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(options.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
    let door = Listener {
        router: crate::build(runtime, &options, shutdown.clone()),
        graceful: GracefulShutdown::new(),
        cut: CancellationToken::new(),
        options,
    };
    // Those for whom there is no room wait where the system keeps them.
    while let Some((stream, peer, held)) = shutdown.run_until_cancelled(accept(&listener, &room)).await {
        door.converse(stream, peer, held);
    }
    drop(listener);
    let Listener { graceful, cut, options, .. } = door;
    if tokio::time::timeout(options.grace, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections that did not end in time are cut");
        cut.cancel();
    }
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    let held = room.clone().acquire_owned().await.expect("the room for connections is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, held),
            Err(error) => {
                // Out of descriptors, or a client that left while it waited: neither is a reason to stop.
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(FULL).await;
            }
        }
    }
}

/// The state that all connections share.
struct Listener {
    router: Router,
    options: Options,
    graceful: GracefulShutdown,
    cut: CancellationToken,
}

impl Listener {
    fn converse(&self, stream: TcpStream, peer: SocketAddr, held: OwnedSemaphorePermit) {
        // Answers are small and awaited: they must not wait to be joined by others.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
        let answering = RequestCount::default();
        let patience =
            ConnectionTimeouts { head: self.options.head_timeout, write: self.options.write_timeout };
        let stream = TimedConnection::new(stream, answering.clone(), patience);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).max_buf_size(HEAD_BYTES);
        // It counts from the end of the request before: it is the time that a kept connection may be idle.
        builder.header_read_timeout(self.options.idle_timeout.max(self.options.head_timeout));
        let router = self.router.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            answering.begin();
            request.extensions_mut().insert(ConnectInfo(peer));
            let (router, answering) = (router.clone(), answering.clone());
            async move {
                let answer = router.oneshot(request.map(Body::new)).await;
                answering.end();
                answer
            }
        });
        let connection = self.graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        let cut = self.cut.clone();
        tokio::spawn(async move {
            if let Some(Err(error)) = cut.run_until_cancelled(connection).await {
                tracing::debug!(%error, "a connection broke");
            }
            drop(held);
        });
    }
}
