//! What others call: one lock around the index, and a future for whoever waits.

mod elsewhere;
mod fill;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_store::job::JobRow;
use windlass_store::queue::{QueueLimits, Spent};

use crate::index::{Index, Servers};
use crate::timers::Timers;

pub use fill::{Answer, Fill, Question};

/// Whose jobs somebody asks for: a job matches by its queue or by its name as a service.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    pub queues: Vec<String>,
    pub services: Vec<String>,
}

impl Query {
    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.services.is_empty()
    }
}

/// How much is kept in memory.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Jobs that are ready, and as many again that run or wait.
    pub rows: usize,
    /// Bytes of their payloads, for each of the two.
    pub bytes: usize,
    /// Jobs that are read from the store at once.
    pub fill_rows: usize,
    /// A claim gets no further job once those it got are so large together.
    pub take_bytes: usize,
    /// Wake-ups of jobs.
    pub timers: usize,
    /// Claims that wait.
    pub waiters: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            rows: 100_000,
            bytes: 128 << 20,
            fill_rows: 4_000,
            take_bytes: 16 << 20,
            timers: 200_000,
            waiters: 20_000,
        }
    }
}

/// With fewer than this, whoever is not alone reads more before it is needed.
const LOW_SHARED: usize = 64;

/// Hands out jobs.
#[derive(Debug)]
pub struct Dispatch {
    state: Mutex<State>,
    waiters_max: usize,
    /// With fewer than this, more is read before it is needed.
    low: usize,
}

#[derive(Debug)]
struct State {
    index: Index,
    timers: Timers,
}

impl State {
    fn next_wake(&self) -> Option<Timestamp> {
        [self.timers.next(), self.index.next_opening()].into_iter().flatten().min()
    }
}

/// What became of an attempt to take jobs.
#[derive(Debug)]
pub enum Take<'a> {
    /// They are nobody else's until the claim is reported: by [`Dispatch::offer`] with what became of each, or by
    /// [`Dispatch::put_back`].
    Jobs(Taken),
    /// The store may have more: read it, say so, and take again.
    Fill(Fill<'a>),
    /// There is nothing; something will be said when there is.
    Wait(Waiter<'a>),
    /// There is nothing, and too many wait for something already.
    Crowded,
}

/// Jobs that somebody is given.
#[derive(Debug)]
pub struct Taken {
    pub rows: Vec<Arc<JobRow>>,
    /// What they used up of rates; to be written before anybody hears of them.
    pub spent: Vec<Spent>,
    /// Queues that other servers hand out from too: each is a turn, that nobody else may have had.
    pub turns: Vec<Turn>,
    /// The next wake-up is earlier than before: somebody else waits for what a limit will allow.
    pub is_sooner: bool,
}

/// Jobs of a queue that other servers hand out from too, as it was when they were taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub queue: String,
    pub(crate) count: u64,
}

