//! Several servers hand out jobs of the same store: each begins with other ones, so that they seldom take the same.

use windlass_engine::id::JobId;

use super::Index;
use crate::dispatch::Query;
use crate::list::{Key, List};

/// Jobs that are looked at for one of the own share.
const LOOK_MAX: usize = 256;
/// A job of another's share waits no longer than this for those of the own.
const WAIT_MS: u64 = 1_000;

/// One share of so many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) at: usize,
    pub(crate) of: usize,
}

impl Default for Share {
    fn default() -> Self {
        Share { at: 0, of: 1 }
    }
}

impl Share {
    fn has(self, id: JobId) -> bool {
        id.uuid().as_u128() % (self.of as u128) == self.at as u128
    }
}

impl Index {
    /// Of the jobs that are as urgent as the next one of a list and hardly later, the first of the own share; of
    /// others, each server begins with another. A queue with limits is not shared: its order is that of its keys.
    pub(super) fn preferred(&self, query: &Query, at: usize, next: Key) -> Key {
        let share = self.share;
        if share.of <= 1 || share.has(next.id) {
            return next;
        }
        let list = match query.queues.get(at) {
            Some(queue) if self.gates.contains_key(queue) => None,
            Some(queue) => self.queues.named(queue),
            None => {
                query.services.get(at - query.queues.len()).and_then(|service| self.services.named(service))
            }
        };
        let latest = next.due().after(WAIT_MS);
        let near = list.into_iter().flat_map(List::known_keys).take(LOOK_MAX);
        let near: Vec<Key> =
            near.take_while(|key| key.urgency() == next.urgency() && key.due() <= latest).collect();
        let own = near.iter().find(|key| share.has(key.id));
        own.or_else(|| near.get(near.len() * share.at / share.of)).copied().unwrap_or(next)
    }
}
