//! The sending end of an event stream, and its receiving end. A stream that does not keep up loses events and is told so.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use tokio::sync::mpsc;

/// Events that wait for a stream.
const WAITING_MAX: usize = 256;

/// Where events for one stream go.
#[derive(Clone)]
pub(super) struct Outlet {
    sender: mpsc::Sender<Bytes>,
    has_lost: Arc<AtomicBool>,
}

/// The events of the topics of one stream.
pub(crate) struct Subscription {
    receiver: mpsc::Receiver<Bytes>,
    has_lost: Arc<AtomicBool>,
}

/// An event, or the notice that some were lost.
pub(crate) enum Received {
    Frame(Bytes),
    /// Events were lost before the ones that follow.
    Lost,
}

pub(super) fn outlet() -> (Outlet, Subscription) {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let has_lost = Arc::new(AtomicBool::new(false));
    (Outlet { sender, has_lost: has_lost.clone() }, Subscription { receiver, has_lost })
}

impl Outlet {
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    pub(super) fn send(&self, frame: Bytes) {
        if self.sender.try_send(frame).is_err() {
            self.has_lost.store(true, Ordering::Relaxed);
        }
    }
}

impl Subscription {
    /// The next event; `None` = the hub has ended.
    pub(crate) async fn recv(&mut self) -> Option<Received> {
        if self.has_lost.swap(false, Ordering::Relaxed) {
            return Some(Received::Lost);
        }
        self.receiver.recv().await.map(Received::Frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_stream_that_does_not_keep_up_is_told_that_it_lost_events() {
        let (outlet, mut subscription) = outlet();
        for n in 0..=WAITING_MAX {
            outlet.send(n.to_string().into());
        }
        assert!(matches!(subscription.recv().await, Some(Received::Lost)));
        let first = subscription.recv().await;
        assert!(matches!(first, Some(Received::Frame(frame)) if frame == "0"));
        drop(subscription);
        assert!(outlet.is_closed());
    }
}
