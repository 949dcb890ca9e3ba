//! The calendar of schedules: an index of their due times in memory, and the loop that fires due ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use windlass_engine::counter::Revision;
use windlass_engine::id::ScheduleId;
use windlass_engine::schedule::BACK_MS_MAX;
use windlass_engine::time::{LATEST, Timestamp};
use windlass_store::StoreError;
use windlass_store::commit::JobChange;
use windlass_store::page::{Order, PAGE_MAX, Part};
use windlass_store::schedule::{Scheduled, Started};

use crate::RuntimeError;
use crate::bounded::map_concurrent;
use crate::part::RuntimePart;
use crate::schedules::Schedules;

/// How often all schedules are read: other servers may have changed some, and a notification may have been missed.
const READ_INTERVAL: Duration = Duration::from_secs(30);
/// How often schedules are read that wait for the end of a run or job that another server may see.
const READ_WAITING_INTERVAL: Duration = Duration::from_secs(1);
/// How long after another server has written to some they are read, so that many writes are one reading.
const READ_DELAY: Duration = Duration::from_secs(1);
/// How often the clock is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The delay before a failed write is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Schedules that are fired at once: those of a full hour share the transactions of the store.
const CONCURRENCY: usize = 64;
/// Due at any time.
const DUE_NOW: Timestamp = Timestamp(i64::MIN);

/// The index of schedules by due time.
#[derive(Default)]
pub(super) struct Calendar {
    inside: Mutex<CalendarState>,
    sooner: Notify,
    /// Another server has written to some.
    pub(super) written: Notify,
    /// How much is watched, so that ends of other things cost no lock.
    n_watched: AtomicUsize,
}

#[derive(Default)]
struct CalendarState {
    known: HashMap<ScheduleId, KnownSchedule>,
    order: BTreeSet<(Timestamp, ScheduleId)>,
    /// The runs and jobs that slots wait for.
    watched: BTreeMap<Started, ScheduleId>,
}

#[derive(Clone, Copy, Default)]
struct KnownSchedule {
    rev: Revision,
    /// As it stands in the order.
    at: Option<Timestamp>,
    /// Slots wait for the end of a run or job.
    waits: bool,
    /// It was left to another server for a moment.
    is_deferred: bool,
}

impl Calendar {
    fn inside(&self) -> MutexGuard<'_, CalendarState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many schedules there are.
    pub(super) fn len(&self) -> usize {
        self.inside().known.len()
    }