impl Dispatch {
    /// An index that knows nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self::begin(limits, false)
    }

    /// An index for whoever has the store for itself and says at once, by [`Dispatch::doubt_queues`], where something
    /// is ready in it: everything else it will be told of.
    pub fn alone(limits: Limits) -> Self {
        Self::begin(limits, true)
    }

    fn begin(limits: Limits, is_all: bool) -> Self {
        // Whoever is not alone never knows everything for long: with little left, it would read all the time.
        let low = if is_all { limits.fill_rows / 4 } else { LOW_SHARED.min(limits.fill_rows / 4) };
        let waiters_max = limits.waiters;
        let state = State { timers: Timers::new(limits.timers), index: Index::new(limits, is_all) };
        Dispatch { state: Mutex::new(state), waiters_max, low }
    }

    /// Jobs as they are from now on: those that can be claimed are handed out, ended ones are forgotten. Older news
    /// of a job is no news. `true` if the next wake-up is earlier than before.
    pub fn offer(&self, rows: impl IntoIterator<Item = JobRow>) -> bool {
        let mut state = self.lock();
        let before = state.timers.next();
        for row in rows {
            let (id, rev, wake_at) = (row.id(), row.rev, row.job.wake_at());
            let is_news = if row.job.is_open() {
                state.index.offer(Arc::new(row))
            } else {
                state.index.forget(id, rev)
            };
            if is_news {
                state.timers.set(id, wake_at);
            }
        }
        is_earlier(state.timers.next(), before)
    }

    /// Jobs that have ended with this revision: the same as offering them, without having to have them.
    pub fn ended(&self, jobs: impl IntoIterator<Item = (JobId, u64)>) {
        let mut state = self.lock();
        for (id, rev) in jobs {
            if state.index.forget(id, rev) {
                state.timers.set(id, None);
            }
        }
    }

    /// There is no such job any more.
    pub fn forget(&self, id: JobId) {
        let mut state = self.lock();
        state.index.forget(id, u64::MAX);
        state.timers.set(id, None);
    }

    /// A job as it was last heard of, if it is kept.
    pub fn row(&self, id: JobId) -> Option<Arc<JobRow>> {
        self.lock().index.row(id).cloned()
    }

    /// Takes jobs in order: higher priority first, then the earlier due, then the smaller id; of a queue whose limit
    /// keys take turns, the key that had its turn longest ago. Never more than the limits of their queues allow, as
    /// long as everybody who hands out its jobs does it here. With `may_fill`, what the store may have is asked for
    /// before others are. `ticket` is that of an earlier wait of the same claim.
    pub fn take(
        &self,
        query: &Arc<Query>,
        max: usize,
        may_fill: bool,
        ticket: Option<u64>,
        now: Timestamp,
    ) -> Take<'_> {
        let mut state = self.lock();
        state.index.open(now);
        if may_fill {
            // What was just read is used once, however long that took.
            state.index.recount_stale(query, now);
            state.index.doubt_others(query, now);
        }
        if may_fill && let Some(fill) = self.fill(&mut state, query, 1, now) {
            return Take::Fill(fill);
        }
        let before = state.next_wake();
        let rows = state.index.take(query, max, now);
        if !rows.is_empty() {
            let (spent, is_sooner) = (state.index.spent(&rows), is_earlier(state.next_wake(), before));
            let turns = state.index.turns(&rows);
            return Take::Jobs(Taken { rows, spent, turns, is_sooner });
        }
        if state.index.line.len() >= self.waiters_max {
            return Take::Crowded;
        }
        let (ticket, woken) = state.index.line.join(query.clone(), ticket);
        let is_shared = state.index.is_shared(query) || state.index.leaves_some(query, now);
        let is_sure = state.index.is_sure(query);
        let query = query.clone();
        Take::Wait(Waiter { dispatch: self, query, ticket, woken, is_heard: false, is_sure, is_shared })
    }

    /// Whether so little is left of what the query asks for that more should be read.
    pub fn is_low(&self, query: &Query) -> bool {
        self.lock().index.is_low(query, self.low)
    }

    /// Something to be read from the store before whoever asks next has to wait for it.
    pub fn fill_ahead(&self, query: &Query, now: Timestamp) -> Option<Fill<'_>> {
        self.fill(&mut self.lock(), query, self.low, now)
    }

    fn fill(&self, state: &mut State, query: &Query, n: usize, now: Timestamp) -> Option<Fill<'_>> {
        state.index.pace(query, n, now);
        let wants = state.index.begin_filling(query, n);
        (!wants.is_empty()).then(|| Fill::new(self, wants))
    }

    /// The claims of these came to nothing.
    pub fn put_back(&self, rows: &[Arc<JobRow>]) {
        self.lock().index.put_back(rows);
    }

    /// The claim of this one came to nothing, and it is nobody's to claim any more.
    pub fn give_up(&self, row: &JobRow) {
        self.lock().index.give_up(row);
    }

    /// Pauses a queue or resumes it. The store must know already.
    pub fn pause(&self, queue: &str, is_paused: bool) {
        self.lock().index.pause(queue, is_paused);
    }

    /// Sets what holds a queue back; nothing by default. The store must know already. What is handed out counts, and
    /// what was before is asked of the store by whoever claims next.
    pub fn limit(&self, queue: &str, limits: QueueLimits, now: Timestamp) {
        self.lock().index.limit(queue, limits, now);
    }

    /// So much of the rates of queues was used up before.
    pub fn restore(&self, spent: &[Spent], now: Timestamp) {
        let mut state = self.lock();
        spent.iter().for_each(|spent| state.index.restore(spent, now));
    }

    /// Wakes whoever waits for what limits allow by now.
    pub fn open_limits(&self, now: Timestamp) {
        self.lock().index.open(now);
    }

    /// Something may have got lost: where there is nothing, the store is asked again.
    pub fn doubt(&self) {
        self.lock().index.doubt();
    }

    /// The store has ready jobs of these queues: where none is known, it is asked.
    pub fn doubt_queues(&self, queues: &[String]) {
        self.lock().index.doubt_queues(queues);
    }

    /// Another server has ready jobs of these queues that nobody claims there.
    pub fn call_to(&self, queues: &[String], now: Timestamp) {
        self.lock().index.call_to(queues, now);
    }

    /// So many servers hand out jobs of the store, and this one is number `at` of them: it begins with its share.
    pub fn share(&self, at: usize, of: usize) {
        self.lock().index.servers = Servers { at, of: of.max(1) };
    }

    /// Which turn at its queue comes next; `None` = what the jobs were taken by no longer holds: put them back.
    pub fn next_turn(&self, turn: &Turn) -> Option<u64> {
        self.lock().index.next_turn(turn)
    }

    /// The turn was had, and is durable.
    pub fn had_turn(&self, turn: &Turn) {
        self.lock().index.had_turn(turn);
    }

    /// Somebody else had the turn: who has jobs of the queue is asked anew.
    pub fn recount(&self, queue: &str) {
        self.lock().index.recount(queue);
    }

    /// When time will change something, as far as anybody knows.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.lock().next_wake()
    }

    /// Jobs that time asks something of. Each is named once: whoever looks at it says what comes next, by
    /// [`Dispatch::offer`] or [`Dispatch::wake`].
    pub fn due(&self, now: Timestamp, max: usize) -> Vec<JobId> {
        self.lock().timers.due(now, max)
    }

    /// The job has to be looked at then.
    pub fn wake(&self, id: JobId, at: Option<Timestamp>) {
        self.lock().timers.set(id, at);
    }

    /// Whether only the store knows which jobs are due now; whoever is told so asks it.
    pub fn ask_for_wakes(&self, now: Timestamp) -> bool {
        self.lock().timers.ask_store(now)
    }

    /// The earliest wake-ups in the store, in order, and whether that is all.
    pub fn heard_wakes(&self, wakes: &[(Timestamp, JobId)], is_all: bool) {
        self.lock().timers.heard(wakes, is_all);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What is here may be wrong without harm, so that a panic elsewhere spoils nothing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_earlier(now: Option<Timestamp>, before: Option<Timestamp>) -> bool {
    match (now, before) {
        (Some(now), Some(before)) => now < before,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// Somebody in the line.
#[derive(Debug)]
pub struct Waiter<'a> {
    dispatch: &'a Dispatch,
    query: Arc<Query>,
    ticket: u64,
    woken: oneshot::Receiver<()>,
    is_heard: bool,
    is_sure: bool,
    is_shared: bool,
}

impl Waiter<'_> {
    /// What to give with the next attempt, to stand in the line where one stood.
    pub fn ticket(&self) -> u64 {
        self.ticket
    }

    /// Whether the store has nothing either. If not, it is to be asked again soon, whether or not something is said.
    pub fn is_sure(&self) -> bool {
        self.is_sure
    }

    /// Whether others may give something back, or leave something, without a word: then it is to be asked again soon.
    pub fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Waits until there may be something.
    pub async fn woken(&mut self) {
        // An error would mean that the line is gone, and then there is nothing to wait for.
        let _said = (&mut self.woken).await;
        self.is_heard = true;
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.is_heard {
            return;
        }
        let mut state = self.dispatch.lock();
        // Whoever was woken and goes without looking leaves it to another.
        if !state.index.line.leave(self.ticket) {
            state.index.wake_for(&self.query);
            state.index.pass_on_elsewhere(&self.query);
        }
    }
}

#[cfg(test)]
mod tests;
