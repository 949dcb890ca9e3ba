//! Bodies of responses over HTTP/2, in small frames, and the watch for those that their client does not take.
//!
//! A connection has many responses at once, each with a window of its own, so a client may read one and leave another. The
//! protocol asks for the next frame when the client has room for it; a frame that waits for too long ends the connection.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::time::Instant;

/// Bytes of a frame: as many as HTTP/2 sends at once by default.
const FRAME_BYTES: usize = 16 << 10;

/// The responses of one connection that wait for their client. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct StallWatch(Arc<Mutex<WaitingBodies>>);

#[derive(Default)]
struct WaitingBodies {
    last: u64,
    since: BTreeMap<u64, Instant>,
}

impl StallWatch {
    /// Returns when a response has waited for its client for as long as this.
    pub(super) async fn stalled_for(&self, at_least: Duration) {
        loop {
            let oldest = self.lock().since.values().min().copied();
            match oldest.map(|since| since + at_least) {
                Some(until) if until <= Instant::now() => return,
                Some(until) => tokio::time::sleep_until(until).await,
                None => tokio::time::sleep(at_least).await,
            }
        }
    }

    /// Sends a body in frames, and watches it.
    pub(super) fn pace<B>(&self, body: B) -> PacedBody<B> {
        let mut bodies = self.lock();
        bodies.last += 1;
        let number = bodies.last;
        bodies.since.insert(number, Instant::now());
        PacedBody { body, rest: Bytes::new(), watch: self.clone(), number }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingBodies> {
        // A panic elsewhere leaves nothing half done here.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct PacedBody<B> {
    body: B,
    /// The rest of the last piece.
    rest: Bytes,
    watch: StallWatch,
    number: u64,
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for PacedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        // The client has room: if nothing comes now, it waits for the server.
        this.watch.lock().since.remove(&this.number);
        if this.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                ended => return Poll::Ready(ended),
            };
            match frame.into_data() {
                Ok(data) => this.rest = data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let next = this.rest.split_to(this.rest.len().min(FRAME_BYTES));
        this.watch.lock().since.insert(this.number, Instant::now());
        Poll::Ready(Some(Ok(Frame::data(next))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        if let Some(upper) = hint.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(hint.lower() + rest);
        hint
    }
}

impl<B> Drop for PacedBody<B> {
    fn drop(&mut self) {
        self.watch.lock().since.remove(&self.number);
    }
}
