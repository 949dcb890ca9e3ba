//! The condition of a store: errors that its reads and writes met, and rows that readers set aside.
//!
//! A row that cannot be decoded concerns one run, job or schedule. Readers of many rows leave it out and note it here, so
//! that it holds up no queue, no list and no start of a server. Damage of the database itself concerns all of it: the
//! server says that it is not ready.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rows that are remembered; further ones are only counted.
const SET_ASIDE_MAX: usize = 1_000;
/// How long a failure of the disk is told at least: small writes may still succeed beside it.
const FAILURE_TOLD: Duration = Duration::from_secs(2);
/// Characters of a reason that are kept.
const REASON_MAX: usize = 300;

/// A kind of failure below the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StoreFault {
    /// The database cannot make sense of its own pages.
    Damaged,
    /// The disk did not read or write.
    Disk,
    /// The disk is full.
    Full,
}

impl StoreFault {
    pub const ALL: [StoreFault; 3] = [StoreFault::Damaged, StoreFault::Disk, StoreFault::Full];

    pub fn word(self) -> &'static str {
        match self {
            StoreFault::Damaged => "damaged",
            StoreFault::Disk => "disk",
            StoreFault::Full => "full",
        }
    }
}

/// A row that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BadRow {
    pub table: &'static str,
    /// Its key: the id of a run, a job or a schedule, or the parts of the key with `/` between them.
    pub key: String,
    /// The column, and what is wrong with its value.
    pub reason: String,
}

/// Faults and bad rows that reads and writes have met since the store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreCondition {
    /// Reasons why no server should take work with this store.
    pub troubles: Vec<String>,
    /// Rows that readers leave out: at most a thousand.
    pub set_aside: Vec<BadRow>,
    /// Rows beyond those.
    pub n_more_set_aside: u64,
    /// Failed reads and writes by kind.
    pub n_faults: BTreeMap<StoreFault, u64>,
}

/// A check of the tables, as many as the time was enough for. Successive checks cover all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoreCheck {
    /// Damage, each with its table.
    pub findings: Vec<String>,
    /// Tables that could not be read, and why: the next check may succeed.
    pub failures: Vec<String>,
    /// Tables without damage.
    pub sound: BTreeSet<String>,
    /// Tables that were checked.
    pub n_checked: usize,
    /// All tables; none if the database checks itself.
    pub n_tables: usize,
}

impl StoreCheck {
    /// Whether all tables were checked.
    pub fn is_whole(&self) -> bool {
        self.n_checked >= self.n_tables
    }
}

/// A failure of the disk that lasts.
#[derive(Debug)]
struct DiskFailure {
    reason: String,
    at: Instant,
}

#[derive(Debug, Default)]
struct ConditionState {
    n_faults: BTreeMap<StoreFault, u64>,
    /// Stays until every table was found without damage since.
    damage: Option<String>,
    /// Tables that were found without damage since.
    sound: BTreeSet<String>,
    reading: Option<DiskFailure>,
    writing: Option<DiskFailure>,
    set_aside: BTreeMap<(&'static str, String), String>,
    n_more_set_aside: u64,
}

/// Notes the condition of a store as its reads and writes show it.
#[derive(Debug, Default)]
pub struct ConditionLog {
    state: Mutex<ConditionState>,
}

/// The direction of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

impl ConditionState {
    fn damaged(&mut self, reason: String) {
        self.damage = Some(reason);
        self.sound.clear();
    }
}

impl ConditionLog {
    fn state(&self) -> MutexGuard<'_, ConditionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a failed read or write.
    pub(crate) fn failed(&self, access: Access, fault: StoreFault, reason: impl Into<String>) {
        let mut state = self.state();
        *state.n_faults.entry(fault).or_default() += 1;
        let reason = reason.into();
        match (fault, access) {
            (StoreFault::Damaged, _) => {
                state.sound.clear();
                // A check names the table; a read or write that fails does not.
                state.damage.get_or_insert(reason);
            }
            (StoreFault::Disk | StoreFault::Full, Access::Read) => {
                state.reading = Some(DiskFailure { reason, at: Instant::now() });
            }
            (StoreFault::Disk | StoreFault::Full, Access::Write) => {
                state.writing = Some(DiskFailure { reason, at: Instant::now() });
            }
        }
    }

    /// Notes a read or write that succeeded: a failure of the disk before it is over.
    pub(crate) fn succeeded(&self, access: Access) {
        let mut state = self.state();
        let failure = match access {
            Access::Read => &mut state.reading,
            Access::Write => &mut state.writing,
        };
        if failure.as_ref().is_some_and(|failure| failure.at.elapsed() >= FAILURE_TOLD) {
            *failure = None;
        }
    }

