//! Mailboxes: what waits for each run, and the run itself while it is in memory.
//!
//! At most one task drives a run at a time. Whoever finds a mailbox that nobody drives has to drive it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Refusal};

use crate::RuntimeError;
use crate::hot::Hot;
use crate::run::{Along, Seen};

/// Mailboxes are spread over so many locks, so that runs do not wait for one another.
const SHARDS: usize = 64;

/// One input on its way to a run.
pub(crate) struct Letter {
    pub(crate) input: Input,
    pub(crate) along: Along,
    pub(crate) back: Back,
}

/// Who hears what became of a letter.
pub(crate) enum Back {
    To(oneshot::Sender<Told>),
    /// Nobody waits for an answer. What the store cannot take now is brought again later.
    Again,
}

/// What became of a letter.
pub(crate) enum Told {
    Taken(Seen),
    Refused(Refusal),
    /// The request was made before, and made this run.
    Existing {
        run: RunId,
        same_request: bool,
    },
    Outdated,
    UnknownRun,
    Trouble(RuntimeError),
}

impl Letter {
    /// A letter whose sender goes on with something else.
    pub(crate) fn of(input: Input) -> Self {
        Letter { input, along: Along::default(), back: Back::Again }
    }
}

/// What waits for one run.
pub(crate) struct Mailbox {
    pub(crate) run: RunId,
    inside: Mutex<Inside>,
}

struct Inside {
    waiting: VecDeque<Letter>,
    is_driven: bool,
    hot: Option<Box<Hot>>,
    touched: Instant,
}

/// What a driver works on next.
pub(crate) struct Batch {
    pub(crate) letters: Vec<Letter>,
    pub(crate) hot: Option<Box<Hot>>,
}

impl Mailbox {
    fn new(run: RunId) -> Self {
        let inside =
            Inside { waiting: VecDeque::new(), is_driven: false, hot: None, touched: Instant::now() };
        Mailbox { run, inside: Mutex::new(inside) }
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a letter in; `true` = nobody drives the run, so the caller has to see to it.
    pub(crate) fn put(&self, letter: Letter) -> bool {
        let mut inside = self.inside();
        inside.waiting.push_back(letter);
        !std::mem::replace(&mut inside.is_driven, true)
    }

    /// What to do next: the driver's own letters first. `None` = nothing, and nobody drives the run any more.
    pub(crate) fn take(&self, mut own: Vec<Letter>, max: usize) -> Option<Batch> {
        let mut inside = self.inside();
        inside.touched = Instant::now();
        let n = max.saturating_sub(own.len()).min(inside.waiting.len());
        own.extend(inside.waiting.drain(..n));
        if own.is_empty() {
            inside.is_driven = false;
            return None;
        }
        Some(Batch { letters: own, hot: inside.hot.take() })
    }

    /// Keeps the run in memory for the next letter.
    pub(crate) fn keep(&self, hot: Option<Box<Hot>>) {
        self.inside().hot = hot;
    }

    /// Nobody drives the run any more although letters may wait: its driver died. They are dropped, which tells
    /// their senders.
    pub(crate) fn abandon(&self) -> usize {
        let mut inside = self.inside();
        inside.is_driven = false;
        inside.hot = None;
        let letters = std::mem::take(&mut inside.waiting);
        letters.len()
    }

    fn is_idle(&self, since: Duration) -> bool {
        let inside = self.inside();
        !inside.is_driven && inside.waiting.is_empty() && inside.touched.elapsed() >= since
    }
}

/// All mailboxes.
pub(crate) struct Mailboxes {
    shards: Vec<Mutex<HashMap<RunId, Arc<Mailbox>>>>,
    n_waiting: AtomicUsize,
}

impl Mailboxes {
    pub(crate) fn new() -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Mailboxes { shards, n_waiting: AtomicUsize::new(0) }
    }

    fn shard(&self, run: RunId) -> MutexGuard<'_, HashMap<RunId, Arc<Mailbox>>> {
        // The last bits of an id are random.
        let at = usize::from(run.uuid().as_bytes()[15]) % SHARDS;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mailbox of a run.
    pub(crate) fn of(&self, run: RunId) -> Arc<Mailbox> {
        self.shard(run).entry(run).or_insert_with(|| Arc::new(Mailbox::new(run))).clone()
    }

    /// Forgets the mailbox of a run that nothing waits for, unless somebody else holds it.
    pub(crate) fn close(&self, mailbox: Arc<Mailbox>) {
        let mut shard = self.shard(mailbox.run);
        // The map's and the caller's: whoever wants to put something in holds another.
        if Arc::strong_count(&mailbox) == 2 && mailbox.is_idle(Duration::ZERO) {
            shard.remove(&mailbox.run);
        }
    }

    /// Forgets runs that nothing has happened to for so long.
    pub(crate) fn passivate(&self, idle: Duration) {
        for shard in &self.shards {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            shard.retain(|_, mailbox| Arc::strong_count(mailbox) > 1 || !mailbox.is_idle(idle));
        }
    }

    /// Runs in memory.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).len()).sum()
    }

    /// Letters that wait or are being decided.
    pub(crate) fn n_waiting(&self) -> usize {
        self.n_waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn arrived(&self) {
        self.n_waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, n: usize) {
        self.n_waiting.fetch_sub(n, Ordering::Relaxed);
    }
}
