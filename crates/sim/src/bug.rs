//! Planted bugs that the checker must find. They are in the modelled servers and chosen when the simulator starts;
//! shipped code knows nothing of them.

use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlantedBug {
    /// A late answer is taken under the current fence.
    FenceIgnored,
    /// Answers are matched by attempt number instead of fence.
    AttemptAsFence,
    /// A stale length is overwritten instead of refused.
    NoLengthGuard,
    /// Effects are carried out before the commit is durable.
    EffectBeforeCommit,
    /// A dead server's calls are not recovered.
    NoRecovery,
    /// Expired leases are not given to other workers.
    NoReaper,
    /// Timers fire half a second early.
    EarlyTimer,
    /// A run that is due at certain times is never woken.
    WakeLost,
    /// Clients are answered before the commit.
    AnswerBeforeCommit,
    /// A run with an agenda that a spent budget left open is not woken.
    AgendaForgotten,
    /// A repeated create makes another run.
    NoRequestDedup,
    /// A repeated signal is taken again.
    NoSignalDedup,
    /// A commit with an unknown outcome is simply repeated.
    BlindRetry,
    /// Refunds are forgotten.
    NoRefund,
    /// Every attempt is charged.
    ChargePerAttempt,
    /// An insufficient balance is ignored.
    Overdraft,
    /// The last entry is lost when a run is loaded from its journal.
    TornJournal,
    /// Answers of a fan's branches are recorded for the next branch.
    BranchMixUp,
    /// Calls from before a cancel are granted again after it.
    CancelForgotten,
    /// The reaper decides on outdated jobs without checking the fence.
    ReaperIgnoresFence,
    /// A slot is written before the job that it starts.
    FiringApart,
    /// Slots fire half a second early.
    EarlyFiring,
    /// Only the latest of several missed slots fires.
    SlotsForgotten,
    /// The overlap rule of a schedule is ignored.
    OverlapIgnored,
    /// A replay discards the dead letter and then creates a new job, in two commits.
    ReplayInTwo,
    /// Server time stands still until the wall clock has caught up.
    ClockStandsStill,
    /// Server time runs at a quarter of the pace while the wall clock is behind.
    QuarterPace,
}

pub const ALL: [PlantedBug; 27] = [
    PlantedBug::FenceIgnored,
    PlantedBug::AttemptAsFence,
    PlantedBug::NoLengthGuard,
    PlantedBug::EffectBeforeCommit,
    PlantedBug::NoRecovery,
    PlantedBug::NoReaper,
    PlantedBug::EarlyTimer,
    PlantedBug::WakeLost,
    PlantedBug::AnswerBeforeCommit,
    PlantedBug::AgendaForgotten,
    PlantedBug::NoRequestDedup,
    PlantedBug::NoSignalDedup,
    PlantedBug::BlindRetry,
    PlantedBug::NoRefund,
    PlantedBug::ChargePerAttempt,
    PlantedBug::Overdraft,
    PlantedBug::TornJournal,
    PlantedBug::BranchMixUp,
    PlantedBug::CancelForgotten,
    PlantedBug::ReaperIgnoresFence,
    PlantedBug::FiringApart,
    PlantedBug::EarlyFiring,
    PlantedBug::SlotsForgotten,
    PlantedBug::OverlapIgnored,
    PlantedBug::ReplayInTwo,
    PlantedBug::ClockStandsStill,
    PlantedBug::QuarterPace,
];

impl FromStr for PlantedBug {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ALL.into_iter().find(|bug| format!("{bug:?}") == text);
        found.ok_or_else(|| format!("no bug `{text}`; there are {ALL:?}"))
    }
}
