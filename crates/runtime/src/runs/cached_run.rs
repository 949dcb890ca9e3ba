//! Runs in memory, and how they are folded from snapshot and journal.

use std::sync::Arc;

use windlass_engine::counter::Seq;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::journal::{self, Entry};
use windlass_engine::plan::Plan;
use windlass_engine::run::Run;
use windlass_store::projection::Projection;
use windlass_store::run::{Origin, RunRef, RunRow, Since};

use crate::RuntimeError;
use crate::long_work::aside;
use crate::part::RuntimePart;
use crate::runs::RunView;
use crate::runs::Runs;

/// Entries read at once.
const ENTRIES: usize = 1_000;
/// Events that are folded on the thread of the caller: about a millisecond.
const INLINE_EVENTS: usize = 1_000;
/// How often a journal may be shorter than its run says, before it counts as damaged.
const SHORT_MAX: u32 = 3;
/// A snapshot is made no more often than every so many events.
const SNAPSHOT_EVENTS: u64 = 2_000;
/// Bytes of a snapshot that are read in about the time in which an event is folded.
const BYTES_PER_EVENT: u64 = 50;

/// A run in memory, as of its last entry that this server knows.
pub(crate) struct CachedRun {
    pub(crate) run: Run,
    pub(crate) plan: Arc<Plan>,
    pub(crate) projection: Projection,
    pub(crate) flow: FlowId,
    /// Entries in its journal.
    pub(crate) len: Seq,
    last_snapshot: LastSnapshot,
}

/// The newest snapshot of a run.
#[derive(Debug, Clone, Copy, Default)]
struct LastSnapshot {
    /// Events before it.
    n_events: u64,
    n_bytes: usize,
}

impl LastSnapshot {
    /// Whether it is time for the next one. Each snapshot follows at least as many events as came before the last one,
    /// so all of them together cost about as much as the journal. While it is quicker to read the events than a large
    /// snapshot, none is made: its write would hold up the commits of other runs.
    fn is_outgrown(self, n_events: u64) -> bool {
        let n_bytes = u64::try_from(self.n_bytes).unwrap_or(u64::MAX);
        let due_after = SNAPSHOT_EVENTS.max(self.n_events).max(n_bytes / BYTES_PER_EVENT);
        n_events.saturating_sub(self.n_events) >= due_after
    }
}

impl CachedRun {
    /// A run that nothing has happened to.
    fn new(run: RunId, flow: FlowId, plan: Arc<Plan>) -> Self {
        CachedRun {
            run: Run::new(run),
            plan,
            projection: Projection::default(),
            flow,
            len: Seq::ZERO,
            last_snapshot: LastSnapshot::default(),
        }
    }

    /// A snapshot to be stored beside the journal, when that is long enough.
    pub(crate) fn snapshot(&mut self) -> Option<Vec<u8>> {
        if self.run.status.is_ended() || !self.last_snapshot.is_outgrown(self.run.length) {
            return None;
        }
        let bytes = journal::encode_snapshot(&self.run);
        self.last_snapshot = LastSnapshot { n_events: self.run.length, n_bytes: bytes.len() };
        Some(bytes)
    }
}

/// A run folded from its stored journal.
struct Folded {
    run: Run,
    len: Seq,
    last_snapshot: LastSnapshot,
}

impl Runs {
    /// A run that is about to be created.
    pub(crate) async fn fresh(&self, run: RunId, origin: &Origin) -> Result<Box<CachedRun>, RuntimeError> {
        Ok(Box::new(CachedRun::new(run, origin.flow, self.plan(origin.version).await?)))
    }

    /// A run as it is stored; `None` = there is no such run.
    pub(crate) async fn load(&self, run: RunId) -> Result<Option<Box<CachedRun>>, RuntimeError> {
        let Some((row, plan, folded)) = self.fold(run, None).await? else { return Ok(None) };
        let Folded { run: state, len, last_snapshot } = folded;
        let projection = Projection::resume(&plan, &state, &row.projection);
        let flow = row.origin.flow;
        Ok(Some(Box::new(CachedRun { run: state, plan, projection, flow, len, last_snapshot })))
    }

    /// A run as it is stored now.
    pub async fn view(&self, run: RunId) -> Result<Option<RunView>, RuntimeError> {
        let found = self.fold(run, None).await?;
        Ok(found.map(|(row, plan, folded)| RunView { row, plan, state: Arc::new(folded.run) }))
    }

