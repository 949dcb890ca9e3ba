//! Keys that were read a moment ago, and ids that were looked up in vain. Both are bounded: known keys and invented ids
//! have places of their own, so that a flood of invented ids displaces no key.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use windlass_engine::access::api_key::ApiKeyId;
use windlass_engine::access::identity::{Identity, KeyTerm};
use windlass_store::api_key::{ApiKeyHash, ApiKeyRow};

/// How long a key counts as read on a store of one server. Changes on this server are noticed at once.
const FRESH: Duration = Duration::from_secs(10);
/// The same where other servers may revoke keys, too.
const FRESH_SHARED: Duration = Duration::from_secs(1);
/// Known keys, and unknown ids: all of a kind are forgotten when there are more.
const KNOWN_MAX: usize = 20_000;
const UNKNOWN_MAX: usize = 20_000;

/// The part of a key's row that a check needs.
#[derive(Debug)]
pub(super) struct KnownKey {
    pub(super) hash: ApiKeyHash,
    pub(super) term: KeyTerm,
    pub(super) identity: Arc<Identity>,
}

impl KnownKey {
    pub(super) fn of(row: &ApiKeyRow) -> Self {
        KnownKey { hash: row.hash, term: row.term, identity: Arc::new(row.identity()) }
    }
}

/// A look into the cache.
#[derive(Debug)]
pub(super) enum Lookup {
    /// Read a moment ago; `None` = there was no such key.
    Fresh(Option<Arc<KnownKey>>),
    /// A known key that has to be read again.
    Stale { generation: u64 },
    /// An id that has to be read.
    Unknown { generation: u64 },
}

#[derive(Debug)]
pub(super) struct KeyCache {
    fresh_for: Duration,
    known: HashMap<ApiKeyId, (Instant, Arc<KnownKey>)>,
    unknown: HashMap<ApiKeyId, Instant>,
    /// Grows whenever everything is forgotten, so that an older read is not kept.
    generation: u64,
}

impl KeyCache {
    pub(super) fn new(is_shared: bool) -> Self {
        let fresh_for = if is_shared { FRESH_SHARED } else { FRESH };
        KeyCache { fresh_for, known: HashMap::new(), unknown: HashMap::new(), generation: 0 }
    }

    pub(super) fn find(&self, id: ApiKeyId) -> Lookup {
        let generation = self.generation;
        match (self.known.get(&id), self.unknown.get(&id)) {
            (Some((at, known)), _) if at.elapsed() < self.fresh_for => Lookup::Fresh(Some(known.clone())),
            (Some(_), _) => Lookup::Stale { generation },
            (None, Some(at)) if at.elapsed() < self.fresh_for => Lookup::Fresh(None),
            (None, _) => Lookup::Unknown { generation },
        }
    }

    /// Keeps a read that began in this generation.
    pub(super) fn keep(&mut self, id: ApiKeyId, read: Option<Arc<KnownKey>>, generation: u64) {
        if generation != self.generation {
            return;
        }
        let now = Instant::now();
        match read {
            Some(known) => {
                if self.known.len() >= KNOWN_MAX {
                    self.known.clear();
                }
                self.unknown.remove(&id);
                self.known.insert(id, (now, known));
            }
            None => {
                if self.unknown.len() >= UNKNOWN_MAX {
                    self.unknown.clear();
                }
                self.known.remove(&id);
                self.unknown.insert(id, now);
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.generation += 1;
        self.known.clear();
        self.unknown.clear();
    }
}

#[cfg(test)]
mod tests {
    use windlass_engine::access::Role;
    use windlass_engine::access::api_key::{ApiKey, RANDOM_BYTES};
    use windlass_engine::access::identity::WorkScope;
    use windlass_engine::project::Project;
    use windlass_engine::time::Timestamp;

    use super::*;

    fn key(n: u32) -> (ApiKeyId, Option<Arc<KnownKey>>) {
        let mut random = [0; RANDOM_BYTES];
        // Every byte of the number has a character of its own.
        for (place, byte) in n.to_be_bytes().into_iter().enumerate() {
            (random[4 * place + 1], random[4 * place + 3]) = (byte >> 4, byte & 15);
        }
        let key = ApiKey::new(Role::Viewer, &random);
        let row = ApiKeyRow {
            id: key.id(),
            project: Project::DEFAULT,
            hash: ApiKeyHash::of(&key),
            name: n.to_string(),
            role: Role::Viewer,
            may_script: false,
            scope: WorkScope::default(),
            created_at: Timestamp(0),
            created_by: String::new(),
            term: KeyTerm::default(),
            used_at: None,
        };
        (key.id(), Some(Arc::new(KnownKey::of(&row))))
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_is_read_again_after_a_while() {
        for (is_shared, seconds) in [(false, 10), (true, 1)] {
            let mut cache = KeyCache::new(is_shared);
            let (id, known) = key(1);
            assert!(matches!(cache.find(id), Lookup::Unknown { .. }));
            cache.keep(id, known, 0);
            tokio::time::advance(Duration::from_millis(seconds * 1_000 - 1)).await;
            assert!(matches!(cache.find(id), Lookup::Fresh(Some(_))));
            tokio::time::advance(Duration::from_millis(1)).await;
            assert!(matches!(cache.find(id), Lookup::Stale { .. }));
            cache.keep(id, None, 0);
            assert!(matches!(cache.find(id), Lookup::Fresh(None)));
        }
    }

    #[tokio::test]
    async fn a_read_from_before_a_change_is_not_kept() {
        let mut cache = KeyCache::new(false);
        let (id, known) = key(1);
        let Lookup::Unknown { generation } = cache.find(id) else { panic!("it is not known") };
        cache.clear();
        cache.keep(id, known, generation);
        assert!(matches!(cache.find(id), Lookup::Unknown { .. }));
    }

    #[tokio::test]
    async fn invented_ids_displace_no_key_and_both_are_bounded() {
        let mut cache = KeyCache::new(false);
        let (id, known) = key(0);
        cache.keep(id, known, 0);
        for n in 1..=u32::try_from(UNKNOWN_MAX + 10).unwrap() {
            cache.keep(key(n).0, None, 0);
        }
        assert!(cache.unknown.len() <= UNKNOWN_MAX);
        assert!(matches!(cache.find(id), Lookup::Fresh(Some(_))));
        for n in 0..=u32::try_from(KNOWN_MAX + 10).unwrap() {
            let (id, known) = key(n);
            cache.keep(id, known, 0);
        }
        assert!(cache.known.len() <= KNOWN_MAX);
    }
}
