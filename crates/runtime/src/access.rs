//! API keys: who presents one, who may make one, and whether the server asks for one at all.
//!
//! The store holds the keys; nothing is loaded at start. A presented key is looked up once and kept in a bounded cache
//! for a short time, so that a request costs a hash and no read. Hints and changes on this server empty the cache.

mod cache;
mod wrong_keys;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::access::Role;
use windlass_engine::access::api_key::{ApiKey, ApiKeyId, RANDOM_BYTES};
use windlass_engine::access::identity::{Identity, KeyFault, KeyRights, KeyTerm, WorkScope};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::api_key::{ApiKeyHash, ApiKeyRow};
use windlass_store::{Store, StoreError};

use crate::RuntimeError;
use crate::part::{RuntimePart, part};
use cache::KeyCache;
use wrong_keys::WrongKeys;

/// How often a server without keys looks whether another server of its store made one.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Looks between two writes of last uses.
const LOOKS_PER_WRITE: u32 = 30;
/// Uses in memory at most; the rest of an interval is not noted.
const USES_MAX: usize = 100_000;
/// Ids that are drawn for a new key: each is taken with a probability far below one in a million.
const DRAWS_MAX: usize = 3;

/// The state of `Access`.
#[derive(Debug)]
pub(crate) struct AccessState {
    /// Whether requests need a key: some key exists.
    is_closed: AtomicBool,
    cache: Mutex<KeyCache>,
    wrong: Mutex<WrongKeys>,
    /// Last uses that the store does not have yet.
    uses: Mutex<BTreeMap<ApiKeyId, Timestamp>>,
}

impl AccessState {
    pub(crate) fn new(is_shared: bool) -> Self {
        AccessState {
            is_closed: AtomicBool::new(false),
            cache: Mutex::new(KeyCache::new(is_shared)),
            wrong: Mutex::default(),
            uses: Mutex::default(),
        }
    }
}

/// Why a caller has no identity.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    #[error("the request needs a valid API key")]
    Unproven,
    #[error("the API key has expired")]
    Expired,
    /// The address of the caller has presented too many unknown keys.
    #[error("too many unknown API keys came from this address")]
    TooManyWrong { retry_after: Duration },
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<StoreError> for AccessError {
    fn from(error: StoreError) -> Self {
        AccessError::Runtime(error.into())
    }
}

impl From<KeyFault> for AccessError {
    fn from(fault: KeyFault) -> Self {
        match fault {
            KeyFault::Unproven => AccessError::Unproven,
            KeyFault::Expired => AccessError::Expired,
        }
    }
}

/// A request for a new key.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    /// The name of its owner in the audit.
    pub name: String,
    /// Checked rights.
    pub rights: KeyRights,
    pub expires_at: Option<Timestamp>,
    pub created_by: String,
}

impl NewApiKey {
    fn draft(self, key: &ApiKey, project: &Project, now: Timestamp) -> ApiKeyRow {
        let NewApiKey { name, rights, expires_at, created_by } = self;
        ApiKeyRow {
            id: key.id(),
            project: project.clone(),
            hash: ApiKeyHash::of(key),
            name,
            role: rights.role,
            may_script: rights.may_script,
            scope: rights.scope,
            created_at: now,
            created_by,
            term: KeyTerm { expires_at, revoked_at: None },
            used_at: None,
        }
    }
}

part! {
    /// The owner of API keys.
    pub Access, access: AccessState
}

fn open<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new key, stored nowhere, from the random numbers of this machine: of each UUID the first six bytes, which have no
/// fixed bits.
pub fn generate(role: Role) -> ApiKey {
    let mut random = [0; RANDOM_BYTES];
    for part in random.chunks_mut(6) {
        part.copy_from_slice(&Uuid::new_v4().as_bytes()[..part.len()]);
    }
    ApiKey::new(role, &random)
}

/// Writes a new key to a store, also to one that no server uses. The text of the key is in the answer and nowhere else.
pub async fn add_key(
    store: &dyn Store,
    project: &Project,
    new: NewApiKey,
    now: Timestamp,
) -> Result<(ApiKey, ApiKeyRow), StoreError> {
    for _ in 0..DRAWS_MAX {
        let key = generate(new.rights.role);
        let row = new.clone().draft(&key, project, now);
        if store.create_api_key(project, row.clone()).await? {
            return Ok((key, row));
        }
    }
    Err(StoreError::Corrupt("every id that was drawn for an API key is taken".to_owned()))
}

/// Writes the first key of a store from its text; a no-op if there is any key.
pub async fn add_first_key(
    store: &dyn Store,
    project: &Project,
    key: &ApiKey,
    now: Timestamp,
) -> Result<bool, StoreError> {
    if store.has_api_keys().await? {
        return Ok(false);
    }
    let rights = KeyRights { scope: WorkScope::everything(), ..KeyRights::of(Role::Admin) };
    let new = NewApiKey {
        name: "first".to_owned(),
        rights,
        expires_at: None,
        created_by: "WINDLASS_FIRST_KEY_FILE".to_owned(),
    };
    store.create_api_key(project, new.draft(key, project, now)).await
}

impl Access {
    /// Asks the store whether there are keys.
    pub(crate) async fn load(&self) -> Result<(), RuntimeError> {
        if self.store().has_api_keys().await? {
            self.close();
        }
        Ok(())
    }