    /// The state of a run after so many entries of its journal; `None` = no such run, or fewer entries.
    pub async fn view_at(&self, run: RunId, len: Seq) -> Result<Option<RunView>, RuntimeError> {
        let found = self.fold(run, Some(len)).await?.filter(|(_, _, folded)| folded.len == len);
        Ok(found.map(|(row, plan, folded)| RunView { row, plan, state: Arc::new(folded.run) }))
    }

    async fn fold(
        &self,
        id: RunId,
        at: Option<Seq>,
    ) -> Result<Option<(RunRow, Arc<Plan>, Folded)>, RuntimeError> {
        let mut n_short = 0;
        loop {
            let Some(row) = self.store().run(self.project(), RunRef::Id(id)).await? else { return Ok(None) };
            let plan = self.plan(row.origin.version).await?;
            // Row and journal are read one after the other: entries in between are left out, unless a snapshot holds
            // them.
            let folded = self.replay(id, &plan, at.unwrap_or(row.len), at.is_none()).await?;
            if at.is_some() || folded.len == row.len {
                return Ok(Some((row, plan, folded)));
            }
            // The journal was read after the row, so it is at least as long, unless the run was deleted meanwhile.
            n_short += u32::from(folded.len < row.len);
            if n_short > SHORT_MAX {
                let reason = format!("it ends with entry {}, and there were {}", folded.len, row.len);
                return Err(RuntimeError::Journal { run: id, reason });
            }
        }
    }

    /// Folds the journal up to this entry, from the newest snapshot on if it may.
    async fn replay(
        &self,
        id: RunId,
        plan: &Arc<Plan>,
        upto: Seq,
        from_snapshot: bool,
    ) -> Result<Folded, RuntimeError> {
        let unreadable = |reason: String| RuntimeError::Journal { run: id, reason };
        let last_snapshot = LastSnapshot::default();
        let mut folded = Folded { run: Run::new(id), len: Seq::ZERO, last_snapshot };
        let mut since = if from_snapshot { Since::Snapshot } else { Since::Entry(Seq::ZERO) };
        while folded.len < upto {
            let part = self.store().journal(self.project(), id, since, ENTRIES).await?;
            if let Some(snapshot) = part.snapshot {
                match journal::decode_snapshot(&snapshot.bytes) {
                    Ok(run) => folded.run = run,
                    Err(error) => {
                        tracing::warn!(run = %id, %error, "a snapshot cannot be read: the whole journal is read");
                        return Box::pin(self.replay(id, plan, upto, false)).await;
                    }
                }
                folded.len = snapshot.seq;
                folded.last_snapshot =
                    LastSnapshot { n_events: folded.run.length, n_bytes: snapshot.bytes.len() };
            }
            let n = part.entries.len();
            let mut expected = folded.len;
            for (seq, _) in &part.entries {
                expected = expected.next();
                if *seq != expected {
                    return Err(unreadable(format!("entry {expected} is missing")));
                }
            }
            folded = fold_entries(self, folded, plan, part.entries, upto).await?;
            if n < ENTRIES {
                break;
            }
            since = Since::Entry(folded.len);
        }
        Ok(folded)
    }
}

/// Folds entries into the state: many of them on a thread for long work.
async fn fold_entries(
    runs: &Runs,
    mut folded: Folded,
    plan: &Arc<Plan>,
    entries: Vec<(Seq, Entry)>,
    upto: Seq,
) -> Result<Folded, RuntimeError> {
    let n_events: usize = entries.iter().map(|(_, entry)| entry.events.len()).sum();
    let plan = plan.clone();
    let fold = move || {
        for (seq, Entry { at, events, .. }) in entries.into_iter().take_while(|(seq, _)| *seq <= upto) {
            events.iter().for_each(|event| folded.run.apply(&plan, event, at));
            folded.len = seq;
        }
        folded
    };
    if n_events < INLINE_EVENTS {
        return Ok(fold());
    }
    let _permit = runs.ctx().long_work.read().await;
    aside(fold).await.ok_or(RuntimeError::Broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_snapshot_is_made_again_only_after_as_many_events_as_are_read_in_its_time() {
        let after = |n_events, n_bytes| {
            let last = LastSnapshot { n_events, n_bytes };
            (0..1_000_000).find(|since| last.is_outgrown(n_events + since)).unwrap()
        };
        assert_eq!(after(0, 0), 2_000);
        assert_eq!(after(2_000, 90_000), 2_000);
        assert_eq!(after(64_000, 90_000), 64_000);
        assert_eq!(after(2_000, 8_600_000), 172_000, "the state of a fan of 100,000 branches");
    }
}
