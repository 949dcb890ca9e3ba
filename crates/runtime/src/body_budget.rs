//! The memory of all bodies in flight: bodies of requests, answers of push workers, and the trees of values that are
//! built from them. Each takes permits by its weight. There are three pools, so that neither large bodies nor clients
//! that send slowly keep small requests waiting: small bodies while they come, small bodies with their trees once they
//! have come, and all larger ones. The smallest take no permits, so that a cancel or a pause always finds memory.

mod arriving;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use arriving::ArrivingBodies;

pub use arriving::ArrivingBody;

/// Weights are counted in units of so many bytes.
const UNIT_BYTES: usize = 1 << 10;
/// A body up to this weight takes no permits: all connections of a server together hold 40 MiB of them.
const FREE_UNITS: usize = 4;
/// A body up to this weight is small.
const SMALL_UNITS: usize = 256;
/// All small bodies that are still coming.
const ALL_ARRIVING_UNITS: usize = 24 << 10;
/// All small bodies that have come, with their trees.
const ALL_SMALL_UNITS: usize = 24 << 10;
/// All others.
const ALL_LARGE_UNITS: usize = 336 << 10;
/// How long a body waits for memory. A body that waits holds the memory of the bytes that it has.
const WAIT: Duration = Duration::from_secs(5);
/// The time between two ends of slow bodies while others wait for their memory.
const END_PAUSE: Duration = Duration::from_millis(10);

/// The memory of all bodies in flight. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BodyBudget(Arc<BodyPools>);

#[derive(Debug)]
struct BodyPools {
    arriving: BodyPool,
    small: BodyPool,
    large: BodyPool,
    /// The bodies that are still coming; some of them hold memory of `arriving` or `large`.
    coming: Arc<ArrivingBodies>,
}

#[derive(Debug)]
struct BodyPool {
    permits: Arc<Semaphore>,
    /// The bytes of the bodies that hold this memory while they come; `None` if none does.
    of_coming: Option<RangeInclusive<usize>>,
    /// The turn of the waiting body that ends slow ones.
    turn: Mutex<()>,
}

/// The pool that a body takes its permits from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PoolKind {
    Arriving,
    Small,
    Large,
}

/// The memory that one body holds; given back when it is dropped.
#[derive(Debug)]
pub struct BodyMemory {
    budget: BodyBudget,
    n_bytes: usize,
    held: Option<(PoolKind, OwnedSemaphorePermit)>,
}

/// There was no memory for the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoBodyMemory {
    /// Other bodies had all of it for too long.
    #[error("too many large bodies are in memory at once: try again in a second")]
    Busy,
    /// The body alone is more than all of it.
    #[error(
        "the body with its values would take more memory than all bodies may together: send less at once"
    )]
    TooLarge,
}

impl Default for BodyBudget {
    fn default() -> Self {
        let (free, small) = (FREE_UNITS * UNIT_BYTES, SMALL_UNITS * UNIT_BYTES);
        BodyBudget(Arc::new(BodyPools {
            arriving: BodyPool::new(ALL_ARRIVING_UNITS, Some(free + 1..=small)),
            small: BodyPool::new(ALL_SMALL_UNITS, None),
            large: BodyPool::new(ALL_LARGE_UNITS, Some(small + 1..=usize::MAX)),
            coming: Arc::default(),
        }))
    }
}

impl BodyBudget {
    /// The memory of a body of which nothing has come yet.
    pub fn begin(&self) -> BodyMemory {
        BodyMemory { budget: self.clone(), n_bytes: 0, held: None }
    }

    /// Registers the body of a request that is about to come: it is ended if it is the slowest and others wait.
    pub fn arrive(&self) -> ArrivingBody {
        self.0.coming.add()
    }

    /// Ends the slowest of the bodies that are still coming, if the server has waited for a while for its bytes.
    pub fn end_slowest(&self) -> bool {
        self.0.coming.end_slowest(&(0..=usize::MAX))
    }

    async fn take(&self, pool: PoolKind, units: usize) -> Result<OwnedSemaphorePermit, NoBodyMemory> {
        let pool = match pool {
            PoolKind::Arriving => &self.0.arriving,
            PoolKind::Small => &self.0.small,
            PoolKind::Large => &self.0.large,
        };
        let units = u32::try_from(units).map_err(|_| NoBodyMemory::TooLarge)?;
        if let Ok(permit) = pool.permits.clone().try_acquire_many_owned(units) {
            return Ok(permit);
        }
        let taking = tokio::time::timeout(WAIT, pool.permits.clone().acquire_many_owned(units));
        tokio::select! {
            biased;
            taken = taking => match taken {
                Ok(Ok(permit)) => Ok(permit),
                Ok(Err(_)) | Err(_) => Err(NoBodyMemory::Busy),
            },
            never = self.end_slow_bodies(pool) => match never {},
        }
    }

    /// Ends the slow bodies that hold memory of a pool, the slowest first. One of those that wait does it for all.
    async fn end_slow_bodies(&self, pool: &BodyPool) -> std::convert::Infallible {
        let Some(n_bytes) = &pool.of_coming else { return std::future::pending().await };
        let _turn = pool.turn.lock().await;
        loop {
            self.0.coming.end_slowest(n_bytes);
            tokio::time::sleep(END_PAUSE).await;
        }
    }
}

