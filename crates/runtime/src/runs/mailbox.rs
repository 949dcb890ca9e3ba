//! Mailboxes: the inputs that wait for each run, and the run itself while it is in memory.
//!
//! At most one actor works on a run at a time. The sender that finds a mailbox without an actor starts one.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};
use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Refusal};

use crate::RuntimeError;
use crate::runs::cached_run::CachedRun;
use crate::runs::{ExtraWrites, SubmitAck};

/// Mailboxes are spread over so many locks, so that runs do not wait for one another.
const SHARDS: usize = 64;

/// One input on its way to a run.
pub(crate) struct Envelope {
    pub(crate) input: Input,
    pub(crate) extra: ExtraWrites,
    pub(crate) reply_to: ReplyTo,
    /// Inputs from outside have one, until they are answered.
    pub(crate) permit: Option<InputPermit>,
}

/// One of the inputs from outside that may wait at once.
pub(crate) struct InputPermit(Arc<AtomicUsize>);

impl Drop for InputPermit {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The receiver of the reply to an envelope.
pub(crate) enum ReplyTo {
    Caller(oneshot::Sender<SubmitReply>),
    /// No caller waits. If the store cannot take the input now, it is sent again later.
    Nowhere,
}

/// The reply to an envelope.
pub(crate) enum SubmitReply {
    Taken(SubmitAck),
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

impl Envelope {
    /// An envelope without a waiting sender.
    pub(crate) fn of(input: Input) -> Self {
        Envelope { input, extra: ExtraWrites::default(), reply_to: ReplyTo::Nowhere, permit: None }
    }

    /// Whether it stops work: it goes before all others, however many wait.
    fn is_control(&self) -> bool {
        matches!(self.input, Input::Cancel { .. } | Input::Pause)
    }
}

/// The mailbox of one run.
pub(crate) struct Mailbox {
    pub(crate) run: RunId,
    inside: Mutex<MailboxState>,
    arrival: Notify,
}

struct MailboxState {
    waiting: VecDeque<Envelope>,
    has_actor: bool,
    cached: Option<Box<CachedRun>>,
    touched: Instant,
}

/// The next envelopes of an actor.
pub(crate) struct EnvelopeBatch {
    pub(crate) envelopes: Vec<Envelope>,
    pub(crate) cached: Option<Box<CachedRun>>,
}

impl Mailbox {
    fn new(run: RunId) -> Self {
        let inside = MailboxState {
            waiting: VecDeque::new(),
            has_actor: false,
            cached: None,
            touched: Instant::now(),
        };
        Mailbox { run, inside: Mutex::new(inside), arrival: Notify::new() }
    }

    fn inside(&self) -> MutexGuard<'_, MailboxState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an envelope; `true` = the run has no actor, so the caller has to start one.
    pub(crate) fn put(&self, envelope: Envelope) -> bool {
        let mut inside = self.inside();
        if envelope.is_control() {
            // A run starts before it is stopped.
            let is_start = |first: &Envelope| first.extra.create.is_some();
            let at = usize::from(inside.waiting.front().is_some_and(is_start));
            inside.waiting.insert(at, envelope);
        } else {
            inside.waiting.push_back(envelope);
        }
        self.arrival.notify_one();
        !std::mem::replace(&mut inside.has_actor, true)
    }

    /// Completes when an envelope waits.
    pub(crate) async fn has_envelope(&self) {
        while self.inside().waiting.is_empty() {
            self.arrival.notified().await;
        }
    }

    /// The next batch: at most so many envelopes of others, and then the actor's own. `None` = the mailbox is empty, and
    /// the actor ends.
    pub(crate) fn take(&self, own: Vec<Envelope>, max: usize) -> Option<EnvelopeBatch> {
        let mut inside = self.inside();
        inside.touched = Instant::now();
        let n = max.min(inside.waiting.len());
        let mut envelopes: Vec<Envelope> = inside.waiting.drain(..n).collect();
        envelopes.extend(own);
        if envelopes.is_empty() {
            inside.has_actor = false;
            return None;
        }
        Some(EnvelopeBatch { envelopes, cached: inside.cached.take() })
    }

