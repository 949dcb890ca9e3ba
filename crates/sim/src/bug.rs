//! Planted bugs: what the simulator must find. They live here, in the simulated runtime around the engine and the
//! store, and are chosen when the simulator is run; shipped code knows nothing of them.

use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// Late answers are taken under whatever fence is current.
    FenceIgnored,
    /// Answers are matched by attempt number instead of fence.
    AttemptAsFence,
    /// A stale length is overwritten instead of refused.
    NoLengthGuard,
    /// Effects are carried out before the commit is durable.
    EffectBeforeCommit,
    /// A dead server's calls are not recovered.
    NoRecovery,
    /// Expired leases are not given to anybody else.
    NoReaper,
    /// Timers fire half a second early.
    EarlyTimer,
    /// A run that is due at exactly this moment is overlooked for ever.
    WakeLost,
    /// Clients are answered before the commit.
    AnswerBeforeCommit,
    /// A create that was asked again makes another run.
    NoRequestDedup,
    /// A signal that was asked again is taken again.
    NoSignalDedup,
    /// An unknown outcome is taken for a failure and simply done again.
    BlindRetry,
    /// Refunds are forgotten.
    NoRefund,
    /// Every attempt is charged.
    ChargePerAttempt,
    /// A short balance is overlooked.
    Overdraft,
    /// The last entry is lost when a state is loaded from its journal.
    TornJournal,
    /// Answers of a fan's branches are filed under the next branch.
    BranchMixUp,
    /// Calls ordered before a cancel are granted again after it.
    CancelForgotten,
    /// The reaper takes jobs from whoever has them now, because of what it remembers of them.
    ReaperIgnoresFence,
    /// A slot is written before the job that it starts.
    FiringApart,
    /// Slots fire half a second early.
    EarlyFiring,
    /// Of the slots that were missed, only the latest is thought of.
    SlotsForgotten,
    /// What a schedule has running is not looked at.
    OverlapIgnored,
    /// A dead letter is given up first and added again afterwards when it is replayed.
    ReplayInTwo,
}

pub const ALL: [Bug; 24] = [
    Bug::FenceIgnored,
    Bug::AttemptAsFence,
    Bug::NoLengthGuard,
    Bug::EffectBeforeCommit,
    Bug::NoRecovery,
    Bug::NoReaper,
    Bug::EarlyTimer,
    Bug::WakeLost,
    Bug::AnswerBeforeCommit,
    Bug::NoRequestDedup,
    Bug::NoSignalDedup,
    Bug::BlindRetry,
    Bug::NoRefund,
    Bug::ChargePerAttempt,
    Bug::Overdraft,
    Bug::TornJournal,
    Bug::BranchMixUp,
    Bug::CancelForgotten,
    Bug::ReaperIgnoresFence,
    Bug::FiringApart,
    Bug::EarlyFiring,
    Bug::SlotsForgotten,
    Bug::OverlapIgnored,
    Bug::ReplayInTwo,
];

impl FromStr for Bug {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = ALL.into_iter().find(|bug| format!("{bug:?}") == text);
        found.ok_or_else(|| format!("no bug `{text}`; there are {ALL:?}"))
    }
}
