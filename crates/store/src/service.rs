//! Settings of a service: the name of something workers can do.

#[cfg(any(feature = "postgres", feature = "sqlite"))]
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windlass_engine::plan::Priority;
use windlass_engine::time::Timestamp;

use crate::signing::SigningSecret;

/// The settings of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRow {
    pub name: String,
    pub settings: ServiceSettings,
    pub updated_at: Timestamp,
}

/// A service that live workers serve. A worker of several services counts for each of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LiveService {
    pub name: String,
    pub n_workers: u64,
    /// Calls that its workers can take at once, as far as they reported it.
    pub capacity: u64,
    /// Calls that its workers reported with their last heartbeats.
    pub load: u64,
}

/// Jobs of a service that wait for a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingService {
    pub name: String,
    /// At most [`WAITING_MAX`]: more are not counted.
    pub n_waiting: u64,
}

/// Waiting jobs that are counted of one service: enough to see that workers are missing.
pub const WAITING_MAX: u64 = 10_000;

/// The settings. Runs are given the recheck, the time limit and the priority at their start; the number of calls holds for
/// all calls of a server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSettings {
    /// The default recheck interval of suspended calls; `None` = when they are reported, and after
    /// temporary faults as the engine does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
    /// Suspended calls wait until they are reported, also where the form of the flow asks them again by default.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub until_reported: bool,
    /// The time limit over all attempts of a call whose node has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Calls to push workers at once; `None` = as many as of any service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_max: Option<u32>,
    /// The class of a call whose node has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// The secret under which calls to its push workers are signed, unless a worker has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<SigningSecret>,
}

impl WaitingService {
    /// Adds up two lists by name: jobs with and without a limit key are counted apart.
    #[cfg(any(feature = "postgres", feature = "sqlite"))]
    pub(crate) fn added(lists: [Vec<WaitingService>; 2], limit: usize) -> Vec<WaitingService> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for WaitingService { name, n_waiting } in lists.into_iter().flatten() {
            *counts.entry(name).or_default() += n_waiting;
        }
        let counts = counts.into_iter().filter(|(_, n)| *n > 0).take(limit);
        counts.map(|(name, n)| WaitingService { name, n_waiting: n.min(WAITING_MAX) }).collect()
    }
}
