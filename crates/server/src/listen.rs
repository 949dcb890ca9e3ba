//! Listening: connections, how many and how slow they may be, and how they end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use windlass_runtime::Runtime;

use crate::Options;

/// How long a client may take for the head of a request, the wait for the next one on a kept connection included.
const HEAD: Duration = Duration::from_secs(10);
/// Bytes of the head of a request.
const HEAD_BYTES: usize = 64 << 10;
/// How long connections may take to end once the server closes: what is being answered is answered.
const GRACE: Duration = Duration::from_secs(10);
/// How long to wait when the system has no room for another connection.
const FULL: Duration = Duration::from_millis(50);

/// Serves until `shutdown` is cancelled; then takes no more connections, ends streams, answers what is being
/// answered, and returns.
pub async fn serve(
    listener: TcpListener,
    runtime: Runtime,
    options: Options,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(options.connections_max.clamp(1, Semaphore::MAX_PERMITS)));
    let router = crate::build(runtime, options, shutdown.clone());
    let graceful = GracefulShutdown::new();
    loop {
        // Those for whom there is no room wait where the system keeps them.
        let accepted = shutdown.run_until_cancelled(accept(&listener, &room)).await;
        let Some((stream, held)) = accepted else { break };
        converse(stream, held, router.clone(), &graceful);
    }
    drop(listener);
    if tokio::time::timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections that did not end in time were cut");
    }
    Ok(())
}

async fn accept(listener: &TcpListener, room: &Arc<Semaphore>) -> (TcpStream, OwnedSemaphorePermit) {
    let held = room.clone().acquire_owned().await.expect("the room for connections is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, held),
            Err(error) => {
                // Out of descriptors, or a client that left while it waited: neither is a reason to stop.
                tracing::debug!(%error, "a connection could not be taken");
                tokio::time::sleep(FULL).await;
            }
        }
    }
}

fn converse(stream: TcpStream, held: OwnedSemaphorePermit, router: Router, graceful: &GracefulShutdown) {
    // Answers are small and awaited: they must not wait to be joined by others.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES).keep_alive(true);
    let service =
        TowerToHyperService::new(tower::util::MapRequest::new(router, |request: hyper::Request<_>| {
            request.map(axum::body::Body::new)
        }));
    let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection broke");
        }
        drop(held);
    });
}
