//! The leases that a worker holds, each with the token that cancels its handler.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The key of a claim: the job and its lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClaimId {
    pub(super) job: String,
    pub(super) lease: String,
}

/// All claims of a worker, from the claim until the server has accepted the result.
#[derive(Debug, Default)]
pub(super) struct HeldLeases(Mutex<BTreeMap<ClaimId, CancellationToken>>);

impl HeldLeases {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ClaimId, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take(&self, claim: ClaimId) -> CancellationToken {
        let cancel = CancellationToken::new();
        self.lock().insert(claim, cancel.clone());
        cancel
    }

    /// Whether the claim is still this worker's.
    pub(super) fn has(&self, claim: &ClaimId) -> bool {
        self.lock().contains_key(claim)
    }

    /// Removes a claim: its result was accepted, or another worker holds the job.
    pub(super) fn let_go(&self, claim: &ClaimId) {
        if let Some(cancel) = self.lock().remove(claim) {
            cancel.cancel();
        }
    }

    /// Tells the handler to stop; its result is still sent, so that the server knows it stopped.
    pub(super) fn cancel(&self, claim: &ClaimId) {
        if let Some(cancel) = self.lock().get(claim) {
            cancel.cancel();
        }
    }

    pub(super) fn cancel_all(&self) {
        self.lock().values().for_each(CancellationToken::cancel);
    }

    /// Every claim whose lease must be extended.
    pub(super) fn claims(&self) -> Vec<ClaimId> {
        self.lock().keys().cloned().collect()
    }

    /// Claims that are not over yet.
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}
