//! Actors of runs. The actor of a run decides all waiting inputs as one batch, commits it once, carries out its effects
//! and replies to the senders; no sender gets a reply before the commit is durable. A decision with a spent budget is
//! committed as far as it went, and the actor goes on with the next slice after all inputs that have come meanwhile.

mod decided;
mod draft;
mod withdraw;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use windlass_engine::id::RunId;
use windlass_engine::input::{Given, Input, Refusal};
use windlass_engine::run::RunStep;
use windlass_store::run::RunRef;

use crate::calls::log::{AttemptLog, Log};
use crate::long_work::LongPermit;
use crate::part::RuntimePart;
use crate::runs::Runs;
use crate::runs::cached_run::CachedRun;
use crate::runs::mailbox::{Envelope, EnvelopeBatch, InputPermit, Mailbox, ReplyTo, SubmitReply};
use crate::runs::own_inputs::OwnInputs;
use crate::runs::{ExtraWrites, SubmitAck};
use crate::{RuntimeError, SubmitError};

use decided::{Decided, WrittenBatch, goes_on, inline_meter, next_slice, write_decided, write_long};
pub(crate) use draft::CommitEffects;
use draft::{Excluded, InsufficientFunds, WriteOutcome, accepted_writes};

/// Inputs of others that are decided together at most, and ends of the run's own quick calls: one entry of its journal
/// holds them all, and other runs have their turn in between. More ends in one entry would make a wide fan faster, and the
/// wait of others longer.
const BATCH_MAX: usize = 64;
/// How often inputs are decided again before the server gives up: conflicts and short balances end long before.
const ATTEMPTS_MAX: usize = 40;
/// The delay before an envelope is sent again that the store could not take.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Options of a submitted input.
#[derive(Debug, Default)]
pub struct SubmitOptions {
    /// The log of the call that ends with the input; kept if the end is accepted.
    log: Log,
    extra: ExtraWrites,
    /// The input comes from the server itself, which does not refuse its own work while it drains.
    is_internal: bool,
}

impl SubmitOptions {
    /// Options of the end of a call, with its log.
    pub fn with_log(log: Log) -> Self {
        SubmitOptions { log, ..SubmitOptions::default() }
    }

    /// Options of an input from the server itself, with rows that are written in the same commit or not at all.
    pub(crate) fn internal(extra: ExtraWrites) -> Self {
        SubmitOptions { log: Log::default(), extra, is_internal: true }
    }
}

/// Ends the wait of all senders when an actor panics.
struct ActorGuard<'a> {
    runs: &'a Runs,
    mailbox: &'a Mailbox,
    /// Envelopes that are being decided, and the actor's own inputs that follow.
    in_hand: usize,
    is_over: bool,
}

impl Drop for ActorGuard<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let n = self.mailbox.abandon();
            self.runs.state().mailboxes.answered(n + self.in_hand);
            tracing::error!(run = %self.mailbox.run, "a run could not be advanced; it is read again from the store");
            self.runs.tasks().spawn(self.runs.clone().revive(self.mailbox.run));
        }
    }
}

impl Runs {
    /// Submits an input to a run; returns when the decision is durable.
    pub async fn submit(&self, run: RunId, input: Input) -> Result<SubmitAck, SubmitError> {
        self.submit_with(run, input, SubmitOptions::default()).await
    }

    /// The same with options. When the run refuses the input, none of the extra rows is written.
    pub async fn submit_with(
        &self,
        run: RunId,
        mut input: Input,
        options: SubmitOptions,
    ) -> Result<SubmitAck, SubmitError> {
        let SubmitOptions { log, mut extra, is_internal } = options;
        let permit = match &input {
            _ if is_internal => None,
            Input::Cancel { .. } | Input::Pause => {
                self.admit_control()?;
                None
            }
            _ => Some(self.admit_input()?),
        };
        if let Input::CallEnded { node, fence, outcome, .. } = &mut input
            && extra.log.is_none()
        {
            crate::calls::raise_recheck_interval(outcome);
            extra.log = Some(AttemptLog { node: node.clone(), fence: *fence, log });
        }
        match self.submit_admitted(run, input, extra, permit).await {
            SubmitReply::Taken(ack) => Ok(ack),
            SubmitReply::Refused(refusal) => Err(SubmitError::Refused(refusal)),
            SubmitReply::Existing { .. } | SubmitReply::Outdated => Err(SubmitError::Outdated),
            SubmitReply::UnknownRun => Err(SubmitError::UnknownRun(run)),
            SubmitReply::Trouble(error) => Err(SubmitError::Runtime(error)),
        }
    }

