//! When each schedule has to be looked at: an index in memory over the store, and the loop that goes by it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use windlass_engine::id::ScheduleId;
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;
use windlass_store::schedule::{Scheduled, Started};

use crate::job::many::each;
use crate::{Runtime, RuntimeError};

/// How often all schedules are read: others may have changed some, and what was told in memory may have been missed.
const READ: Duration = Duration::from_secs(30);
/// How often those are read whose slots wait for the end of something that another server may see.
const READ_WAITING: Duration = Duration::from_secs(1);
/// How long after another server has written to some they are read, so that many writes are one reading.
const READ_SOON: Duration = Duration::from_secs(1);
/// When to try again what the store could not take.
const AGAIN: Duration = Duration::from_secs(1);
/// Schedules that are looked at at once: those of a full hour share the transactions of the store.
const AT_ONCE: usize = 64;
/// Due whatever the time is.
const AT_ONCE_DUE: Timestamp = Timestamp(i64::MIN);

/// What is known of schedules without asking.
#[derive(Default)]
pub(crate) struct Calendar {
    inside: Mutex<Inside>,
    sooner: Notify,
    /// Another server has written to some.
    pub(crate) written: Notify,
    /// How much is watched, so that ends of other things cost no lock.
    n_watched: AtomicUsize,
}

#[derive(Default)]
struct Inside {
    known: HashMap<ScheduleId, Known>,
    order: BTreeSet<(Timestamp, ScheduleId)>,
    /// What slots wait for the end of.
    watched: BTreeMap<Started, ScheduleId>,
}

#[derive(Clone, Copy, Default)]
struct Known {
    rev: u64,
    /// As it stands in the order.
    at: Option<Timestamp>,
    /// Slots wait for what is running.
    waits: bool,
    /// It was left to another server for a moment.
    is_deferred: bool,
}

impl Calendar {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many schedules there are.
    pub(super) fn len(&self) -> usize {
        self.inside().known.len()
    }

    /// A schedule as it was read or written; what is known already may be newer.
    pub(super) fn set(&self, scheduled: &Scheduled) {
        let Scheduled { rev, row, running } = scheduled;
        let waits = !row.progress.waiting.is_empty();
        // Whatever they waited for has ended.
        let at = if waits && running.is_empty() { Some(AT_ONCE_DUE) } else { row.next_at };
        let mut inside = self.inside();
        let known = inside.known.get(&row.id()).copied();
        if known.is_some_and(|known| known.rev > *rev) {
            return;
        }
        // An end that was heard of since this was read is not forgotten.
        let at = if waits && known.is_some_and(|known| known.at == Some(AT_ONCE_DUE)) {
            Some(AT_ONCE_DUE)
        } else {
            at
        };
        inside.put(row.id(), Known { rev: *rev, at, waits, is_deferred: false });
        if !waits {
            inside.watched.retain(|_, schedule| *schedule != row.id());
        }
        self.changed(&inside);
    }

    /// There is no such schedule any more.
    pub(super) fn forget(&self, id: ScheduleId) {
        let mut inside = self.inside();
        inside.remove(id);
        inside.watched.retain(|_, schedule| *schedule != id);
        self.changed(&inside);
    }

    /// Looks at a schedule at this time, whatever it says itself.
    fn look_at(&self, id: ScheduleId, at: Timestamp) {
        let mut inside = self.inside();
        let known = inside.known.get(&id).copied().unwrap_or_default();
        inside.put(id, Known { at: Some(at), ..known });
        self.changed(&inside);
    }

    /// When the next one is due.
    fn next(&self) -> Option<Timestamp> {
        self.inside().order.first().map(|(at, _)| *at)
    }

    /// Leaves those whose time has come to other servers for so long each, once.
    fn defer(&self, now: Timestamp, delay_ms: impl Fn(ScheduleId) -> u64) {
        let mut inside = self.inside();
        let due: Vec<ScheduleId> =
            inside.order.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect();
        for id in due {
            let (known, delay_ms) = (inside.known.get(&id).copied().unwrap_or_default(), delay_ms(id));
            if delay_ms > 0 && !known.is_deferred && known.at > Some(AT_ONCE_DUE) {
                inside.put(id, Known { at: Some(now.after(delay_ms)), is_deferred: true, ..known });
            }
        }
    }

