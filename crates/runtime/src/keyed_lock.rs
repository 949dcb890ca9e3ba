//! Locks by key: tasks with the same key wait for one another. Keys share a fixed number of locks, so the memory is
//! bounded.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

/// The number of locks that all keys share.
const LOCKS: usize = 64;

/// A fixed set of locks; a key uses the one of its hash.
pub(crate) struct KeyedLocks(Vec<Mutex<()>>);

impl Default for KeyedLocks {
    fn default() -> Self {
        KeyedLocks(std::iter::repeat_with(Mutex::default).take(LOCKS).collect())
    }
}

impl KeyedLocks {
    /// Waits until the key is free.
    pub(crate) async fn lock(&self, key: impl Hash) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default();
        self.0[at].lock().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_same_key_waits_until_the_lock_is_free() {
        let locks = KeyedLocks::default();
        let first = locks.lock(("account", "key")).await;
        let second = tokio::time::timeout(Duration::from_millis(10), locks.lock(("account", "key")));
        assert!(second.await.is_err());
        drop(first);
        drop(locks.lock(("account", "key")).await);
    }
}
