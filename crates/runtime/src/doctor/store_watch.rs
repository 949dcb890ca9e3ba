//! The watch over the store: its pages are checked at the start and from time to time, and the log tells once of every row
//! that readers set aside.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;
use windlass_store::condition::BadRow;

use super::rows::CHECK_TIME_MAX;
use crate::part::{RuntimePart, part};

/// How often the condition of the store is looked at.
const TICK: Duration = Duration::from_secs(1);
/// The time between two checks of a store that is whole.
const CHECK_INTERVAL: Duration = Duration::from_secs(3_600);
/// The time between two checks of a store with failed reads, so that a repaired one is soon ready.
const RECHECK_INTERVAL: Duration = Duration::from_secs(60);

part! {
    /// The task that watches the store. It keeps no state beside its loop.
    pub(crate) StoreWatch
}

impl StoreWatch {
    /// Checks the store and tells of bad rows, until the server stops.
    pub(crate) async fn watch_loop(self) {
        let mut logged: BTreeSet<BadRow> = BTreeSet::new();
        let mut checked_at: Option<Instant> = None;
        loop {
            let condition = self.store().condition();
            let is_well = condition.troubles.is_empty();
            let interval = if is_well { CHECK_INTERVAL } else { RECHECK_INTERVAL };
            if checked_at.is_none_or(|at| at.elapsed() >= interval) {
                match self.store().check(CHECK_TIME_MAX).await {
                    Ok(check) => {
                        check
                            .findings
                            .iter()
                            .for_each(|finding| tracing::error!(finding, "the store is damaged"));
                        let failures = check.failures.iter();
                        failures.for_each(|reason| tracing::warn!(reason, "the store could not be checked"));
                    }
                    Err(error) => tracing::warn!(%error, "the store could not be checked"),
                }
                checked_at = Some(Instant::now());
            }
            for row in condition.set_aside {
                if !logged.contains(&row) {
                    let BadRow { table, key, reason } = &row;
                    tracing::error!(
                        table,
                        key,
                        reason,
                        "a row cannot be read and is set aside: run `windlass doctor`"
                    );
                    logged.insert(row);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(TICK) => {}
                () = self.stopped() => return,
            }
        }
    }

    /// The rows that are set aside, in one line.
    pub(crate) fn warning(&self) -> Option<String> {
        let condition = self.store().condition();
        let first = condition.set_aside.first()?;
        let n = condition.set_aside.len() as u64 + condition.n_more_set_aside;
        let rows = if n == 1 { "row" } else { "rows" };
        Some(format!(
            "{n} {rows} of the store cannot be read, the first is {} of `{}`: run `windlass doctor`",
            first.key, first.table
        ))
    }
}