impl BodyPool {
    fn new(units: usize, of_coming: Option<RangeInclusive<usize>>) -> Self {
        BodyPool { permits: Arc::new(Semaphore::new(units)), of_coming, turn: Mutex::new(()) }
    }
}

impl BodyMemory {
    /// Holds memory for so many bytes of a body that is still coming; what it holds already counts. Waits a while if
    /// others have it.
    pub async fn grow_to(&mut self, n_bytes: usize) -> Result<(), NoBodyMemory> {
        self.hold(n_bytes, PoolKind::Arriving).await
    }

    /// Holds memory for so many bytes of a body that has come, with its tree.
    pub async fn complete(&mut self, n_bytes: usize) -> Result<(), NoBodyMemory> {
        self.hold(n_bytes, PoolKind::Small).await
    }

    /// Holds so many bytes more for a body that has come.
    pub async fn add(&mut self, n_bytes: usize) -> Result<(), NoBodyMemory> {
        self.complete(self.n_bytes.saturating_add(n_bytes)).await
    }

    /// Holds memory for the few bytes that a request keeps while it waits, and gives the rest back. They are not among
    /// the small ones, which never wait for clients.
    pub async fn keep(&mut self, n_bytes: usize) -> Result<(), NoBodyMemory> {
        self.held = None;
        self.hold(n_bytes, PoolKind::Large).await
    }

    /// Moves the whole weight to its pool; up to the weight of a small body this is the given one.
    async fn hold(&mut self, n_bytes: usize, if_small: PoolKind) -> Result<(), NoBodyMemory> {
        self.n_bytes = n_bytes;
        let units = n_bytes.div_ceil(UNIT_BYTES);
        if units <= FREE_UNITS {
            self.held = None;
            return Ok(());
        }
        if units > ALL_LARGE_UNITS {
            return Err(NoBodyMemory::TooLarge);
        }
        let pool = if units <= SMALL_UNITS { if_small } else { PoolKind::Large };
        match &mut self.held {
            Some((held, permit)) if *held == pool => {
                let has = permit.num_permits();
                if units > has {
                    permit.merge(self.budget.take(pool, units - has).await?);
                }
            }
            // The memory that it has is given back once it has the other.
            Some(_) | None => self.held = Some((pool, self.budget.take(pool, units).await?)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn large_bodies_wait_for_memory_and_small_ones_do_not() {
        let budget = BodyBudget::default();
        let (mut first, mut second) = (budget.begin(), budget.begin());
        first.grow_to(1 << 20).await.unwrap();
        first.grow_to(300 << 20).await.unwrap();
        assert_eq!(second.grow_to(100 << 20).await, Err(NoBodyMemory::Busy));
        assert!(budget.begin().grow_to(100 << 10).await.is_ok(), "small ones have their own part");
        let waiting = tokio::spawn(async move { second.grow_to(100 << 20).await });
        tokio::task::yield_now().await;
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(()));
        let mut all = budget.begin();
        all.grow_to(336 << 20).await.unwrap();
        assert_eq!(all.grow_to((336 << 20) + 1).await, Err(NoBodyMemory::TooLarge));
    }

    #[tokio::test(start_paused = true)]
    async fn large_bodies_hold_no_memory_of_small_ones() {
        let budget = BodyBudget::default();
        let mut large = Vec::new();
        for _ in 0..300 {
            let mut memory = budget.begin();
            memory.grow_to(200 << 10).await.unwrap();
            memory.grow_to(257 << 10).await.unwrap();
            large.push(memory);
        }
        let mut small = budget.begin();
        small.grow_to(256 << 10).await.unwrap();
        small.complete(256 << 10).await.unwrap();
        assert_eq!(budget.0.arriving.permits.available_permits(), ALL_ARRIVING_UNITS);
        drop((large, small));
        assert_eq!(budget.0.small.permits.available_permits(), ALL_SMALL_UNITS);
        assert_eq!(budget.0.large.permits.available_permits(), ALL_LARGE_UNITS);
    }

    #[tokio::test(start_paused = true)]
    async fn the_smallest_bodies_need_no_memory_and_the_others_that_of_slow_ones() {
        let budget = BodyBudget::default();
        let slow = budget.arrive();
        let mut memory = budget.begin();
        let mut others = Vec::new();
        for _ in 0..96 {
            let mut other = budget.begin();
            other.grow_to(255 << 10).await.unwrap();
            others.push(other);
        }
        memory.grow_to(96 << 10).await.unwrap();
        slow.came(96 << 10);
        assert!(budget.begin().grow_to(4 << 10).await.is_ok(), "a cancel needs no memory");
        assert!(budget.begin().complete(4 << 10).await.is_ok());
        assert!(budget.begin().complete(200 << 10).await.is_ok(), "slow bodies hold none of this");
        let mut next = budget.begin();
        let ended = async {
            assert_eq!(slow.wait_for(std::future::pending::<()>()).await, None);
            drop(memory);
        };
        let (taken, ()) = tokio::join!(next.grow_to(10 << 10), ended);
        assert_eq!(taken, Ok(()));
    }
}
