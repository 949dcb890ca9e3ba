//! One connection: HTTP/1.1, or HTTP/2 where client and server agree on it during the handshake of TLS.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::HeaderValue;
use axum::http::header::HOST;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tower::ServiceExt;

use super::client::{ClientLimits, ClientSlot};
use super::held_body::HeldBody;
use super::paced_body::StallWatch;
use super::room::{BusyConnection, ConnectionPlace};
use super::timed::{ConnectionTimeouts, RequestCount, TimedConnection};
use super::tls::{Protocol, TlsHandshakes};
use crate::Options;
use crate::problem::{ApiError, Code};

/// Bytes of the head of a request.
const HEAD_BYTES: u32 = 64 << 10;
/// Requests of one HTTP/2 connection at once, as many as browsers expect.
const H2_STREAMS_MAX: u32 = 100;
/// Bytes of one body, and of all bodies of a connection, that a client may send before the server has read some: they
/// are outside of the memory budget of bodies.
const H2_STREAM_WINDOW: u32 = 64 << 10;
const H2_CONNECTION_WINDOW: u32 = 256 << 10;
/// Bytes of one response that wait for the client to take them.
const H2_SEND_BYTES: usize = 64 << 10;

type Ended = Result<(), Box<dyn Error + Send + Sync>>;

/// How slow a client may be.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConversationLimits {
    head: Duration,
    write: Duration,
    idle: Duration,
}

impl ConversationLimits {
    pub(super) fn of(options: &Options) -> Self {
        ConversationLimits {
            head: options.head_timeout,
            write: options.write_timeout,
            // It counts from the end of the request before: it is the time that a kept connection may be idle.
            idle: options.idle_timeout.max(options.head_timeout),
        }
    }
}

/// The server's end of a connection.
pub(super) struct Conversation {
    pub(super) router: Router,
    pub(super) clients: ClientLimits,
    pub(super) peer: SocketAddr,
    pub(super) place: Arc<ConnectionPlace>,
    pub(super) limits: ConversationLimits,
    pub(super) watcher: Watcher,
}

impl Conversation {
    /// Shakes hands, and speaks the protocol that they agree on.
    pub(super) async fn over_tls(self, stream: TcpStream, tls: TlsHandshakes) -> Ended {
        let (stream, protocol) = tls.accept(stream, self.limits.head).await?;
        match protocol {
            Protocol::Http1 => self.http1(stream).await,
            Protocol::Http2 => self.http2(stream).await,
        }
    }

    pub(super) async fn http1(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Ended {
        let Conversation { router, clients, peer, place, limits, watcher } = self;
        let timeouts = ConnectionTimeouts { head: Some(limits.head), write: limits.write };
        let answering = RequestCount::default();
        let stream = TimedConnection::new(stream, answering.clone(), timeouts);
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).max_buf_size(HEAD_BYTES as usize).header_read_timeout(limits.idle);
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            answering.begin();
            let answering = answering.clone();
            let answered = answer_held(router.clone(), clients.clone(), peer, place.begin_request(), request);
            async move {
                let answer = answered.await;
                answering.end();
                Ok::<_, Infallible>(answer)
            }
        });
        Ok(watcher.watch(builder.serve_connection(TokioIo::new(stream), service)).await?)
    }

    async fn http2(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Ended {
        let Conversation { router, clients, peer, place, limits, watcher } = self;
        let timeouts = ConnectionTimeouts { head: None, write: limits.write };
        let stream = TimedConnection::new(stream, RequestCount::default(), timeouts);
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.timer(TokioTimer::new()).max_header_list_size(HEAD_BYTES);
        builder.max_concurrent_streams(H2_STREAMS_MAX).max_send_buf_size(H2_SEND_BYTES);
        builder.initial_stream_window_size(H2_STREAM_WINDOW);
        builder.initial_connection_window_size(H2_CONNECTION_WINDOW);
        let (its_place, watch) = (place.clone(), StallWatch::default());
        let responses = watch.clone();
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            name_host(&mut request);
            let busy = its_place.begin_request();
            let answered = answer_held(router.clone(), clients.clone(), peer, busy, request);
            let responses = responses.clone();
            async move { Ok::<_, Infallible>(answered.await.map(|body| responses.pace(body))) }
        });
        let connection = watcher.watch(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            ended = connection => Ok(ended?),
            () = place.idle_for(limits.idle) => Ok(()),
            () = watch.stalled_for(limits.write) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        }
    }
}

type HeldResponse = hyper::Response<HeldBody<(BusyConnection, Option<ClientSlot>)>>;

/// Answers a request; the body of the answer keeps the connection busy until it is sent.
async fn answer_held(
    router: Router,
    clients: ClientLimits,
    peer: SocketAddr,
    busy: BusyConnection,
    request: hyper::Request<Incoming>,
) -> HeldResponse {
    let (answer, of_client) = answer(router, &clients, peer, request).await;
    answer.map(|body| HeldBody::new(body, (busy, of_client)))
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

/// Repeats the host of an HTTP/2 request as a header: checks of hosts and origins look for it there.
fn name_host(request: &mut hyper::Request<Incoming>) {
    if request.headers().contains_key(HOST) {
        return;
    }
    let named = request.uri().authority().and_then(|name| HeaderValue::from_str(name.as_str()).ok());
    if let Some(named) = named {
        request.headers_mut().insert(HOST, named);
    }
}
