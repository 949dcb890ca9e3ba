//! A connection whose client may not take for ever to say what it wants, nor to take what it is told.
//!
//! When it says something, two waits are told apart: the one between two requests, which may be long, and the one for the rest of a head that
//! has begun, which may not. A head that comes byte by byte would otherwise hold a connection for as long as an idle
//! client may.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// How many requests were begun and ended on a connection, together: odd while one is being answered. What is read
/// meanwhile is its body, which has limits of its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Answering(Arc<AtomicU64>);

impl Answering {
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
pub(super) struct Patience {
    /// For the head of a request that it has begun.
    pub(super) head: Duration,
    /// Without taking anything of an answer.
    pub(super) write: Duration,
}

/// A connection that breaks when the head of a request takes too long, or when nobody reads the answer.
pub(super) struct Watched {
    stream: TcpStream,
    answering: Answering,
    patience: Patience,
    /// Until when some of what is being written must have been taken.
    stuck: Option<Pin<Box<Sleep>>>,
    /// Until when the rest of the head must have come, once it has begun; and the count at which that was.
    limit: Option<(u64, Pin<Box<Sleep>>)>,
}

impl Watched {
    pub(super) fn new(stream: TcpStream, answering: Answering, patience: Patience) -> Self {
        Watched { stream, answering, patience, stuck: None, limit: None }
    }

    /// What came of a write, unless nothing has been taken for too long.
    fn in_time(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let at_most = self.patience.write;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(at_most)));
        ready!(stuck.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Watched {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = into.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, into);
        let count = this.answering.count();
        if count % 2 == 1 {
            return read;
        }
        if into.filled().len() > before && this.limit.as_ref().is_none_or(|(set_at, _)| *set_at != count) {
            this.limit = Some((count, Box::pin(sleep(this.patience.head))));
        }
        // Polled so that it wakes whoever waits for the rest.
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

impl AsyncWrite for Watched {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.in_time(context, written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
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
