//! The faults a world may suffer. Every seed suffers a random part of them (a *swarm*): rare combinations come up
//! that a world with all of them at once would never reach.

use std::collections::{BTreeMap, BTreeSet};

use crate::rng::Rng;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A server dies right after a commit, before it did anything about it.
    CrashBeforeEffects,
    /// A server dies at any moment.
    Crash,
    /// The store refuses for a moment.
    StoreUnavailable,
    /// The store commits, but its answer is lost.
    AnswerLost,
    /// An answer of a worker comes twice.
    DuplicateAnswer,
    /// An answer of a worker comes very late.
    LateAnswer,
    /// An answer of a worker never comes.
    LostAnswer,
    /// A call never reaches a worker.
    LostCall,
    /// A worker dies with a job in its hands.
    WorkerDeath,
    /// A worker hangs past its lease and answers afterwards.
    WorkerHang,
    /// A worker says that it failed.
    WorkerError,
    /// The connection to a worker breaks.
    TransportError,
    /// A call suspends and wants to be asked again.
    Suspend,
    /// A call suspends until it is reported.
    SuspendUntilReport,
    /// The clock jumps ahead.
    ClockJump,
    /// Another server writes first.
    Conflict,
    /// Runs are cancelled at any moment.
    Cancel,
    /// Runs are paused and resumed at any moment.
    Pause,
    /// Signals come at any moment, some twice.
    Signal,
    /// Ended runs are retried.
    Retry,
    /// Ended runs are run again from a node.
    Rerun,
    /// Accounts run dry.
    ShortBalance,
    /// Clients ask again because they did not hear the answer.
    ClientRetry,
    /// A server that still lives cannot say so for a while.
    MissedBeat,
}

pub const ALL: [Fault; 24] = [
    Fault::CrashBeforeEffects,
    Fault::Crash,
    Fault::StoreUnavailable,
    Fault::AnswerLost,
    Fault::DuplicateAnswer,
    Fault::LateAnswer,
    Fault::LostAnswer,
    Fault::LostCall,
    Fault::WorkerDeath,
    Fault::WorkerHang,
    Fault::WorkerError,
    Fault::TransportError,
    Fault::Suspend,
    Fault::SuspendUntilReport,
    Fault::ClockJump,
    Fault::Conflict,
    Fault::Cancel,
    Fault::Pause,
    Fault::Signal,
    Fault::Retry,
    Fault::Rerun,
    Fault::ShortBalance,
    Fault::ClientRetry,
    Fault::MissedBeat,
];

/// The faults of one world, how likely each is, and how often each struck.
#[derive(Debug, Clone)]
pub struct Faults {
    enabled: BTreeSet<Fault>,
    healed: bool,
    pub hits: BTreeMap<Fault, u64>,
}

impl Faults {
    /// A random half of them.
    pub fn swarm(rng: &mut Rng) -> Self {
        let enabled = ALL.into_iter().filter(|_| rng.percent(50)).collect();
        Faults::only(enabled)
    }

    pub fn only(enabled: BTreeSet<Fault>) -> Self {
        Faults { enabled, healed: false, hits: BTreeMap::new() }
    }

    pub fn enabled(&self) -> &BTreeSet<Fault> {
        &self.enabled
    }

    /// From now on nothing goes wrong any more.
    pub fn heal(&mut self) {
        self.healed = true;
    }

    pub fn is_healed(&self) -> bool {
        self.healed
    }

    /// Whether this fault strikes now, at `percent` times of a hundred where it is enabled.
    pub fn strikes(&mut self, fault: Fault, percent: u64, rng: &mut Rng) -> bool {
        // Chance is drawn in any case, so that switching a fault off changes as little else as possible.
        let struck = rng.percent(percent) && !self.healed && self.enabled.contains(&fault);
        if struck {
            *self.hits.entry(fault).or_default() += 1;
        }
        struck
    }
}
