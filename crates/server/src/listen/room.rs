//! Room for connections. When all places are taken and another connection waits, the one that has been idle for longest
//! is closed; if none is idle, the slowest body is ended. Neither keeps a request out.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_runtime::body_budget::BodyBudget;

/// How long a connection keeps its place without a request: long enough for a request that is on its way, and for the
/// rest of a response.
const IDLE_MIN: Duration = Duration::from_secs(1);
/// How often bodies are looked at while a connection waits and none is idle.
const LOOK: Duration = Duration::from_millis(50);

/// Places for connections.
pub(super) struct ConnectionRoom {
    permits: Arc<Semaphore>,
    idle: Arc<IdleConnections>,
    bodies: BodyBudget,
}

impl ConnectionRoom {
    pub(super) fn new(n: usize, bodies: BodyBudget) -> Self {
        ConnectionRoom {
            permits: Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS))),
            idle: Arc::default(),
            bodies,
        }
    }

    /// A place for a connection. If there is none, the longest idle connection gives its place up, or the one with the
    /// slowest body; if all are at work, this waits.
    pub(super) async fn enter(&self) -> Arc<ConnectionPlace> {
        let permit = tokio::select! {
            biased;
            permit = self.permits.clone().acquire_owned() => {
                permit.expect("the room for connections is never closed")
            }
            never = self.make_room() => match never {},
        };
        let place = ConnectionPlace {
            _permit: permit,
            idle: self.idle.clone(),
            use_state: Mutex::new(PlaceUse { n_requests: 0, idle: None }),
            closed: CancellationToken::new(),
        };
        place.use_state().idle = Some(place.idle.add(place.closed.clone()));
        Arc::new(place)
    }

    /// Takes places away until it is dropped.
    async fn make_room(&self) -> Infallible {
        loop {
            self.idle.evict_oldest(&self.bodies).await;
            // The connection ends soon; a client that goes on with its request may keep it, idle, for a while.
            tokio::time::sleep(IDLE_MIN).await;
        }
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

    fn add(&self, closed: CancellationToken) -> (u64, Instant) {
        let now = Instant::now();
        let mut state = self.lock();
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        state.oldest_first.insert(ticket, (now, closed));
        drop(state);
        self.became_idle.notify_one();
        (ticket, now)
    }

    fn remove(&self, ticket: u64) {
        self.lock().oldest_first.remove(&ticket);
    }

    /// Closes the connection that has been idle for longest, as soon as one has been for long enough. While none is idle,
    /// ends the slowest body instead: the end of its connection follows the response.
    async fn evict_oldest(&self, bodies: &BodyBudget) {
        loop {
            let oldest = self.lock().oldest_first.first_key_value().map(|(_, (since, _))| *since);
            match oldest {
                None if bodies.end_slowest() => return,
                None => drop(tokio::time::timeout(LOOK, self.became_idle.notified()).await),
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
    use_state: Mutex<PlaceUse>,
    /// Canceled when another connection gets the place.
    pub(super) closed: CancellationToken,
}

/// The use of a place at this moment.
struct PlaceUse {
    /// Requests at work; HTTP/2 has several at once.
    n_requests: usize,
    /// Its number among the idle ones and the time since when; `None` while a request is at work.
    idle: Option<(u64, Instant)>,
}

impl ConnectionPlace {
    /// Marks the connection as busy until the mark is dropped.
    pub(super) fn begin_request(self: &Arc<Self>) -> BusyConnection {
        let mut now = self.use_state();
        now.n_requests += 1;
        if let Some((ticket, _)) = now.idle.take() {
            self.idle.remove(ticket);
        }
        BusyConnection(self.clone())
    }

    /// Waits until there was no request for as long as this.
    pub(super) async fn idle_for(&self, at_least: Duration) {
        loop {
            let since = self.use_state().idle.map(|(_, since)| since);
            let until = since.unwrap_or_else(Instant::now) + at_least;
            if since.is_some() && until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn use_state(&self) -> MutexGuard<'_, PlaceUse> {
        self.use_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        if let Some((ticket, _)) = self.use_state().idle.take() {
            self.idle.remove(ticket);
        }
    }
}

/// A request of a connection that is at work.
pub(super) struct BusyConnection(Arc<ConnectionPlace>);

impl Drop for BusyConnection {
    fn drop(&mut self) {
        let mut now = self.0.use_state();
        now.n_requests -= 1;
        if now.n_requests == 0 {
            now.idle = Some(self.0.idle.add(self.0.closed.clone()));
        }
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
        let room = ConnectionRoom::new(3, BodyBudget::default());
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

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_after_the_last_of_its_requests() {
        let room = ConnectionRoom::new(1, BodyBudget::default());
        let place = room.enter().await;
        let (first, second) = (place.begin_request(), place.begin_request());
        drop(first);
        let idle = |at_least| tokio::time::timeout(10 * at_least, place.idle_for(at_least));
        assert!(idle(IDLE_MIN).await.is_err(), "a request is at work");
        assert!(tokio::time::timeout(10 * IDLE_MIN, room.enter()).await.is_err(), "it made room");
        drop(second);
        let begun = Instant::now();
        idle(IDLE_MIN).await.expect("no request is at work");
        assert!(begun.elapsed() >= IDLE_MIN);
    }

    #[tokio::test(start_paused = true)]
    async fn the_slowest_body_makes_room_while_no_connection_is_idle() {
        let bodies = BodyBudget::default();
        let room = ConnectionRoom::new(2, bodies.clone());
        let (slow, quick) = (room.enter().await, room.enter().await);
        let (slow_work, _quick_work) = (slow.begin_request(), quick.begin_request());
        let (slow_body, quick_body) = (bodies.arrive(), bodies.arrive());
        let quick_body = tokio::spawn(async move {
            for n_parts in 1.. {
                let Some(()) = quick_body.wait_for(tokio::time::sleep(IDLE_MIN)).await else { return };
                quick_body.came(n_parts << 20);
            }
        });
        let ending = tokio::spawn(async move {
            let come = slow_body.wait_for(std::future::pending::<()>()).await;
            drop((slow_work, slow));
            come
        });
        tokio::time::timeout(10 * IDLE_MIN, room.enter()).await.expect("the slow body kept its place");
        assert_eq!(ending.await.unwrap(), None);
        assert!(!quick_body.is_finished());
    }
}
