//! Room for connections. When all places are taken and another connection waits, the one that has been idle for longest
//! is closed: idle connections never keep a request out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a connection keeps its place without a request: long enough for a request that is on its way, and for the
/// rest of a response.
const IDLE_MIN: Duration = Duration::from_secs(1);

/// Places for connections.
pub(super) struct ConnectionRoom {
    permits: Arc<Semaphore>,
    idle: Arc<IdleConnections>,
}

impl ConnectionRoom {
    pub(super) fn new(n: usize) -> Self {
        ConnectionRoom {
            permits: Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS))),
            idle: Arc::default(),
        }
    }

    /// A place for a connection. If there is none, the longest idle connection gives its place up; if all are at work,
    /// this waits.
    pub(super) async fn enter(&self) -> Arc<ConnectionPlace> {
        let mut entering = std::pin::pin!(self.permits.clone().acquire_owned());
        let mut may_evict = true;
        let permit = loop {
            let evicting = async {
                if may_evict { self.idle.evict_oldest().await } else { std::future::pending().await }
            };
            tokio::select! {
                biased;
                permit = &mut entering => break permit.expect("the room for connections is never closed"),
                () = evicting => may_evict = false,
            }
        };
        let place = ConnectionPlace {
            _permit: permit,
            idle: self.idle.clone(),
            ticket: Mutex::new(None),
            closed: CancellationToken::new(),
        };
        place.rest();
        Arc::new(place)
    }
}

/// Connections without a request, in the order in which they became idle.
#[derive(Default)]
struct IdleConnections {
    state: Mutex<IdleState>,
    became_idle: Notify,
}

#[derive(Default)]
struct IdleState {
    last_ticket: u64,
    oldest_first: BTreeMap<u64, (Instant, CancellationToken)>,
}

impl IdleConnections {
    fn lock(&self) -> MutexGuard<'_, IdleState> {
        // A panic elsewhere leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, closed: CancellationToken) -> u64 {
        let mut state = self.lock();
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        state.oldest_first.insert(ticket, (Instant::now(), closed));
        drop(state);
        self.became_idle.notify_one();
        ticket
    }

    fn remove(&self, ticket: u64) {
        self.lock().oldest_first.remove(&ticket);
    }

    /// Closes the connection that has been idle for longest, as soon as one has been for long enough.
    async fn evict_oldest(&self) {
        loop {
            let oldest = self.lock().oldest_first.first_key_value().map(|(_, (since, _))| *since);
            match oldest {
                None => self.became_idle.notified().await,
                Some(since) if since.elapsed() < IDLE_MIN => tokio::time::sleep_until(since + IDLE_MIN).await,
                Some(since) => {
                    let mut state = self.lock();
                    // Another request may have come since.
                    let is_same = state.oldest_first.first_entry().filter(|entry| entry.get().0 == since);
                    if let Some(entry) = is_same {
                        return entry.remove().1.cancel();
                    }
                }
            }
        }
    }
}

/// The place of one connection; dropping it makes room.
pub(super) struct ConnectionPlace {
    _permit: OwnedSemaphorePermit,
    idle: Arc<IdleConnections>,
    /// Its number among the idle ones; `None` while a request is at work.
    ticket: Mutex<Option<u64>>,
    /// Canceled when another connection gets the place.
    pub(super) closed: CancellationToken,
}

impl ConnectionPlace {
    /// Marks the connection as busy until the mark is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> BusyConnection {
        if let Some(ticket) = self.ticket().take() {
            self.idle.remove(ticket);
        }
        BusyConnection(self.clone())
    }

    fn rest(&self) {
        *self.ticket() = Some(self.idle.add(self.closed.clone()));
    }

    fn ticket(&self) -> MutexGuard<'_, Option<u64>> {
        self.ticket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket().take() {
            self.idle.remove(ticket);
        }
    }
}

/// A request of a connection that is at work.
pub(super) struct BusyConnection(Arc<ConnectionPlace>);

impl Drop for BusyConnection {
    fn drop(&mut self) {
        self.0.rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends a connection when its place is wanted, as the listener does.
    fn end_when_wanted(place: Arc<ConnectionPlace>) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { place.closed.cancelled().await })
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_makes_room_and_a_busy_one_never() {
        let room = ConnectionRoom::new(3);
        let (busy, idle, younger) = (room.enter().await, room.enter().await, room.enter().await);
        let working = busy.begin_request();
        let (begun, ending) = (Instant::now(), end_when_wanted(idle));
        let fourth = room.enter().await;
        ending.await.unwrap();
        assert!(begun.elapsed() >= IDLE_MIN, "it had no time for a request");
        assert!(!busy.closed.is_cancelled() && !younger.closed.is_cancelled());
        let _at_work = [younger.begin_request(), fourth.begin_request()];
        assert!(tokio::time::timeout(10 * IDLE_MIN, room.enter()).await.is_err(), "all are at work");
        drop(working);
        let ending = end_when_wanted(busy);
        room.enter().await;
        ending.await.unwrap();
    }
}