    /// Whether requests need a key. Once true, it stays true.
    pub fn is_closed(&self) -> bool {
        self.state().is_closed.load(Ordering::Acquire)
    }

    fn close(&self) {
        if !self.state().is_closed.swap(true, Ordering::AcqRel) {
            tracing::info!("requests need an API key from now on");
        }
    }

    /// The identity that a presented text proves. The address is that of the caller.
    pub async fn identify(&self, presented: &str, address: &str) -> Result<Arc<Identity>, AccessError> {
        // A text that is no key costs no read.
        let Some(key) = ApiKey::read(presented) else { return Err(AccessError::Unproven) };
        let row = self.find(key.id(), address).await?;
        let now = self.clock().now();
        let hash = ApiKeyHash::of(&key);
        let Some(row) = row else { return Err(AccessError::Unproven) };
        row.term.check(row.hash == hash, now)?;
        let mut uses = open(&self.state().uses);
        if uses.len() < USES_MAX || uses.contains_key(&key.id()) {
            uses.insert(key.id(), now);
        }
        Ok(row.identity.clone())
    }

    async fn find(&self, id: ApiKeyId, address: &str) -> Result<Option<Arc<cache::KnownKey>>, AccessError> {
        let found = open(&self.state().cache).find(id);
        let generation = match found {
            cache::Lookup::Fresh(known) => return Ok(known),
            // Its owner was here before, so the read is not counted.
            cache::Lookup::Stale { generation } => generation,
            cache::Lookup::Unknown { generation } => {
                let allowed = open(&self.state().wrong).check(address, self.clock().now());
                allowed.map_err(|retry_after| AccessError::TooManyWrong { retry_after })?;
                generation
            }
        };
        let known = self.store().api_key(id).await?.map(|row| Arc::new(cache::KnownKey::of(&row)));
        if known.is_none() {
            open(&self.state().wrong).count(address, self.clock().now());
        }
        open(&self.state().cache).keep(id, known.clone(), generation);
        Ok(known)
    }

    /// Forgets what was read: another server may have changed keys.
    pub(crate) fn invalidate(&self) {
        open(&self.state().cache).clear();
    }

    /// Makes a key. The text of the key is in the answer and nowhere else.
    pub async fn create(&self, new: NewApiKey) -> Result<(ApiKey, ApiKeyRow), RuntimeError> {
        self.runs().admit()?;
        let made = add_key(self.store(), self.project(), new, self.clock().now()).await?;
        self.close();
        self.invalidate();
        Ok(made)
    }

    /// Keys after this one, by id.
    pub async fn list(&self, after: Option<ApiKeyId>, limit: usize) -> Result<Vec<ApiKeyRow>, RuntimeError> {
        Ok(self.store().api_keys(self.project(), after, limit).await?)
    }

    /// One key of the project.
    pub async fn show(&self, id: ApiKeyId) -> Result<Option<ApiKeyRow>, RuntimeError> {
        let row = self.store().api_key(id).await?;
        Ok(row.filter(|row| row.project == *self.project()))
    }

    /// Ends a key at once; `false` = there is no such key.
    pub async fn revoke(&self, id: ApiKeyId) -> Result<bool, RuntimeError> {
        let is_there = self.store().revoke_api_key(self.project(), id, self.clock().now()).await;
        // Also after an error: the store may have done it.
        self.invalidate();
        Ok(is_there?)
    }

    /// Makes the successor of a key with the same rights; the old one ends after `grace`. `None` = there is no such key,
    /// or it was revoked.
    pub async fn rotate(
        &self,
        id: ApiKeyId,
        grace: Duration,
        by: String,
    ) -> Result<Option<(ApiKey, ApiKeyRow)>, RuntimeError> {
        self.runs().admit()?;
        let Some(old) = self.show(id).await? else { return Ok(None) };
        let (now, key) = (self.clock().now(), generate(old.role));
        let new = NewApiKey {
            name: old.name,
            rights: KeyRights { role: old.role, may_script: old.may_script, scope: old.scope },
            expires_at: old.term.expires_at,
            created_by: by,
        };
        let row = new.draft(&key, self.project(), now);
        let ends_at = now.after(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
        let is_there = self.store().rotate_api_key(self.project(), id, ends_at, row.clone()).await;
        self.invalidate();
        Ok(is_there?.then_some((key, row)))
    }

    /// Writes last uses, and notices the first key that another server makes.
    pub(crate) async fn access_loop(self) {
        let mut n_looks = 0;
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = self.stopped() => return self.save_uses().await,
            }
            n_looks += 1;
            if n_looks % LOOKS_PER_WRITE == 0 {
                self.save_uses().await;
            }
            // One server alone makes its keys itself.
            if self.is_shared()
                && !self.is_closed()
                && let Err(error) = self.load().await
            {
                tracing::debug!(%error, "the store did not say whether there are keys");
            }
        }
    }

    async fn save_uses(&self) {
        let uses = std::mem::take(&mut *open(&self.state().uses));
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store().save_api_key_uses(uses.into_iter().collect()).await {
            tracing::warn!(%error, "the last uses of keys were not noted");
        }
    }
}