    /// Keeps the run in memory for the next envelope.
    pub(crate) fn keep(&self, cached: Option<Box<CachedRun>>) {
        self.inside().cached = cached;
    }

    /// Ends an actor that panicked. Waiting envelopes are dropped, which their senders notice.
    pub(crate) fn abandon(&self) -> usize {
        let mut inside = self.inside();
        inside.has_actor = false;
        inside.cached = None;
        let envelopes = std::mem::take(&mut inside.waiting);
        envelopes.len()
    }

    fn is_idle(&self, since: Duration) -> bool {
        let inside = self.inside();
        !inside.has_actor && inside.waiting.is_empty() && inside.touched.elapsed() >= since
    }
}

/// All mailboxes.
pub(crate) struct Mailboxes {
    shards: Vec<Mutex<HashMap<RunId, Arc<Mailbox>>>>,
    n_waiting: AtomicUsize,
    /// Those of them that came from outside.
    n_outside: Arc<AtomicUsize>,
}

impl Default for Mailboxes {
    fn default() -> Self {
        let shards = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Mailboxes { shards, n_waiting: AtomicUsize::new(0), n_outside: Arc::default() }
    }
}

impl Mailboxes {
    fn shard(&self, run: RunId) -> MutexGuard<'_, HashMap<RunId, Arc<Mailbox>>> {
        // The last bits of an id are random.
        let at = usize::from(run.uuid().as_bytes()[15]) % SHARDS;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mailbox of a run.
    pub(crate) fn of(&self, run: RunId) -> Arc<Mailbox> {
        self.shard(run).entry(run).or_insert_with(|| Arc::new(Mailbox::new(run))).clone()
    }

    /// Removes the mailbox of an idle run, unless another task holds it.
    pub(crate) fn close(&self, mailbox: Arc<Mailbox>) {
        let mut shard = self.shard(mailbox.run);
        // One reference of the map and one of the caller: a sender holds another.
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

    /// Envelopes that wait or are being decided.
    pub(crate) fn n_waiting(&self) -> usize {
        self.n_waiting.load(Ordering::Relaxed)
    }

    /// The right to send one more input from outside, if fewer than `max` wait.
    pub(crate) fn admit(&self, max: usize) -> Option<InputPermit> {
        let permit = InputPermit(self.n_outside.clone());
        (self.n_outside.fetch_add(1, Ordering::Relaxed) < max).then_some(permit)
    }

    pub(crate) fn arrived(&self, n: usize) {
        self.n_waiting.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, n: usize) {
        self.n_waiting.fetch_sub(n, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn inputs_from_outside_are_bounded_and_others_are_not() {
        let mailboxes = Mailboxes::default();
        let first = mailboxes.admit(2).unwrap();
        let second = mailboxes.admit(2).unwrap();
        assert!(mailboxes.admit(2).is_none());
        mailboxes.arrived(1_000);
        drop(first);
        assert!(mailboxes.admit(2).is_some(), "inputs of the server itself take no permit");
        drop(second);
        assert_eq!(mailboxes.n_waiting(), 1_000);
    }

    #[test]
    fn a_cancel_goes_before_all_others() {
        let mailbox = Mailbox::new(RunId::new(Uuid::nil()));
        for _ in 0..3 {
            mailbox.put(Envelope::of(Input::TimePassed));
        }
        mailbox.put(Envelope::of(Input::Pause));
        mailbox.put(Envelope::of(Input::Cancel { reason: None, by: None }));
        let batch = mailbox.take(vec![Envelope::of(Input::Resume)], 3).unwrap();
        let inputs: Vec<&Input> = batch.envelopes.iter().map(|envelope| &envelope.input).collect();
        assert!(
            matches!(inputs[..], [Input::Cancel { .. }, Input::Pause, Input::TimePassed, Input::Resume]),
            "{inputs:?}"
        );
    }
}
