//! Other live servers on the same store, and the order in which servers do the work that all of them see.
//!
//! Everything that all servers see when it is due (a timer, a lease, a slot of a schedule) is first done by one of
//! them, which each works out for itself; the next does it if that has not happened a moment later. Nothing depends on
//! it: two that do the same thing meet in the store, and one of them finds that it is done.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use uuid::Uuid;
use windlass_engine::counter::Epoch;

/// How long each server leaves work to the server before it.
const TURN_MS: u64 = 500;
/// However many there are, nothing is left to others for longer.
const TURN_MS_MAX: u64 = 2_000;

/// The servers that live, as far as this one knows.
pub(crate) struct Peers {
    own: Epoch,
    alive: RwLock<BTreeSet<Epoch>>,
}

impl Peers {
    /// Without other servers.
    pub(crate) fn new(own: Epoch) -> Self {
        Peers { own, alive: RwLock::new(BTreeSet::from([own])) }
    }

    /// Sets the live servers; `true` = a server has gone.
    pub(crate) fn set(&self, mut alive: BTreeSet<Epoch>) -> bool {
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
    fn every_id_belongs_to_one_server_first() {
        let epochs = BTreeSet::from([Epoch(3), Epoch(7), Epoch(9)]);
        let servers: Vec<Peers> = epochs.iter().map(|epoch| Peers::new(*epoch)).collect();
        for server in &servers {
            assert_eq!(server.delay_ms(Uuid::from_u128(5)), 0, "a server that knows no other waits for none");
            assert!(!server.set(epochs.clone()));
        }
        for n in 0..20 {
            let mut delays: Vec<u64> =
                servers.iter().map(|server| server.delay_ms(Uuid::from_u128(n))).collect();
            delays.sort_unstable();
            assert_eq!(delays, [0, TURN_MS, 2 * TURN_MS]);
        }
    }

    #[test]
    fn a_server_that_goes_is_noticed_once() {
        let peers = Peers::new(Epoch(2));
        assert!(!peers.set(BTreeSet::from([Epoch(1), Epoch(2)])));
        assert!(peers.set(BTreeSet::new()));
        assert!(!peers.set(BTreeSet::new()));
        assert_eq!(peers.place(), (0, 1));
    }
}
