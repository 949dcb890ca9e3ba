//! The slots of a worker: how many calls it answers at once. Between two bounds, their number doubles while work waits,
//! and halves when no more than half of them were taken for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

/// Looks at the load in the time after which slots are given up.
const LOOKS: u32 = 10;

/// How many slots a worker has at least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotRange {
    min: usize,
    max: usize,
}

impl SlotRange {
    pub(super) fn new(min: usize, max: usize) -> Self {
        let min = min.clamp(1, Semaphore::MAX_PERMITS);
        SlotRange { min, max: max.clamp(min, Semaphore::MAX_PERMITS) }
    }
}

/// Slots for pulled calls, and as many for pushed ones.
pub(super) struct Slots {
    range: SlotRange,
    pub(super) pull: SlotPool,
    pub(super) push: SlotPool,
    n: Mutex<usize>,
    changed: Notify,
}

/// The slots of one way in which calls come.
pub(super) struct SlotPool {
    free: Arc<Semaphore>,
    /// Slots that are given up as soon as they are free.
    owed: AtomicUsize,
}

impl Slots {
    pub(super) fn new(range: SlotRange) -> Self {
        let SlotRange { min, .. } = range;
        Slots {
            range,
            pull: SlotPool::new(min),
            push: SlotPool::new(min),
            n: Mutex::new(min),
            changed: Notify::new(),
        }
    }

    /// The number of slots now.
    pub(super) fn n(&self) -> usize {
        *self.lock()
    }

    /// The number of slots at most.
    pub(super) fn max(&self) -> usize {
        self.range.max
    }

    /// Waits until the number has changed.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// A claim got all that it asked for, or hardly a slot is free: more work may wait.
    pub(super) fn grow(&self) {
        let mut n = self.lock();
        let to = n.saturating_mul(2).min(self.range.max);
        self.set(&mut n, to);
    }

    /// No more than so many were taken for a while.
    fn shrink(&self, most_taken: usize) {
        let mut n = self.lock();
        if most_taken.saturating_mul(2) <= *n {
            let to = (*n / 2).max(self.range.min);
            self.set(&mut n, to);
        }
    }

    fn set(&self, n: &mut usize, to: usize) {
        if *n == to {
            return;
        }
        for pool in [&self.pull, &self.push] {
            pool.resize(*n, to);
        }
        *n = to;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        // A panic elsewhere leaves nothing half done here.
        self.n.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives up slots that were not needed for so long, for ever.
    pub(super) async fn shrink_when_idle(&self, idle: Duration, load: impl Fn() -> usize) {
        if self.range.min == self.range.max {
            return;
        }
        let mut looks = tokio::time::interval((idle / LOOKS).max(Duration::from_millis(1)));
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let mut most = 0;
            for _ in 0..LOOKS {
                looks.tick().await;
                most = most.max(load());
            }
            self.shrink(most);
        }
    }
}

impl SlotPool {
    fn new(n: usize) -> Self {
        SlotPool { free: Arc::new(Semaphore::new(n)), owed: AtomicUsize::new(0) }
    }

    fn resize(&self, from: usize, to: usize) {
        if to > from {
            // Slots that were to be given up stay.
            let kept = self.take_owed(to - from);
            self.free.add_permits(to - from - kept);
        } else {
            let forgotten = self.free.forget_permits(from - to);
            self.owed.fetch_add(from - to - forgotten, Ordering::SeqCst);
        }
    }

    /// Takes up to so many of the owed slots off the account, and says how many.
    fn take_owed(&self, most: usize) -> usize {
        let taken = self
            .owed
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |owed| Some(owed.saturating_sub(most)));
        taken.unwrap_or(0).min(most)
    }

    /// The number of free slots.
    pub(super) fn n_free(&self) -> usize {
        self.free.available_permits()
    }

    /// Waits for one free slot, and takes all that are free then, up to `most`.
    pub(super) async fn take_free(&self, most: usize) -> OwnedSemaphorePermit {
        let mut permits =
            Arc::clone(&self.free).acquire_owned().await.expect("the slots of a worker are never closed");
        let more = u32::try_from(self.n_free().min(most.saturating_sub(1))).unwrap_or(0);
        if let Ok(rest) = Arc::clone(&self.free).try_acquire_many_owned(more) {
            permits.merge(rest);
        }
        permits
    }

    /// Waits for a free slot.
    pub(super) async fn take(&self) -> SlotPermit<'_> {
        let permit = self.free.acquire().await.expect("the slots of a worker are never closed");
        SlotPermit { pool: self, permit: Some(permit) }
    }

    /// Returns slots, but for those that are given up.
    pub(super) fn put_back(&self, mut permits: OwnedSemaphorePermit) {
        let owed = self.take_owed(permits.num_permits());
        if let Some(given_up) = permits.split(owed) {
            given_up.forget();
        }
    }
}

/// A slot, free again when it is dropped.
pub(super) struct SlotPermit<'p> {
    pool: &'p SlotPool,
    permit: Option<SemaphorePermit<'p>>,
}

impl Drop for SlotPermit<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take()
            && self.pool.take_owed(1) == 1
        {
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn slots_double_up_to_the_most_and_halve_down_to_the_least() {
        let slots = Slots::new(SlotRange::new(2, 10));
        let seen: Vec<usize> = (0..4)
            .map(|_| {
                slots.grow();
                slots.n()
            })
            .collect();
        assert_eq!(seen, [4, 8, 10, 10]);
        assert_eq!(slots.pull.n_free(), 10);
        // Busy slots are kept.
        slots.shrink(6);
        assert_eq!(slots.n(), 10);
        for expected in [5, 2, 2] {
            slots.shrink(0);
            assert_eq!((slots.n(), slots.push.n_free()), (expected, expected));
        }
    }

    #[tokio::test]
    async fn a_taken_slot_is_given_up_when_it_is_free() {
        let slots = Slots::new(SlotRange::new(1, 4));
        slots.grow();
        slots.grow();
        let claimed = slots.pull.take_free(500).await;
        let pushed = slots.push.take().await;
        assert_eq!((slots.pull.n_free(), slots.push.n_free()), (0, 3));
        slots.shrink(1);
        assert_eq!((slots.n(), slots.push.n_free()), (2, 1));
        slots.pull.put_back(claimed);
        drop(pushed);
        assert_eq!((slots.pull.n_free(), slots.push.n_free()), (2, 2));
    }

    #[tokio::test]
    async fn slots_that_were_to_go_stay_when_work_comes() {
        let slots = Slots::new(SlotRange::new(1, 4));
        slots.grow();
        slots.grow();
        let claimed = slots.pull.take_free(500).await;
        slots.shrink(0);
        slots.shrink(0);
        slots.grow();
        slots.pull.put_back(claimed);
        assert_eq!((slots.n(), slots.pull.n_free()), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_worker_gives_its_slots_up() {
        let slots = Slots::new(SlotRange::new(1, 8));
        (0..3).for_each(|_| slots.grow());
        let load = AtomicUsize::new(8);
        let idle = slots.shrink_when_idle(Duration::from_secs(10), || load.load(Ordering::SeqCst));
        tokio::pin!(idle);
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut idle).await.is_err());
        assert_eq!(slots.n(), 8);
        load.store(0, Ordering::SeqCst);
        assert!(tokio::time::timeout(Duration::from_secs(60), &mut idle).await.is_err());
        assert_eq!(slots.n(), 1);
    }
}
