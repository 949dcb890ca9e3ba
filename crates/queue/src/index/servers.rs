//! Several servers hand out jobs of the same store: each begins with other ones, so that they seldom take the same.

use windlass_engine::id::JobId;

use super::Index;
use super::share::Source;
use crate::dispatch::Query;
use crate::list::{Key, List};

/// Jobs that are looked at for one of the own share.
const LOOK_MAX: usize = 256;
/// A job of another's share waits no longer than this for those of the own.
const WAIT_MS: u64 = 1_000;

/// This server is number `at` of so many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Servers {
    pub(crate) at: usize,
    pub(crate) of: usize,
}

impl Default for Servers {
    fn default() -> Self {
        Servers { at: 0, of: 1 }
    }
}

impl Servers {
    /// Whether the job is of the own share.
    fn is_own(self, id: JobId) -> bool {
        id.uuid().as_u128() % (self.of as u128) == self.at as u128
    }
}

impl Index {
    /// Of the jobs that are as urgent as the next one of a list and hardly later, the first of the own share; of
    /// others, each server begins with another. A queue with limits is not shared: its order is that of its keys.
    pub(super) fn preferred(&self, query: &Query, gated: &[(String, usize)], at: usize, next: Key) -> Key {
        let servers = self.servers;
        if servers.of <= 1 || servers.is_own(next.id) {
            return next;
        }
        let list = match self.source(query, gated, at) {
            Some(Source::Queue(queue)) => self.queues.named(queue),
            Some(Source::Service(service)) => self.services.named(service),
            Some(Source::Gate(..)) | None => None,
        };
        let latest = next.due().after(WAIT_MS);
        let is_alike =
            |key: &Key| (key.urgency(), key.is_run) == (next.urgency(), next.is_run) && key.due() <= latest;
        let near = list.into_iter().flat_map(List::known_keys).take(LOOK_MAX);
        let near: Vec<Key> = near.filter(is_alike).collect();
        let own = near.iter().find(|key| servers.is_own(key.id));
        own.or_else(|| near.get(near.len() * servers.at / servers.of)).copied().unwrap_or(next)
    }
}
