//! Faults of a world. Every seed enables a random half of them (a *swarm*): rare combinations occur that a world with
//! all faults would never reach.

use std::collections::{BTreeMap, BTreeSet};

use crate::rng::SimRng;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimFault {
    /// A server dies right after a commit, before it carries out its effects.
    CrashBeforeEffects,
    /// A server dies at any time.
    Crash,
    /// The store is unavailable for a moment.
    StoreUnavailable,
    /// The store commits, and its reply is lost.
    AnswerLost,
    /// A worker answers twice.
    DuplicateAnswer,
    /// A worker answers very late.
    LateAnswer,
    /// An answer of a worker is lost.
    LostAnswer,
    /// A call never reaches a worker.
    LostCall,
    /// A worker dies while it holds a job.
    WorkerDeath,
    /// A worker hangs past its lease and answers afterwards.
    WorkerHang,
    /// A worker answers with an error.
    WorkerError,
    /// The connection to a worker breaks.
    TransportError,
    /// A call suspends and is asked again later.
    Suspend,
    /// A call suspends until it is reported.
    SuspendUntilReport,
    /// The wall clock jumps, ahead or back.
    ClockJump,
    /// Another server writes first.
    Conflict,
    /// Runs are canceled at any time.
    Cancel,
    /// Runs are paused and resumed at any time.
    Pause,
    /// Signals arrive at any time, some twice.
    Signal,
    /// Ended runs are retried.
    Retry,
    /// Ended runs are rerun from a node.
    Rerun,
    /// Accounts have insufficient balances.
    ShortBalance,
    /// Clients repeat requests because the reply was lost.
    ClientRetry,
    /// A live server cannot write its heartbeat for a while.
    MissedBeat,
}

pub const ALL: [SimFault; 24] = [
    SimFault::CrashBeforeEffects,
    SimFault::Crash,
    SimFault::StoreUnavailable,
    SimFault::AnswerLost,
    SimFault::DuplicateAnswer,
    SimFault::LateAnswer,
    SimFault::LostAnswer,
    SimFault::LostCall,
    SimFault::WorkerDeath,
    SimFault::WorkerHang,
    SimFault::WorkerError,
    SimFault::TransportError,
    SimFault::Suspend,
    SimFault::SuspendUntilReport,
    SimFault::ClockJump,
    SimFault::Conflict,
    SimFault::Cancel,
    SimFault::Pause,
    SimFault::Signal,
    SimFault::Retry,
    SimFault::Rerun,
    SimFault::ShortBalance,
    SimFault::ClientRetry,
    SimFault::MissedBeat,
];

/// Faults that keep a server from writing.
const DISTURBING: [SimFault; 5] = [
    SimFault::CrashBeforeEffects,
    SimFault::Crash,
    SimFault::StoreUnavailable,
    SimFault::AnswerLost,
    SimFault::Conflict,
];

/// The enabled faults of a world, and how often each struck.
#[derive(Debug, Clone)]
pub struct SimFaults {
    enabled: BTreeSet<SimFault>,
    healed: bool,
    pub hits: BTreeMap<SimFault, u64>,
}

impl SimFaults {
    /// Enables a random half of the faults.
    pub fn swarm(rng: &mut SimRng) -> Self {
        let enabled = ALL.into_iter().filter(|_| rng.percent(50)).collect();
        SimFaults::only(enabled)
    }

    pub fn only(enabled: BTreeSet<SimFault>) -> Self {
        SimFaults { enabled, healed: false, hits: BTreeMap::new() }
    }

    pub fn enabled(&self) -> &BTreeSet<SimFault> {
        &self.enabled
    }

    /// Disables all faults from now on.
    pub fn heal(&mut self) {
        self.healed = true;
    }

    pub fn is_healed(&self) -> bool {
        self.healed
    }

    /// How often faults struck that keep a server from writing.
    pub fn n_disturbed(&self) -> u64 {
        let hits = self.hits.iter().filter(|(fault, _)| DISTURBING.contains(fault));
        hits.map(|(_, n)| n).sum()
    }

    /// Whether this fault strikes now, with a probability of `percent` if it is enabled.
    pub fn strikes(&mut self, fault: SimFault, percent: u64, rng: &mut SimRng) -> bool {
        // A random number is drawn in any case, so that disabling a fault changes as little else as possible.
        let struck = rng.percent(percent) && !self.healed && self.enabled.contains(&fault);
        if struck {
            *self.hits.entry(fault).or_default() += 1;
        }
        struck
    }
}
