//! Checks of rows and pages: every row of an open run, an open job, a schedule or a message can be decoded, and the database
//! can read its own pages.

use std::time::Duration;

use windlass_store::StoreError;
use windlass_store::condition::BadRow;
use windlass_store::job::{JobQuery, JobStatus};
use windlass_store::page::{NameRange, Order, Part};
use windlass_store::worker::WorkerQuery;

use super::{DoctorFinding, DoctorReport, FINDINGS_MAX, PAGE_SIZE, PageCheck};
use crate::RuntimeError;
use crate::doctor::Doctor;
use crate::part::RuntimePart;

/// How long the pages of the database are checked.
pub(super) const CHECK_TIME_MAX: Duration = Duration::from_secs(10);
/// Messages that are read.
const MESSAGES_MAX: usize = 10_000;
/// The remedy for stored data that cannot be read.
pub(super) const RESTORE: &str =
    "restore the store from a backup, or delete the row (docs/recovery.md, Rows that cannot be read)";

impl Doctor {
    /// Reads every row that work depends on, and reports those that readers set aside.
    pub(super) async fn examine_rows(&self, report: &mut DoctorReport) -> Result<(), RuntimeError> {
        let findings = &mut report.findings;
        match self.read_all_rows().await {
            Err(error @ StoreError::Damaged(_)) => findings.push(damage(error.to_string())),
            done => done?,
        }
        let condition = self.store().condition();
        for row in &condition.set_aside {
            // The journal of an open run is reported with its run.
            let is_told = |found: &DoctorFinding| {
                row.table == "journal" && row.key.split('/').next() == Some(found.subject.as_str())
            };
            if findings.len() < FINDINGS_MAX && !findings.iter().any(is_told) {
                findings.push(of_row(row));
            }
        }
        if condition.n_more_set_aside > 0 {
            let what = format!("{} more rows cannot be read", condition.n_more_set_aside);
            findings.push(DoctorFinding::about("store", what));
        }
        match self.store().check(CHECK_TIME_MAX).await {
            Ok(check) => {
                findings.extend(check.findings.into_iter().map(damage));
                let (n_checked, n_tables) = (check.n_checked, check.n_tables);
                report.pages = PageCheck { n_checked, n_tables, failures: check.failures };
            }
            Err(error) => report.pages.failures.push(error.to_string()),
        }
        Ok(())
    }

    async fn read_all_rows(&self) -> Result<(), StoreError> {
        let (store, project, now) = (self.store(), self.project(), self.clock().now());
        let part = Part { order: Order::Oldest, limit: PAGE_SIZE, ..Part::default() };
        let statuses = JobStatus::ALL.into_iter().filter(|status| status.is_open()).collect();
        let mut query = JobQuery { statuses, part: part.clone(), ..JobQuery::default() };
        while let Some(next) = store.jobs(project, query.clone()).await?.next {
            query.part.cursor = Some(next);
        }
        let mut part = part;
        while let Some(next) = store.schedules(project, part.clone()).await?.next {
            part.cursor = Some(next);
        }
        store.outbox(now, None, MESSAGES_MAX).await?;
        let ids = NameRange::All;
        store.workers(project, WorkerQuery { ids, ..WorkerQuery::default() }).await?;
        store.services(project, NameRange::All).await?;
        store.queues(project, NameRange::All, now).await?;
        store.prices(project).await?;
        Ok(())
    }
}

/// Damage below the tables.
pub(super) fn damage(what: String) -> DoctorFinding {
    let remedy = Some("restore the store from a backup (docs/recovery.md, Damaged pages)".to_owned());
    DoctorFinding { remedy, ..DoctorFinding::about("store", what) }
}

fn of_row(row: &BadRow) -> DoctorFinding {
    let BadRow { table, key: subject, reason } = row;
    let what = format!("the row in `{table}` cannot be read and is set aside: {reason}");
    DoctorFinding { remedy: Some(RESTORE.to_owned()), ..DoctorFinding::about(subject, what) }
}
