//! Bulk actions, and samples for charts.

use std::collections::BTreeMap;

use async_trait::async_trait;
use windlass_engine::id::{BulkId, ServerId};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::Memory;
use super::state::MemoryState;
use crate::bulk::{BulkFailure, BulkRow, BulkStore, BulkTarget};
use crate::error::{StoreError, Subject};
use crate::sample::{SampleQuery, SampleRow};

/// A bulk action with the rows that belong to it.
#[derive(Debug)]
pub(super) struct StoredBulk {
    row: BulkRow,
    targets: Vec<Vec<BulkTarget>>,
    failures: BTreeMap<u64, BulkFailure>,
}

/// The bulk actions and the samples of one project.
#[derive(Debug, Default)]
pub(super) struct BulkTables {
    bulks: BTreeMap<BulkId, StoredBulk>,
    /// By subject, minute and server.
    samples: BTreeMap<(String, Timestamp, ServerId), SampleRow>,
}

impl MemoryState {
    pub(super) fn open_bulks(&self, limit: usize) -> Result<Vec<BulkRow>, StoreError> {
        let stored = self.projects.values().flat_map(|tables| tables.bulk_tables.bulks.values());
        let open = stored.map(|stored| &stored.row).filter(|row| row.ended_at.is_none());
        let mut rows: Vec<BulkRow> = open.cloned().collect();
        rows.sort_by_key(|row| row.id);
        rows.truncate(limit);
        Ok(rows)
    }

    pub(super) fn delete_bulks(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let is_old = move |_: &BulkId, stored: &mut StoredBulk| {
            stored.row.ended_at.is_some_and(|ended_at| ended_at < before)
        };
        let tables = self.projects.values_mut();
        Ok(tables.flat_map(|tables| tables.bulk_tables.bulks.extract_if(.., is_old)).take(limit).count())
    }

    pub(super) fn delete_samples(&mut self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let tables = self.projects.values_mut();
        let old = tables
            .flat_map(|tables| tables.bulk_tables.samples.extract_if(.., move |_, row| row.at < before));
        Ok(old.take(limit).count())
    }
}

impl BulkTables {
    pub(super) fn create_bulk(
        &mut self,
        row: BulkRow,
        targets: Vec<Vec<BulkTarget>>,
    ) -> Result<(), StoreError> {
        let failures = BTreeMap::new();
        self.bulks.insert(row.id, StoredBulk { row, targets, failures });
        Ok(())
    }

    pub(super) fn save_bulk(&mut self, row: BulkRow, failures: Vec<BulkFailure>) -> Result<(), StoreError> {
        let what = Subject::Bulk(row.id);
        let conflict = |found: u64| StoreError::Conflict { what, expected: row.rev.0, found };
        let Some(stored) = self.bulks.get_mut(&row.id) else { return Err(conflict(0)) };
        if stored.row.rev != row.rev {
            return Err(conflict(stored.row.rev.0));
        }
        stored.row = BulkRow { rev: row.rev.next(), project: stored.row.project.clone(), ..row };
        stored.failures.extend(failures.into_iter().map(|failure| (failure.no, failure)));
        Ok(())
    }

    pub(super) fn bulk(&self, id: BulkId) -> Result<Option<BulkRow>, StoreError> {
        Ok(self.bulks.get(&id).map(|stored| stored.row.clone()))
    }

    pub(super) fn bulks(&self, before: Option<BulkId>, limit: usize) -> Result<Vec<BulkRow>, StoreError> {
        let newest = self.bulks.values().rev().map(|stored| &stored.row);
        Ok(newest.filter(|row| before.is_none_or(|before| row.id < before)).take(limit).cloned().collect())
    }

    pub(super) fn bulk_targets(&self, id: BulkId, part: usize) -> Result<Vec<BulkTarget>, StoreError> {
        let stored = self.bulks.get(&id);
        Ok(stored.and_then(|stored| stored.targets.get(part)).cloned().unwrap_or_default())
    }

    pub(super) fn bulk_failures(&self, id: BulkId, limit: usize) -> Result<Vec<BulkFailure>, StoreError> {
        let failures = self.bulks.get(&id).into_iter().flat_map(|stored| stored.failures.values());
        Ok(failures.take(limit).cloned().collect())
    }

    pub(super) fn save_samples(&mut self, rows: Vec<SampleRow>) -> Result<(), StoreError> {
        let keyed = rows.into_iter().map(|row| ((row.scope.clone(), row.at, row.server), row));
        self.samples.extend(keyed);
        Ok(())
    }

    pub(super) fn samples(&self, query: SampleQuery) -> Result<Vec<SampleRow>, StoreError> {
        let SampleQuery { scope, since, until } = query;
        let rows = self.samples.values().filter(|row| row.scope == scope);
        Ok(rows.filter(|row| row.at >= since && row.at < until).cloned().collect())
    }
}

macro_rules! forward {
    (
        whole { $($whole:ident($($arg:ident: $type:ty),*) -> $answer:ty;)* }
        project { $($verb:ident($($p_arg:ident: $p_type:ty),*) -> $p_answer:ty;)* }
    ) => {
        #[async_trait]
        impl BulkStore for Memory {
            async fn create_bulk(
                &self,
                project: &Project,
                row: BulkRow,
                targets: Vec<Vec<BulkTarget>>,
            ) -> Result<(), StoreError> {
                let row = BulkRow { project: project.clone(), ..row };
                self.state().tables(project).bulk_tables.create_bulk(row, targets)
            }
            $(
                async fn $whole(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                    self.state().$whole($($arg),*)
                }
            )*
            $(
                async fn $verb(&self, project: &Project, $($p_arg: $p_type),*) -> Result<$p_answer, StoreError> {
                    self.state().tables(project).bulk_tables.$verb($($p_arg),*)
                }
            )*
        }
    };
}

forward! {
    whole {
        open_bulks(limit: usize) -> Vec<BulkRow>;
        delete_bulks(before: Timestamp, limit: usize) -> usize;
        delete_samples(before: Timestamp, limit: usize) -> usize;
    }
    project {
        save_bulk(row: BulkRow, failures: Vec<BulkFailure>) -> ();
        bulk(id: BulkId) -> Option<BulkRow>;
        bulks(before: Option<BulkId>, limit: usize) -> Vec<BulkRow>;
        bulk_targets(id: BulkId, part: usize) -> Vec<BulkTarget>;
        bulk_failures(id: BulkId, limit: usize) -> Vec<BulkFailure>;
        save_samples(rows: Vec<SampleRow>) -> ();
        samples(query: SampleQuery) -> Vec<SampleRow>;
    }
}