    /// Those whose time has come. Each has to be set again by whoever looks at it.
    fn take_due(&self, now: Timestamp) -> Vec<ScheduleId> {
        let mut inside = self.inside();
        let mut due = Vec::new();
        while let Some((_, id)) = inside.order.first().copied().filter(|(at, _)| *at <= now) {
            due.push(id);
            if let Some(known) = inside.known.get(&id).copied() {
                inside.put(id, Known { at: None, ..known });
            }
        }
        due
    }

    /// Looks at the schedule again as soon as one of these ends.
    pub(super) fn watch(&self, id: ScheduleId, running: impl IntoIterator<Item = Started>) {
        let mut inside = self.inside();
        inside.watched.extend(running.into_iter().map(|started| (started, id)));
        self.changed(&inside);
    }

    /// Whether a slot waits for the end of this.
    pub(crate) fn watches(&self, started: Started) -> bool {
        self.n_watched.load(Ordering::Acquire) > 0 && self.inside().watched.contains_key(&started)
    }

    /// What slots wait for the end of.
    pub(crate) fn watched(&self) -> Vec<Started> {
        self.inside().watched.keys().copied().collect()
    }

    /// Something has ended.
    pub(crate) fn ended(&self, started: Started) {
        if self.n_watched.load(Ordering::Acquire) == 0 {
            return;
        }
        let schedule = self.inside().watched.remove(&started);
        if let Some(id) = schedule {
            self.look_at(id, AT_ONCE_DUE);
        }
    }

    /// These changes of jobs have become durable: some may have ended.
    pub(crate) fn jobs_moved(&self, changes: &[JobChange]) {
        if self.n_watched.load(Ordering::Acquire) == 0 {
            return;
        }
        for change in changes.iter().filter(|change| !change.job.is_open()) {
            self.ended(Started::Job(change.job.id));
        }
    }

    /// Schedules whose slots wait.
    fn waiting(&self) -> Vec<ScheduleId> {
        let inside = self.inside();
        inside.known.iter().filter(|(_, known)| known.waits).map(|(id, _)| *id).collect()
    }

    fn ids(&self) -> Vec<ScheduleId> {
        self.inside().known.keys().copied().collect()
    }

    fn changed(&self, inside: &Inside) {
        self.n_watched.store(inside.watched.len(), Ordering::Release);
        self.sooner.notify_one();
    }
}

impl Inside {
    fn put(&mut self, id: ScheduleId, known: Known) {
        self.remove(id);
        self.order.extend(known.at.map(|at| (at, id)));
        self.known.insert(id, known);
    }

    fn remove(&mut self, id: ScheduleId) {
        if let Some(Known { at: Some(at), .. }) = self.known.remove(&id) {
            self.order.remove(&(at, id));
        }
    }
}

impl Runtime {
    /// Fires schedules when their time has come.
    pub(crate) async fn keep_schedules(self) {
        let mut read_at = tokio::time::Instant::now();
        loop {
            if tokio::time::Instant::now() >= read_at {
                let is_read =
                    noted("schedules could not be read, will try again", self.read_schedules().await);
                read_at = tokio::time::Instant::now() + if is_read { READ } else { AGAIN };
            }
            let due = self.calendar().next().map_or(READ, |at| self.clock().until(at));
            let waits = !self.is_alone() && !self.calendar().waiting().is_empty();
            tokio::select! {
                () = tokio::time::sleep(due) => {}
                () = tokio::time::sleep_until(read_at) => continue,
                () = tokio::time::sleep(READ_WAITING), if waits => {
                    let read = self.read_waiting().await;
                    noted("schedules that wait could not be read, will try again", read);
                    continue;
                }
                () = self.calendar().sooner.notified() => continue,
                () = self.calendar().written.notified() => {
                    read_at = read_at.min(tokio::time::Instant::now() + READ_SOON);
                    continue;
                }
                () = self.stopped() => return,
            }
            let now = self.clock().now();
            self.calendar().defer(now, |id| self.peers().delay_ms(id.uuid()));
            self.fire_due(now).await;
        }
    }

    /// Learns whether what slots wait for has ended at another server.
    async fn read_waiting(&self) -> Result<(), RuntimeError> {
        for id in self.calendar().waiting() {
            match self.store().schedules(Some(id)).await?.pop() {
                Some(scheduled) => self.calendar().set(&scheduled),
                None => self.calendar().forget(id),
            }
        }
        Ok(())
    }