    /// Sets a schedule as it was read or written; a known one may be newer.
    pub(super) fn set(&self, scheduled: &Scheduled, wall: Timestamp) {
        let Scheduled { rev, row, running, .. } = scheduled;
        let waits = !row.progress.waiting.is_empty();
        // The run or job that they waited for has ended, or a clock that was wrong decided about slots to come.
        let is_due = waits && running.is_empty() || row.progress.is_ahead_of(wall);
        let at = if is_due { Some(DUE_NOW) } else { row.next_at };
        let mut inside = self.inside();
        let known = inside.known.get(&row.id()).copied();
        if known.is_some_and(|known| known.rev > *rev) {
            return;
        }
        // Keeps an end that was reported after this row was read.
        let at =
            if waits && known.is_some_and(|known| known.at == Some(DUE_NOW)) { Some(DUE_NOW) } else { at };
        inside.put(row.id(), KnownSchedule { rev: *rev, at, waits, is_deferred: false });
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

    /// Makes a schedule due at this time.
    fn look_at(&self, id: ScheduleId, at: Timestamp) {
        let mut inside = self.inside();
        let known = inside.known.get(&id).copied().unwrap_or_default();
        inside.put(id, KnownSchedule { at: Some(at), ..known });
        self.changed(&inside);
    }

    /// When the next one is due.
    fn next(&self) -> Option<Timestamp> {
        self.inside().order.first().map(|(at, _)| *at)
    }

    /// Defers due schedules by the delay of this server, once each.
    fn defer(&self, now: Timestamp, delay_ms: impl Fn(ScheduleId) -> u64) {
        let mut inside = self.inside();
        let due: Vec<ScheduleId> =
            inside.order.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect();
        for id in due {
            let (known, delay_ms) = (inside.known.get(&id).copied().unwrap_or_default(), delay_ms(id));
            if delay_ms > 0 && !known.is_deferred && known.at > Some(DUE_NOW) {
                inside.put(id, KnownSchedule { at: Some(now.after(delay_ms)), is_deferred: true, ..known });
            }
        }
    }

    /// The due schedules. The caller has to set each of them again.
    fn take_due(&self, now: Timestamp) -> Vec<ScheduleId> {
        let mut inside = self.inside();
        let mut due = Vec::new();
        while let Some((_, id)) = inside.order.first().copied().filter(|(at, _)| *at <= now) {
            due.push(id);
            if let Some(known) = inside.known.get(&id).copied() {
                inside.put(id, KnownSchedule { at: None, ..known });
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
    pub(super) fn watches(&self, started: Started) -> bool {
        self.n_watched.load(Ordering::Acquire) > 0 && self.inside().watched.contains_key(&started)
    }

    /// The runs and jobs that slots wait for.
    pub(super) fn watched(&self) -> Vec<Started> {
        self.inside().watched.keys().copied().collect()
    }

    /// Something has ended.
    pub(super) fn ended(&self, started: Started) {
        if self.n_watched.load(Ordering::Acquire) == 0 {
            return;
        }
        let schedule = self.inside().watched.remove(&started);
        if let Some(id) = schedule {
            self.look_at(id, DUE_NOW);
        }
    }

    /// These changes of jobs have become durable: some may have ended.
    pub(super) fn jobs_moved(&self, changes: &[JobChange]) {
        if self.n_watched.load(Ordering::Acquire) == 0 {
            return;
        }
        for change in changes.iter().filter(|change| !change.job.is_open()) {
            self.ended(Started::Job(change.job.id));
        }
    }

    /// Schedules with waiting slots.
    fn waiting(&self) -> Vec<ScheduleId> {
        let inside = self.inside();
        inside.known.iter().filter(|(_, known)| known.waits).map(|(id, _)| *id).collect()
    }

    fn ids(&self) -> Vec<ScheduleId> {
        self.inside().known.keys().copied().collect()
    }

    fn changed(&self, inside: &CalendarState) {
        self.n_watched.store(inside.watched.len(), Ordering::Release);
        self.sooner.notify_one();
    }
}

impl CalendarState {
    fn put(&mut self, id: ScheduleId, known: KnownSchedule) {
        self.remove(id);
        self.order.extend(known.at.map(|at| (at, id)));
        self.known.insert(id, known);
    }

    fn remove(&mut self, id: ScheduleId) {
        if let Some(KnownSchedule { at: Some(at), .. }) = self.known.remove(&id) {
            self.order.remove(&(at, id));
        }
    }
}

impl Schedules {
    /// Enters a schedule into the calendar as it was read or written.
    pub(super) fn learn(&self, scheduled: &Scheduled) {
        self.state().calendar.set(scheduled, self.clock().wall());
    }

    /// Fires schedules when their time has come.
    pub(crate) async fn schedule_loop(self) {
        let mut read_at = tokio::time::Instant::now();
        let mut wall = self.clock().wall();
        loop {
            let before = std::mem::replace(&mut wall, self.clock().wall());
            if before.since(wall) > BACK_MS_MAX {
                // Slots were decided by a clock that was wrong.
                read_at = tokio::time::Instant::now();
            }
            if tokio::time::Instant::now() >= read_at {
                let is_read =
                    noted("schedules could not be read, will try again", self.read_schedules().await);
                read_at = tokio::time::Instant::now() + if is_read { READ_INTERVAL } else { RETRY_DELAY };
            }
            let due = self.state().calendar.next().unwrap_or(LATEST);
            let looked = tokio::time::Instant::now();
            let waits = self.is_shared() && !self.state().calendar.waiting().is_empty();
            tokio::select! {
                () = self.clock().sleep_until_wall(due) => {}
                // A clock that is set back is noticed soon.
                () = tokio::time::sleep_until(read_at.min(looked + LOOK_INTERVAL)) => continue,
                () = tokio::time::sleep(READ_WAITING_INTERVAL), if waits => {
                    let read = self.read_waiting().await;
                    noted("schedules that wait could not be read, will try again", read);
                    continue;
                }
                () = self.state().calendar.sooner.notified() => continue,
                () = self.state().calendar.written.notified() => {
                    read_at = read_at.min(tokio::time::Instant::now() + READ_DELAY);
                    continue;
                }
                () = self.stopped() => return,
            }
            let now = self.clock().wall();
            self.state().calendar.defer(now, |id| self.cluster().delay_ms(id.uuid()));
            self.fire_due(now).await;
        }
    }

    /// Reads schedules with waiting slots: the run or job may have ended at another server.
    async fn read_waiting(&self) -> Result<(), RuntimeError> {
        for id in self.state().calendar.waiting() {
            match self.show(id).await? {
                Some(scheduled) => self.learn(&scheduled),
                None => self.state().calendar.forget(id),
            }
        }
        Ok(())
    }

    /// Learns of all schedules that are stored.
    pub(super) async fn read_schedules(&self) -> Result<(), RuntimeError> {
        let before = self.state().calendar.ids();
        let mut there: BTreeSet<ScheduleId> = BTreeSet::new();
        let mut part = Part { order: Order::Oldest, limit: PAGE_MAX, ..Part::default() };
        loop {
            let page = self.list(part.clone()).await?;
            page.items.iter().for_each(|scheduled| self.learn(scheduled));
            there.extend(page.items.iter().map(|scheduled| scheduled.row.id()));
            if page.next.is_none() {
                break;
            }
            part.cursor = page.next;
        }
        // A schedule that was made meanwhile was not known before.
        before.into_iter().filter(|id| !there.contains(id)).for_each(|id| self.state().calendar.forget(id));
        Ok(())
    }

    /// Fires everything that is due when the wall clock shows `now`; `false` = for some that could not be done, and is tried again.
    pub(super) async fn fire_due(&self, now: Timestamp) -> bool {
        let due = self.state().calendar.take_due(now);
        let fire = |id| {
            let schedules = self.clone();
            async move { schedules.fire(id, now).await }
        };
        let mut is_done = true;
        for (id, fired) in due.iter().zip(map_concurrent(due.clone(), CONCURRENCY, fire).await) {
            if matches!(fired, Some(Ok(()))) {
                continue;
            }
            if let Some(Err(RuntimeError::Store(StoreError::Corrupt(reason)))) = &fired {
                tracing::error!(schedule = %id, reason, "a schedule cannot be read and is set aside: run `windlass doctor`");
                self.state().calendar.forget(*id);
                continue;
            }
            if let Some(Err(error)) = fired {
                tracing::warn!(schedule = %id, %error, "a schedule could not be fired; it is retried");
            }
            is_done = false;
            let again = u64::try_from(RETRY_DELAY.as_millis()).unwrap_or(u64::MAX);
            self.state().calendar.look_at(*id, self.clock().wall().after(again));
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
    fn the_end_of_an_awaited_run_makes_a_schedule_due() {
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
        let read = Scheduled {
            project: windlass_engine::project::Project::DEFAULT,
            rev: Revision(1),
            row,
            running: vec![job],
        };
        calendar.set(&read, Timestamp(5));
        calendar.watch(id(1), [job]);
        calendar.ended(job);
        calendar.set(&read, Timestamp(5));
        assert_eq!(calendar.take_due(Timestamp(0)), [id(1)]);
        calendar.set(&read, Timestamp(5));
        assert_eq!(calendar.take_due(Timestamp(0)), [], "it was looked at since");
    }
}
