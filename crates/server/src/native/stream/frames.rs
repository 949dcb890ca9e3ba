//! The bytes of an event stream, and the sender that writes them.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Events that wait to be sent: a watcher further behind is waited for.
const WAITING: usize = 64;
/// How long a watcher may take none of them before it counts as gone.
const PATIENCE: Duration = Duration::from_secs(30);

/// The client has disconnected.
#[derive(Debug)]
pub(super) struct ClientGone;

/// Where events are told.
pub(super) struct EventSender(mpsc::Sender<Bytes>);

impl EventSender {
    pub(super) async fn say(&self, event: &str, id: &str, data: &impl Serialize) -> Result<(), ClientGone> {
        let data = serde_json::to_string(data).map_err(|_| ClientGone)?;
        self.send(format!("event: {event}\nid: {id}\ndata: {data}\n\n")).await
    }

    /// Passes on an event that is written already.
    pub(super) async fn pass(&self, frame: Bytes) -> Result<(), ClientGone> {
        self.0.send_timeout(frame, PATIENCE).await.map_err(|_| ClientGone)
    }

    /// A comment, which keeps the connection open.
    pub(super) async fn beat(&self) -> Result<(), ClientGone> {
        self.send(": still here\n\n".to_owned()).await
    }

    async fn send(&self, text: String) -> Result<(), ClientGone> {
        self.0.send_timeout(text.into(), PATIENCE).await.map_err(|_| ClientGone)
    }
}

/// A response that streams the events of `tell`, until it ends, the client disconnects, or the server closes.
pub(super) fn stream<F>(closing: CancellationToken, tell: impl FnOnce(EventSender) -> F) -> Response
where
    F: Future<Output = Result<(), ClientGone>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(WAITING);
    let gone = sender.clone();
    let telling = tell(EventSender(sender));
    tokio::spawn(async move {
        tokio::select! {
            _ = telling => {}
            () = gone.closed() => {}
            () = closing.cancelled() => {}
        }
    });
    let mut response = Body::new(Frames(receiver)).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // A proxy that gathers a page before it passes it on would never pass this on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Frames(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