    /// Learns of all schedules that are stored.
    pub(super) async fn read_schedules(&self) -> Result<(), RuntimeError> {
        let before = self.calendar().ids();
        let all = self.store().schedules(None).await?;
        all.iter().for_each(|scheduled| self.calendar().set(scheduled));
        let there: BTreeSet<ScheduleId> = all.iter().map(|scheduled| scheduled.row.id()).collect();
        // Whatever was made meanwhile was not known before.
        before.into_iter().filter(|id| !there.contains(id)).for_each(|id| self.calendar().forget(id));
        Ok(())
    }

    /// Fires everything that is due at `now`; `false` = for some that could not be done, and is tried again.
    pub(super) async fn fire_due(&self, now: Timestamp) -> bool {
        let due = self.calendar().take_due(now);
        let fire = |id| {
            let runtime = self.clone();
            async move { runtime.fire(id, now).await }
        };
        let mut is_done = true;
        for (id, fired) in due.iter().zip(each(due.clone(), AT_ONCE, fire).await) {
            if matches!(fired, Some(Ok(()))) {
                continue;
            }
            if let Some(Err(error)) = fired {
                tracing::warn!(schedule = %id, %error, "a schedule could not be looked at; it is tried again");
            }
            is_done = false;
            let again = u64::try_from(AGAIN.as_millis()).unwrap_or(u64::MAX);
            self.calendar().look_at(*id, self.clock().now().after(again));
        }
        is_done
    }
}

/// Whether it went well; if not, the log says so.
fn noted(what: &str, done: Result<(), RuntimeError>) -> bool {
    done.inspect_err(|error| tracing::warn!(%error, "{what}")).is_ok()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;
    use windlass_engine::id::{JobId, RunId};
    use windlass_engine::schedule::{Catchup, Cron, Overlap, Progress, Schedule};
    use windlass_store::schedule::{History, ScheduleRow};

    use super::*;

    fn id(n: u128) -> ScheduleId {
        ScheduleId::new(Uuid::from_u128(n))
    }

    #[test]
    fn schedules_are_due_in_order_and_once() {
        let calendar = Calendar::default();
        calendar.look_at(id(1), Timestamp(20));
        calendar.look_at(id(2), Timestamp(10));
        calendar.look_at(id(3), Timestamp(30));
        calendar.look_at(id(2), Timestamp(15));
        assert_eq!(calendar.next(), Some(Timestamp(15)));
        assert_eq!(calendar.take_due(Timestamp(20)), [id(2), id(1)]);
        assert_eq!(calendar.take_due(Timestamp(20)), []);
        calendar.forget(id(3));
        assert_eq!((calendar.next(), calendar.len()), (None, 2));
    }

    #[test]
    fn the_end_of_what_is_waited_for_makes_a_schedule_due() {
        let calendar = Calendar::default();
        let (run, other) =
            (Started::Run(RunId::new(Uuid::from_u128(1))), Started::Run(RunId::new(Uuid::from_u128(2))));
        calendar.look_at(id(1), Timestamp(20));
        calendar.watch(id(1), [run]);
        calendar.ended(other);
        assert_eq!(calendar.take_due(Timestamp(0)), []);
        calendar.ended(run);
        assert_eq!(calendar.take_due(Timestamp(0)), [id(1)]);
        calendar.ended(run);
        assert_eq!(calendar.take_due(Timestamp(0)), []);
    }
    #[test]
    fn an_end_that_is_heard_while_the_schedule_is_written_is_not_forgotten() {
        let (calendar, job) = (Calendar::default(), Started::Job(JobId::new(Uuid::from_u128(7))));
        let cron = Cron::parse("0 0 * * *", "UTC").unwrap();
        let schedule = Schedule {
            id: id(1),
            cron,
            enabled: true,
            overlap: Overlap::Queue,
            catchup: Catchup::None,
            window_ms: 0,
        };
        let row = ScheduleRow {
            schedule,
            name: String::new(),
            target: serde_json::Value::Null,
            progress: Progress { last_slot: None, waiting: vec![Timestamp(5)] },
            next_at: Some(Timestamp(1_000)),
            history: History::default(),
            created_at: Timestamp(0),
            updated_at: Timestamp(0),
        };
        let read = Scheduled { rev: 1, row, running: vec![job] };
        calendar.set(&read);
        calendar.watch(id(1), [job]);
        calendar.ended(job);
        calendar.set(&read);
        assert_eq!(calendar.take_due(Timestamp(0)), [id(1)]);
        calendar.set(&read);
        assert_eq!(calendar.take_due(Timestamp(0)), [], "it was looked at since");
    }
}
