//! Who else serves the same store, and whose turn it is to do what all of them could.
//!
//! Everything that all servers see when it is due (a timer, a lease, a slot of a schedule) is first done by one of
//! them, which each works out for itself; the next does it if that has not happened a moment later. Nothing depends on
//! it: two that do the same thing meet in the store, and one of them finds that it is done.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use uuid::Uuid;

/// How long each leaves something to the one whose turn is before its own.
const TURN_MS: u64 = 500;
/// However many there are, nothing is left to others for longer.
const TURN_MS_MAX: u64 = 2_000;

/// The servers that live, as far as this one knows.
pub(crate) struct Peers {
    own: u64,
    alive: RwLock<BTreeSet<u64>>,
}

impl Peers {
    /// Knows of nobody else.
    pub(crate) fn new(own: u64) -> Self {
        Peers { own, alive: RwLock::new(BTreeSet::from([own])) }
    }

    /// These live now; whether somebody has gone.
    pub(crate) fn set(&self, mut alive: BTreeSet<u64>) -> bool {
        alive.insert(self.own);
        let mut known = self.alive.write().unwrap_or_else(PoisonError::into_inner);
        let has_gone = !known.is_subset(&alive);
        *known = alive;
        has_gone
    }

    /// Where this server stands among all, and how many there are.
    pub(crate) fn place(&self) -> (usize, usize) {
        let alive = self.alive.read().unwrap_or_else(PoisonError::into_inner);
        (alive.range(..self.own).count(), alive.len())
    }

    /// For how long something is left to other servers.
    pub(crate) fn delay_ms(&self, id: Uuid) -> u64 {
        let (own, n) = self.place();
        let (own, n) = (own as u128, (n as u128).max(1));
        let turn = (own + n - id.as_u128() % n) % n;
        u64::try_from(turn).unwrap_or(u64::MAX).saturating_mul(TURN_MS).min(TURN_MS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_the_turn_of_one_server_first() {
        let lives = BTreeSet::from([3, 7, 9]);
        let servers: Vec<Peers> = lives.iter().map(|life| Peers::new(*life)).collect();
        for server in &servers {
            assert_eq!(server.delay_ms(Uuid::from_u128(5)), 0, "who knows of nobody waits for nobody");
            assert!(!server.set(lives.clone()));
        }
        for n in 0..20 {
            let mut delays: Vec<u64> =
                servers.iter().map(|server| server.delay_ms(Uuid::from_u128(n))).collect();
            delays.sort_unstable();
            assert_eq!(delays, [0, TURN_MS, 2 * TURN_MS]);
        }
    }

    #[test]
    fn whoever_goes_is_noticed_once() {
        let peers = Peers::new(2);
        assert!(!peers.set(BTreeSet::from([1, 2])));
        assert!(peers.set(BTreeSet::new()));
        assert!(!peers.set(BTreeSet::new()));
        assert_eq!(peers.place(), (0, 1));
    }
}
