//! The memory of all bodies in flight: bodies of requests, answers of push workers, and the trees of values that are
//! built from them. Each takes permits by its weight. Small bodies have a part of their own, so that large ones never
//! keep them waiting.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Weights are counted in units of so many bytes.
const UNIT_BYTES: usize = 1 << 10;
/// All bodies and trees up to [`SMALL_UNITS`] together.
const ALL_SMALL_UNITS: usize = 48 << 10;
/// The rest of all others together.
const ALL_LARGE_UNITS: usize = 336 << 10;
/// A body with its tree up to this weight is small.
const SMALL_UNITS: usize = 256;
/// How long a body waits for memory. A body that waits holds the memory of the bytes that it has.
const WAIT: Duration = Duration::from_secs(5);

/// The memory of all bodies in flight. Cheap to clone.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    small: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

impl Default for BodyBudget {
    fn default() -> Self {
        BodyBudget {
            small: Arc::new(Semaphore::new(ALL_SMALL_UNITS)),
            large: Arc::new(Semaphore::new(ALL_LARGE_UNITS)),
        }
    }
}

/// The memory that one body holds; given back when it is dropped.
#[derive(Debug)]
pub struct BodyMemory {
    budget: BodyBudget,
    small: Option<OwnedSemaphorePermit>,
    large: Option<OwnedSemaphorePermit>,
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

impl BodyBudget {
    /// The memory of a body of which nothing has come yet.
    pub fn begin(&self) -> BodyMemory {
        BodyMemory { budget: self.clone(), small: None, large: None }
    }
}

impl BodyMemory {
    /// Holds memory for so many bytes; what it holds already counts. Waits a while if others have it.
    pub async fn grow_to(&mut self, bytes: usize) -> Result<(), NoBodyMemory> {
        let units = bytes.div_ceil(UNIT_BYTES);
        if units > ALL_LARGE_UNITS {
            return Err(NoBodyMemory::TooLarge);
        }
        let (small, large) = (units.min(SMALL_UNITS), units.saturating_sub(SMALL_UNITS));
        hold(&mut self.small, &self.budget.small, small).await?;
        hold(&mut self.large, &self.budget.large, large).await
    }
}

/// Takes as many permits as are missing.
async fn hold(
    held: &mut Option<OwnedSemaphorePermit>,
    from: &Arc<Semaphore>,
    units: usize,
) -> Result<(), NoBodyMemory> {
    let has = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
    if units <= has {
        return Ok(());
    }
    let more = u32::try_from(units - has).map_err(|_| NoBodyMemory::TooLarge)?;
    let more = match from.clone().try_acquire_many_owned(more) {
        Ok(more) => more,
        Err(_) => match tokio::time::timeout(WAIT, from.clone().acquire_many_owned(more)).await {
            Ok(Ok(more)) => more,
            Ok(Err(_)) | Err(_) => return Err(NoBodyMemory::Busy),
        },
    };
    match held {
        Some(held) => held.merge(more),
        None => *held = Some(more),
    }
    Ok(())
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
}
