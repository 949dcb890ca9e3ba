//! A connection with time limits for reading a request's head and for writing a response.
//!
//! Two waits for a client differ: the wait between two requests may be long, the wait for the rest of a head may not. A
//! head that comes byte by byte would otherwise hold a connection for as long as an idle client may.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The number of begun plus ended requests of a connection: odd while one is being answered. Bytes read meanwhile
/// belong to its body, which has limits of its own.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestCount(Arc<AtomicU64>);

impl RequestCount {
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionTimeouts {
    /// For the head of a request that it has begun; `None` = its bytes cannot be told from others.
    pub(super) head: Option<Duration>,
    /// Without taking anything of an answer.
    pub(super) write: Duration,
}

/// A connection that breaks when the head of a request takes too long, or when the client does not read the response.
pub(super) struct TimedConnection<S> {
    stream: S,
    answering: RequestCount,
    timeouts: ConnectionTimeouts,
    /// The time until which the client must have read some of the response.
    stuck: Option<Pin<Box<Sleep>>>,
    /// Until when the rest of the head must have come, once it has begun; and the count at which that was.
    limit: Option<(u64, Pin<Box<Sleep>>)>,
}

impl<S> TimedConnection<S> {
    pub(super) fn new(stream: S, answering: RequestCount, timeouts: ConnectionTimeouts) -> Self {
        TimedConnection { stream, answering, timeouts, stuck: None, limit: None }
    }

    /// The result of a write, or a time-out if the client has read nothing for too long.
    fn in_time<T>(&mut self, context: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let at_most = self.timeouts.write;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(at_most)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedConnection<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, into);
        let count = this.answering.count();
        let Some(at_most) = this.timeouts.head.filter(|_| count.is_multiple_of(2)) else { return read };
        if into.filled().len() > before && this.limit.as_ref().is_none_or(|(set_at, _)| *set_at != count) {
            this.limit = Some((count, Box::pin(sleep(at_most))));
        }
        // Polled so that it wakes the task that waits for the rest.
        if read.is_pending()
            && let Some((set_at, limit)) = &mut this.limit
            && *set_at == count
        {
            ready!(limit.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedConnection<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.in_time(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // TLS takes bytes before the socket does, so a client that reads nothing may show here first.
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        this.in_time(context, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
