//! The state of runs and messages in the store.

use std::collections::BTreeMap;

use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;
use windlass_store::outbox::MessageId;

use super::SimWorld;

impl SimWorld {
    pub(crate) fn open_runs(&self) -> Vec<RunId> {
        let rows = self.store.rows().into_iter();
        rows.filter(|row| row.projection.status.is_open()).map(|row| row.id).collect()
    }

    /// Messages that are not delivered.
    pub(crate) fn undelivered(&self) -> Vec<MessageId> {
        self.store.outbox(Timestamp(i64::MAX)).into_iter().map(|message| message.id).collect()
    }

    /// Every run replayed from its journal, with the journal.
    pub(crate) fn stored(&self) -> BTreeMap<RunId, (Run, Vec<Entry>)> {
        let rows = self.store.rows().into_iter();
        rows.filter_map(|row| Some((row.id, self.replayed(row.id)?))).collect()
    }

    pub(crate) fn replayed(&self, run: RunId) -> Option<(Run, Vec<Entry>)> {
        let plan = self.plan_of(run)?;
        let entries = self.store.entries(run);
        let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
        let state = Run::replay(run, &plan, events);
        Some((state, entries))
    }
}
