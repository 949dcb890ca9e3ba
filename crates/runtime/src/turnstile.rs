//! One after the other, by name: those with the same name wait for one another, the others hardly do.

use std::hash::{DefaultHasher, Hash, Hasher};

use tokio::sync::{Mutex, MutexGuard};

/// Names are spread over so many locks.
const LOCKS: usize = 64;

/// Locks that names are spread over: however many names there are, this is all that is kept.
pub(crate) struct Turnstiles(Vec<Mutex<()>>);

impl Default for Turnstiles {
    fn default() -> Self {
        Turnstiles(std::iter::repeat_with(Mutex::default).take(LOCKS).collect())
    }
}

impl Turnstiles {
    /// Waits until nobody else has this name.
    pub(crate) async fn pass(&self, name: impl Hash) -> MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % LOCKS as u64).unwrap_or_default();
        self.0[at].lock().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_same_name_waits_and_has_its_turn_afterwards() {
        let turnstiles = Turnstiles::default();
        let first = turnstiles.pass(("account", "key")).await;
        let second = tokio::time::timeout(Duration::from_millis(10), turnstiles.pass(("account", "key")));
        assert!(second.await.is_err());
        drop(first);
        drop(turnstiles.pass(("account", "key")).await);
    }
}