    /// Notes a row that a reader leaves out.
    pub(crate) fn set_aside(&self, row: BadRow) {
        let mut state = self.state();
        let BadRow { table, key, reason } = row;
        if state.set_aside.contains_key(&(table, key.clone())) {
            return;
        }
        if state.set_aside.len() >= SET_ASIDE_MAX {
            state.n_more_set_aside += 1;
            return;
        }
        state.set_aside.insert((table, key), reason.chars().take(REASON_MAX).collect());
    }

    /// Forgets the rows that were set aside: the next read of each tells whether it is still bad.
    pub(crate) fn forget_rows(&self) {
        let mut state = self.state();
        state.set_aside.clear();
        state.n_more_set_aside = 0;
    }

    /// Notes the outcome of a check.
    pub(crate) fn checked(&self, check: &StoreCheck) {
        let mut state = self.state();
        match check.findings.first() {
            Some(first) => state.damaged(first.clone()),
            None if state.damage.is_some() => {
                state.sound.extend(check.sound.iter().cloned());
                if state.sound.len() >= check.n_tables {
                    state.damage = None;
                }
            }
            None => {}
        }
    }

    pub(crate) fn condition(&self) -> StoreCondition {
        let state = self.state();
        let disk =
            [&state.writing, &state.reading].into_iter().flatten().map(|failure| failure.reason.clone());
        let row = |((table, key), reason): (&(&'static str, String), &String)| BadRow {
            table,
            key: key.clone(),
            reason: reason.clone(),
        };
        StoreCondition {
            troubles: disk.chain(state.damage.clone()).collect(),
            set_aside: state.set_aside.iter().map(row).collect(),
            n_more_set_aside: state.n_more_set_aside,
            n_faults: state.n_faults.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_stays_until_every_table_was_found_without_damage() {
        let log = ConditionLog::default();
        let check = |sound: &[&str]| StoreCheck {
            sound: sound.iter().map(|table| (*table).to_owned()).collect(),
            n_checked: sound.len(),
            n_tables: 3,
            ..StoreCheck::default()
        };
        let found = |finding: &str| StoreCheck { findings: vec![finding.to_owned()], ..check(&["runs"]) };
        log.failed(Access::Read, StoreFault::Damaged, "page 7");
        log.succeeded(Access::Read);
        log.succeeded(Access::Write);
        log.checked(&check(&["logs", "jobs"]));
        log.checked(&check(&["jobs"]));
        assert_eq!(log.condition().troubles, ["page 7"]);
        assert_eq!(log.condition().n_faults, BTreeMap::from([(StoreFault::Damaged, 1)]));
        log.checked(&check(&["runs"]));
        assert!(log.condition().troubles.is_empty(), "three checks covered all tables");
        log.checked(&found("table `jobs`: page 8"));
        log.checked(&check(&["logs", "runs"]));
        log.failed(Access::Write, StoreFault::Damaged, "page 8");
        assert_eq!(log.condition().troubles, ["table `jobs`: page 8"], "the table stays named");
        log.checked(&found("table `jobs`: page 9"));
        log.checked(&check(&["jobs"]));
        assert_eq!(log.condition().troubles, ["table `jobs`: page 9"], "older checks do not count");
        log.checked(&check(&["logs", "runs"]));
        assert!(log.condition().troubles.is_empty());
    }

    #[test]
    fn a_table_that_could_not_be_read_is_no_damage() {
        let log = ConditionLog::default();
        let failures = vec!["table `jobs`: too many open files".to_owned()];
        log.checked(&StoreCheck { failures, n_tables: 3, ..StoreCheck::default() });
        assert!(log.condition().troubles.is_empty());
    }

    #[test]
    fn a_full_disk_is_told_until_a_later_write_succeeds() {
        let log = ConditionLog::default();
        log.failed(Access::Write, StoreFault::Full, "the disk is full");
        log.succeeded(Access::Write);
        assert_eq!(
            log.condition().troubles,
            ["the disk is full"],
            "a small write fits beside the failed one"
        );
        log.state().writing.as_mut().expect("it failed").at -= FAILURE_TOLD;
        log.succeeded(Access::Read);
        assert_eq!(log.condition().troubles, ["the disk is full"]);
        log.succeeded(Access::Write);
        assert!(log.condition().troubles.is_empty());
    }

    #[test]
    fn rows_are_set_aside_once_and_within_a_bound() {
        let log = ConditionLog::default();
        for n in 0..SET_ASIDE_MAX + 3 {
            for _ in 0..2 {
                log.set_aside(BadRow { table: "jobs", key: n.to_string(), reason: "é".repeat(1_000) });
            }
        }
        let found = log.condition();
        assert_eq!((found.set_aside.len(), found.n_more_set_aside), (SET_ASIDE_MAX, 6));
        assert_eq!(found.set_aside[0].reason.chars().count(), REASON_MAX);
        log.forget_rows();
        assert_eq!(log.condition(), StoreCondition::default());
    }
}
