//! Bodies of requests that are still coming, with their progress. When others wait for memory or for a connection, the
//! slowest body is ended: a client that sends slowly holds nothing that another client needs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Bytes in a second at which a body is never slow.
const QUICK_RATE: u64 = 64 << 10;
/// How far a body has fallen behind that rate before it counts as slow. It never gets ahead: a body that came quickly and
/// then stops is slow as soon as any other.
const PATIENCE: Duration = Duration::from_secs(2);

/// All bodies that are still coming.
#[derive(Debug, Default)]
pub(super) struct ArrivingBodies {
    state: Mutex<ArrivingState>,
}

#[derive(Debug, Default)]
struct ArrivingState {
    last: u64,
    bodies: BTreeMap<u64, BodyProgress>,
}

#[derive(Debug)]
struct BodyProgress {
    n_bytes: usize,
    /// How far it is behind. Only waits for its client count, not those for memory.
    behind: Duration,
    /// The begin of the present wait.
    since: Option<Instant>,
    ended: CancellationToken,
}

impl BodyProgress {
    fn behind(&self) -> Duration {
        self.behind + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn came(&mut self, n_bytes: usize) {
        let more = n_bytes.saturating_sub(self.n_bytes) as u64;
        let earned = Duration::from_millis(more.saturating_mul(1_000) / QUICK_RATE);
        self.behind = self.behind.saturating_sub(earned);
        self.n_bytes = n_bytes;
    }
}

impl ArrivingBodies {
    fn lock(&self) -> MutexGuard<'_, ArrivingState> {
        // A panic elsewhere leaves nothing half done here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(self: &Arc<Self>) -> ArrivingBody {
        let mut state = self.lock();
        state.last += 1;
        let (number, ended) = (state.last, CancellationToken::new());
        let progress = BodyProgress { n_bytes: 0, behind: Duration::ZERO, since: None, ended: ended.clone() };
        state.bodies.insert(number, progress);
        ArrivingBody { of: self.clone(), number, ended }
    }

    /// Ends the slowest body among those of which so many bytes have come, if there is a slow one.
    pub(super) fn end_slowest(&self, n_bytes: &RangeInclusive<usize>) -> bool {
        let mut state = self.lock();
        let slow = state.bodies.iter().filter(|(_, body)| {
            body.since.is_some() && n_bytes.contains(&body.n_bytes) && body.behind() >= PATIENCE
        });
        let Some(slowest) = slow.max_by_key(|(_, body)| body.behind()).map(|(number, _)| *number) else {
            return false;
        };
        if let Some(body) = state.bodies.remove(&slowest) {
            body.ended.cancel();
        }
        true
    }
}

/// One body that is still coming, until it is dropped.
#[derive(Debug)]
pub struct ArrivingBody {
    of: Arc<ArrivingBodies>,
    number: u64,
    ended: CancellationToken,
}

impl ArrivingBody {
    /// Waits for the client until `coming` is done; `None` if the body was ended because it is the slowest.
    pub async fn wait_for<T>(&self, coming: impl Future<Output = T>) -> Option<T> {
        self.update(|body| body.since = Some(Instant::now()));
        let came = self.ended.run_until_cancelled(coming).await;
        self.update(|body| {
            body.behind = body.behind();
            body.since = None;
        });
        came
    }

    /// So many bytes have come in all, and hold memory.
    pub fn came(&self, n_bytes: usize) {
        self.update(|body| body.came(n_bytes));
    }

    fn update(&self, change: impl FnOnce(&mut BodyProgress)) {
        if let Some(body) = self.of.lock().bodies.get_mut(&self.number) {
            change(body);
        }
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        self.of.lock().bodies.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_slowest_body_is_ended_and_one_that_waits_for_the_server_never() {
        const ANY: RangeInclusive<usize> = 0..=usize::MAX;
        let all = Arc::<ArrivingBodies>::default();
        let (slow, slower, full) = (all.add(), all.add(), all.add());
        let pause = async |body: &ArrivingBody, of: Duration, n_bytes: usize| {
            body.wait_for(tokio::time::sleep(of)).await.unwrap();
            body.came(n_bytes);
        };
        full.came(10);
        // A large part at once is no credit for later.
        pause(&slower, Duration::from_millis(1), 10 << 20).await;
        pause(&slower, PATIENCE / 2, (10 << 20) + 1).await;
        pause(&slow, PATIENCE + PATIENCE / 4, 64 << 10).await;
        assert!(!all.end_slowest(&ANY), "none of them waits for its client");
        let forever = std::future::pending::<()>;
        let mut waits =
            Box::pin(async { tokio::join!(slow.wait_for(forever()), slower.wait_for(forever())) });
        let begun = tokio::time::timeout(Duration::ZERO, &mut waits).await;
        assert!(begun.is_err() && !all.end_slowest(&ANY), "none has been slow for long enough");
        assert!(tokio::time::timeout(PATIENCE / 2, &mut waits).await.is_err());
        assert!(!all.end_slowest(&(20 << 20..=usize::MAX)), "none has so many bytes");
        for expected in [&slow, &slower] {
            assert!(!expected.ended.is_cancelled());
            assert!(all.end_slowest(&ANY));
            assert!(expected.ended.is_cancelled());
        }
        assert_eq!((&mut waits).await, (None, None));
        drop(waits);
        assert!(!all.end_slowest(&ANY) && full.wait_for(async {}).await.is_some());
        drop((slow, slower, full));
        assert!(all.lock().bodies.is_empty());
    }
}
