//! Registrations that this server refused because of the address: a worker that is missing from the list is found here.

use std::collections::VecDeque;

use windlass_engine::time::Timestamp;

/// Refusals that are remembered.
const REMEMBERED_MAX: usize = 100;
/// Characters of an id or an address that are remembered.
const CHARS_MAX: usize = 200;

/// A registration that was refused because of the address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRegistration {
    pub id: String,
    pub url: String,
    pub reason: String,
    pub at: Timestamp,
}

/// The latest refusals, one for each id, the latest one first.
#[derive(Debug, Default)]
pub(super) struct RefusedRegistrations {
    latest: VecDeque<RefusedRegistration>,
}

impl RefusedRegistrations {
    pub(super) fn add(&mut self, id: &str, url: &str, reason: &str, at: Timestamp) {
        let cut = |text: &str, max: usize| text.chars().take(max).collect::<String>();
        let (id, url) = (cut(id, CHARS_MAX), cut(url, CHARS_MAX));
        self.forget(&id);
        self.latest.push_front(RefusedRegistration { id, url, reason: cut(reason, 2 * CHARS_MAX), at });
        self.latest.truncate(REMEMBERED_MAX);
    }

    /// The worker was registered after all.
    pub(super) fn forget(&mut self, id: &str) {
        self.latest.retain(|refused| refused.id != id);
    }

    pub(super) fn list(&self) -> Vec<RefusedRegistration> {
        self.latest.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_refusal_of_each_worker_is_remembered_until_it_is_registered() {
        let mut refused = RefusedRegistrations::default();
        let ids = |refused: &RefusedRegistrations| {
            refused.list().into_iter().map(|refused| refused.id).collect::<Vec<_>>()
        };
        for (n, id) in ["a", "b", "a"].into_iter().enumerate() {
            refused.add(id, "http://10.0.0.1", "private", Timestamp(n as i64));
        }
        assert_eq!(ids(&refused), ["a", "b"]);
        assert_eq!(refused.list()[0].at, Timestamp(2));
        refused.forget("a");
        assert_eq!(ids(&refused), ["b"]);
        (0..1_000).for_each(|n| refused.add(&format!("w{n}{}", "x".repeat(9_000)), "", "", Timestamp(0)));
        assert_eq!(refused.list().len(), REMEMBERED_MAX);
        assert!(refused.list().iter().all(|refused| refused.id.len() <= CHARS_MAX));
    }
}