    /// Sends an envelope to a run and waits for the reply.
    pub(crate) async fn submit_for_reply(&self, run: RunId, input: Input, extra: ExtraWrites) -> SubmitReply {
        self.submit_admitted(run, input, extra, None).await
    }

    /// The same for an input from outside, which has a permit.
    pub(super) async fn submit_admitted(
        &self,
        run: RunId,
        input: Input,
        extra: ExtraWrites,
        permit: Option<InputPermit>,
    ) -> SubmitReply {
        let (back, answer) = oneshot::channel();
        self.send(run, Envelope { input, extra, reply_to: ReplyTo::Caller(back), permit });
        answer.await.unwrap_or_else(|_| SubmitReply::Trouble(RuntimeError::Broken))
    }

    /// Takes an envelope to a run.
    pub(crate) fn send(&self, run: RunId, envelope: Envelope) {
        self.state().mailboxes.arrived(1);
        let mailbox = self.state().mailboxes.of(run);
        if mailbox.put(envelope) {
            let runs = self.clone();
            self.tasks().spawn(async move { runs.run_actor(mailbox).await });
        }
    }

    /// Takes an envelope to a run after a while.
    fn send_later(&self, run: RunId, envelope: Envelope, after: Duration) {
        let runs = self.clone();
        self.tasks().spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(after) => runs.send(run, envelope),
                () = runs.stopped() => {}
            }
        });
    }

    async fn run_actor(self, mailbox: Arc<Mailbox>) {
        let (mut own, calls) = (OwnInputs::default(), self.calls());
        let mut guard = ActorGuard { runs: &self, mailbox: &mailbox, in_hand: 0, is_over: false };
        let mut is_kept = true;
        loop {
            let permit = next_slice(&self, &mailbox, &own).await;
            let next = own.next(&calls, BATCH_MAX);
            let n_own = next.len();
            let Some(EnvelopeBatch { envelopes, cached }) = mailbox.take(next, BATCH_MAX) else { break };
            guard.in_hand += envelopes.len() - n_own;
            let (cached, next) = self.process_batch(mailbox.run, envelopes, cached, permit).await;
            is_kept = cached.is_some();
            mailbox.keep(cached);
            own.append(next);
            self.state().mailboxes.arrived(own.len());
            self.state().mailboxes.answered(std::mem::replace(&mut guard.in_hand, own.len()));
            tokio::task::consume_budget().await;
        }
        self.state().mailboxes.answered(guard.in_hand);
        guard.is_over = true;
        drop(guard);
        if !is_kept {
            self.state().mailboxes.close(mailbox);
        }
    }

    /// Decides a batch and writes it; returns the run as it is now, and the answers of its quick calls. With a permit,
    /// the open agenda of the run is followed for one slice. The permit is held until the slice is durable.
    async fn process_batch(
        &self,
        run: RunId,
        mut envelopes: Vec<Envelope>,
        mut cached: Option<Box<CachedRun>>,
        mut permit: Option<LongPermit>,
    ) -> (Option<Box<CachedRun>>, OwnInputs) {
        let is_slice = permit.is_some();
        // The account at the first attempt that it could not pay for.
        let mut shortfall: Option<InsufficientFunds> = None;
        for nth in 0..ATTEMPTS_MAX {
            let is_cached = cached.is_some();
            let mut now = match self.load_or_create(run, cached.take(), &envelopes, nth == 0).await {
                Ok(Some(cached)) => cached,
                Ok(None) => {
                    self.answer(run, envelopes, |_| SubmitReply::UnknownRun);
                    return (None, OwnInputs::default());
                }
                Err(error) => return self.fail_batch(run, envelopes, &error),
            };
            let (insufficient_funds, spend_limit) =
                shortfall.as_ref().map(|shortfall| shortfall.facts(&now.run)).unwrap_or_default();
            let ((at, wall), meter) = (self.clock().both(), inline_meter(&now));
            let was_open = now.run.is_unfinished();
            let given = Given { now: at, wall, epoch: self.epoch(), insufficient_funds, spend_limit, meter };
            let (step, refusals) = decide(&mut now, &envelopes, &given);
            // The next slice of an open agenda has its own turn: inputs do not wait for it.
            let is_long =
                given.meter.has_put_back() || now.run.is_unfinished() && (permit.is_some() || !was_open);
            let is_silent = step.events.is_empty() && !is_long;
            let says_no = is_silent || refusals.iter().any(Option::is_some);
            if says_no && is_cached && self.is_outdated(&now).await {
                continue;
            }
            let has_rows = accepted_writes(&envelopes, &refusals).any(ExtraWrites::touches_other_rows);
            if is_silent && !has_rows {
                return self.on_unknown_outcome(now, envelopes, refusals);
            }
            let unmoved = shortfall.as_ref().map(|shortfall| shortfall.at.clone());
            let decided = Decided { cached: now, envelopes, refusals, step, unmoved, at };
            let written = match is_long {
                true => write_long(self, decided, given, &mut permit).await,
                false => Some(write_decided(self, decided, given).await),
            };
            // Without it, the server stops; the senders notice that their envelopes are gone.
            let Some(written) = written else { return (None, OwnInputs::default()) };
            envelopes = match written.outcome {
                WriteOutcome::Yes => return self.on_committed(written),
                // The server that wrote goes on with the agenda.
                WriteOutcome::Again if is_slice && written.envelopes.len() == 1 => {
                    return (None, OwnInputs::default());
                }
                WriteOutcome::Again => written.envelopes,
                // The account has changed.
                WriteOutcome::Moved => {
                    shortfall = None;
                    written.envelopes
                }
                WriteOutcome::InsufficientFunds(found) => {
                    shortfall = Some(found.beside(shortfall));
                    written.envelopes
                }
                WriteOutcome::Without(out) => self.exclude(run, written.envelopes, &out),
                WriteOutcome::No(error) if written.envelopes.len() > 1 && error.refusal().is_some() => {
                    // Each of them waits for a place of its own.
                    drop(permit);
                    return Box::pin(self.process_one_by_one(run, written.envelopes)).await;
                }
                WriteOutcome::No(error) => return self.fail_batch(run, written.envelopes, &error.into()),
            };
            if envelopes.is_empty() {
                return (None, OwnInputs::default());
            }
        }
        self.fail_batch(run, envelopes, &RuntimeError::Busy { retry_after: RETRY_DELAY })
    }

    /// Replies with the error to all envelopes of a batch; the run is no longer in memory afterwards.
    fn fail_batch(
        &self,
        run: RunId,
        envelopes: Vec<Envelope>,
        error: &RuntimeError,
    ) -> (Option<Box<CachedRun>>, OwnInputs) {
        self.answer(run, envelopes, |_| SubmitReply::Trouble(error.clone()));
        (None, OwnInputs::default())
    }

    /// A refusal by the store may be the fault of one envelope, so each is written alone.
    async fn process_one_by_one(
        &self,
        run: RunId,
        envelopes: Vec<Envelope>,
    ) -> (Option<Box<CachedRun>>, OwnInputs) {
        let (mut cached, mut own) = (None, OwnInputs::default());
        for envelope in envelopes {
            let (after, next) = self.process_batch(run, vec![envelope], cached, None).await;
            cached = after;
            own.append(next);
        }
        (cached, own)
    }

    /// The run in memory, or about to be created, or as it is stored.
    async fn load_or_create(
        &self,
        run: RunId,
        cached: Option<Box<CachedRun>>,
        envelopes: &[Envelope],
        is_first: bool,
    ) -> Result<Option<Box<CachedRun>>, RuntimeError> {
        if cached.is_some() {
            return Ok(cached);
        }
        let origin = envelopes.iter().find_map(|envelope| envelope.extra.create.as_ref());
        match origin {
            // If it is there after all, the commit says so.
            Some(origin) if is_first => self.fresh(run, origin).await.map(Some),
            Some(origin) => match self.load(run).await? {
                Some(cached) => Ok(Some(cached)),
                None => self.fresh(run, origin).await.map(Some),
            },
            None => self.load(run).await,
        }
    }

    /// Whether the run in memory is behind the store: no answer may be based on it then.
    async fn is_outdated(&self, cached: &CachedRun) -> bool {
        if !self.is_shared() {
            return false;
        }
        match self.store().run(self.project(), RunRef::Id(cached.run.id)).await {
            Ok(row) => row.is_none_or(|row| row.len != cached.len),
            Err(_) => true,
        }
    }

    /// Answers the envelopes that cannot be taken as they are, and hands back the others.
    fn exclude(&self, run: RunId, envelopes: Vec<Envelope>, out: &Excluded) -> Vec<Envelope> {
        let concerns = |envelope: &Envelope| match out {
            Excluded::Job(id) => envelope.extra.jobs.iter().any(|change| change.job.id == *id),
            Excluded::Delivered(id) => envelope.extra.delivered.contains(id),
            Excluded::Request { .. } => envelope.extra.create.is_some(),
            Excluded::ExtraWrites => envelope.extra.touches_other_rows(),
        };
        let (gone, rest): (Vec<Envelope>, Vec<Envelope>) = envelopes.into_iter().partition(concerns);
        self.answer(run, gone, |_| match out {
            Excluded::Request { run, same_request } => {
                SubmitReply::Existing { run: *run, same_request: *same_request }
            }
            Excluded::Job(_) | Excluded::Delivered(_) | Excluded::ExtraWrites => SubmitReply::Outdated,
        });
        rest
    }

    /// Nothing happened: replies to all senders.
    fn on_unknown_outcome(
        &self,
        cached: Box<CachedRun>,
        envelopes: Vec<Envelope>,
        refusals: Vec<Option<Refusal>>,
    ) -> (Option<Box<CachedRun>>, OwnInputs) {
        let own = OwnInputs::continuing(goes_on(self, &cached));
        // The wake-up that woke it may have been old.
        let wake_at = cached.run.wake_at().filter(|_| own.len() == 0);
        self.state().timers.set(cached.run.id, wake_at, self.clock().now());
        let seen = SubmitAck { status: windlass_store::projection::status(&cached.run), len: cached.len };
        answer_all(envelopes, refusals, seen);
        ((!cached.run.status.is_ended()).then_some(cached), own)
    }

    /// The commit is durable: carries out its effects and replies to all senders.
    fn on_committed(&self, written: WrittenBatch) -> (Option<Box<CachedRun>>, OwnInputs) {
        let WrittenBatch { mut cached, envelopes, refusals, after, .. } = written;
        if after.projection.is_some() {
            cached.len = cached.len.next();
        }
        let mut own = self.carry_out(&cached, after);
        own.append(OwnInputs::continuing(goes_on(self, &cached)));
        let seen = SubmitAck { status: windlass_store::projection::status(&cached.run), len: cached.len };
        answer_all(envelopes, refusals, seen);
        let is_over = cached.run.status.is_ended();
        ((!is_over).then_some(cached), own)
    }

    /// Sends the same reply to all envelopes; an envelope without a caller is sent again if the store failed.
    fn answer(&self, run: RunId, envelopes: Vec<Envelope>, reply_for: impl Fn(&Envelope) -> SubmitReply) {
        for envelope in envelopes {
            let reply = reply_for(&envelope);
            match (envelope.reply_to, reply) {
                (ReplyTo::Caller(back), reply) => drop(back.send(reply)),
                // Durable inputs are found again when the run can be read.
                (ReplyTo::Nowhere, SubmitReply::Trouble(error)) if self.is_set_aside(run, &error) => {}
                (ReplyTo::Nowhere, SubmitReply::Trouble(error)) => {
                    tracing::warn!(%run, %error, "an input could not be written; it is sent again");
                    let (input, extra, permit) = (envelope.input, envelope.extra, envelope.permit);
                    let envelope = Envelope { input, extra, reply_to: ReplyTo::Nowhere, permit };
                    self.send_later(run, envelope, RETRY_DELAY);
                }
                (ReplyTo::Nowhere, _) => {}
            }
        }
    }
}

/// Decides all envelopes, one after the other, on the run in memory.
fn decide(cached: &mut CachedRun, envelopes: &[Envelope], given: &Given) -> (RunStep, Vec<Option<Refusal>>) {
    let mut joined = RunStep::default();
    let mut refusals = Vec::with_capacity(envelopes.len());
    for envelope in envelopes {
        match cached.run.submit(&cached.plan, &envelope.input, given) {
            Ok(step) if joined.events.is_empty() => {
                joined = step;
                refusals.push(None);
            }
            Ok(step) => {
                joined.events.extend(step.events);
                joined.effects.extend(step.effects);
                refusals.push(None);
            }
            Err(refusal) => refusals.push(Some(refusal)),
        }
    }
    (joined, refusals)
}

fn answer_all(envelopes: Vec<Envelope>, refusals: Vec<Option<Refusal>>, seen: SubmitAck) {
    for (envelope, refusal) in envelopes.into_iter().zip(refusals) {
        if let ReplyTo::Caller(back) = envelope.reply_to {
            // A caller that stopped waiting does not need the reply.
            drop(back.send(refusal.map_or(SubmitReply::Taken(seen), SubmitReply::Refused)));
        }
    }
}
