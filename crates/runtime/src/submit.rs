//! From an input to a durable transition: decide all that waits, commit once, then act and answer.

mod draft;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use windlass_engine::id::RunId;
use windlass_engine::input::{Given, Input, Refusal};
use windlass_engine::run::Step;
use windlass_store::run::RunRef;

use crate::error::same;
use crate::hot::Hot;
use crate::mailbox::{Back, Batch, Letter, Mailbox, Told};
use crate::run::{Along, Seen};
use crate::{Runtime, RuntimeError, SubmitError};

pub(crate) use draft::After;
use draft::{Draft, Lack, Out, Written, joins};

/// Inputs of one run that are decided together at most: one entry of its journal holds them all.
const BATCH: usize = 1_024;
/// How often inputs are decided again before the server gives up: conflicts and short balances end long before.
const TRIES: usize = 40;
/// When to bring a letter again that the store could not take.
const AGAIN: Duration = Duration::from_millis(500);

/// A driver that dies leaves nobody waiting.
struct Driving<'a> {
    runtime: &'a Runtime,
    mailbox: &'a Mailbox,
    /// Letters that are being decided.
    in_hand: usize,
    is_over: bool,
}

impl Drop for Driving<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let n = self.mailbox.abandon();
            self.runtime.mailboxes().answered(n + self.in_hand);
            tracing::error!(run = %self.mailbox.run, "a run could not be advanced; it is read again from the store");
            self.runtime.tasks().spawn(self.runtime.clone().revive(self.mailbox.run));
        }
    }
}

impl Runtime {
    /// Takes an input to a run, with other rows that are written in the same commit or not at all. When the run
    /// refuses the input, nothing of what went along is written.
    pub(crate) async fn submit_along(
        &self,
        run: RunId,
        input: Input,
        along: Along,
    ) -> Result<Seen, SubmitError> {
        match self.tell(run, input, along).await {
            Told::Taken(seen) => Ok(seen),
            Told::Refused(refusal) => Err(SubmitError::Refused(refusal)),
            Told::Existing { .. } | Told::Outdated => Err(SubmitError::Outdated),
            Told::UnknownRun => Err(SubmitError::UnknownRun(run)),
            Told::Trouble(error) => Err(SubmitError::Runtime(error)),
        }
    }

    /// Takes a letter to a run and waits for what becomes of it.
    pub(crate) async fn tell(&self, run: RunId, input: Input, along: Along) -> Told {
        let (back, answer) = oneshot::channel();
        self.post(run, Letter { input, along, back: Back::To(back) });
        answer.await.unwrap_or_else(|_| Told::Trouble(RuntimeError::Broken))
    }

    /// Takes a letter to a run.
    pub(crate) fn post(&self, run: RunId, letter: Letter) {
        self.mailboxes().arrived();
        let mailbox = self.mailboxes().of(run);
        if mailbox.put(letter) {
            let runtime = self.clone();
            self.tasks().spawn(async move { runtime.drive(mailbox).await });
        }
    }

    /// Takes a letter to a run after a while.
    pub(crate) fn post_later(&self, run: RunId, letter: Letter, after: Duration) {
        let runtime = self.clone();
        self.tasks().spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(after) => runtime.post(run, letter),
                () = runtime.stopped() => {}
            }
        });
    }

    async fn drive(self, mailbox: Arc<Mailbox>) {
        let mut own = Vec::new();
        let mut driving = Driving { runtime: &self, mailbox: &mailbox, in_hand: 0, is_over: false };
        let mut is_kept = true;
        while let Some(Batch { letters, hot }) = mailbox.take(own, BATCH) {
            driving.in_hand = letters.len();
            let (hot, next) = self.turn(mailbox.run, letters, hot).await;
            is_kept = hot.is_some();
            mailbox.keep(hot);
            own = next;
            own.iter().for_each(|_| self.mailboxes().arrived());
            self.mailboxes().answered(std::mem::take(&mut driving.in_hand));
            tokio::task::consume_budget().await;
        }
        driving.is_over = true;
        drop(driving);
        if !is_kept {
            self.mailboxes().close(mailbox);
        }
    }

    /// Decides what waits and writes it; answers with the run as it is now, and with what its own calls said.
    async fn turn(
        &self,
        run: RunId,
        mut letters: Vec<Letter>,
        mut hot: Option<Box<Hot>>,
    ) -> (Option<Box<Hot>>, Vec<Letter>) {
        // What is known of the account since the first try that it could not bear.
        let mut lack: Option<Lack> = None;
        for nth in 0..TRIES {
            let is_cached = hot.is_some();
            let mut now = match self.at_hand(run, hot.take(), &letters, nth == 0).await {
                Ok(Some(hot)) => hot,
                Ok(None) => {
                    self.answer(run, letters, |_| Told::UnknownRun);
                    return (None, Vec::new());
                }
                Err(error) => {
                    self.answer(run, letters, |_| Told::Trouble(error.again()));
                    return (None, Vec::new());
                }
            };
            let (short, purse) = lack.as_ref().map(|lack| lack.facts(&now.run)).unwrap_or_default();
            let given = Given { now: self.clock().now(), life: self.life(), short, purse };
            let (step, refusals) = decide(&mut now, &letters, &given);
            let says_no = step.events.is_empty() || refusals.iter().any(Option::is_some);
            if says_no && is_cached && self.is_outdated(&now).await {
                continue;
            }
            let is_news = !step.events.is_empty() || joins(&letters, &refusals).any(Along::has_company);
            if !is_news {
                // Whoever woke it may have had an old wake-up.
                self.timers().set(run, now.run.wake_at(), given.now);
                let seen = Seen { status: windlass_store::project::status(&now.run), len: now.len };
                answer_all(letters, refusals, seen);
                return ((!now.run.status.is_ended()).then_some(now), Vec::new());
            }
            let mut draft = match self.draft(&mut now, step, &letters, &refusals, given.now).await {
                Ok(draft) => draft,
                Err(error) => {
                    self.answer(run, letters, |_| Told::Trouble(RuntimeError::from(same(&error))));
                    return (None, Vec::new());
                }
            };
            draft.commit.unmoved.extend(lack.as_ref().map(|lack| lack.at.clone()));
            let Draft { commit, after } = draft;
            match self.write(commit).await {
                Written::Yes => return self.known(now, after, letters, refusals),
                Written::Again => {}
                // Whatever was known of the account is no longer so.
                Written::Moved => lack = None,
                Written::Short(found) => lack = Some(found.beside(lack)),
                Written::Without(out) => {
                    letters = self.leave_out(run, letters, &out);
                    if letters.is_empty() {
                        return (None, Vec::new());
                    }
                }
                Written::No(error) if letters.len() > 1 && error.refusal().is_some() => {
                    return Box::pin(self.one_by_one(run, letters)).await;
                }
                Written::No(error) => {
                    self.answer(run, letters, |_| Told::Trouble(RuntimeError::from(same(&error))));
                    return (None, Vec::new());
                }
            }
        }
        self.answer(run, letters, |_| Told::Trouble(RuntimeError::Busy { retry_after: AGAIN }));
        (None, Vec::new())
    }

    /// What the store says no to may be the fault of one letter: each has a turn of its own.
    async fn one_by_one(&self, run: RunId, letters: Vec<Letter>) -> (Option<Box<Hot>>, Vec<Letter>) {
        let (mut hot, mut own) = (None, Vec::new());
        for letter in letters {
            let (after, next) = self.turn(run, vec![letter], hot).await;
            hot = after;
            own.extend(next);
        }
        (hot, own)
    }

    /// The run in memory, or about to be created, or as it is stored.
    async fn at_hand(
        &self,
        run: RunId,
        hot: Option<Box<Hot>>,
        letters: &[Letter],
        is_first: bool,
    ) -> Result<Option<Box<Hot>>, RuntimeError> {
        if hot.is_some() {
            return Ok(hot);
        }
        let origin = letters.iter().find_map(|letter| letter.along.create.as_ref());
        match origin {
            // If it is there after all, the commit says so.
            Some(origin) if is_first => self.fresh(run, origin).await.map(Some),
            Some(origin) => match self.load(run).await? {
                Some(hot) => Ok(Some(hot)),
                None => self.fresh(run, origin).await.map(Some),
            },
            None => self.load(run).await,
        }
    }

    /// Whether what was decided on is not the last word: nothing may be answered from it.
    async fn is_outdated(&self, hot: &Hot) -> bool {
        if self.is_alone() {
            return false;
        }
        match self.store().run(RunRef::Id(hot.run.id)).await {
            Ok(row) => row.is_none_or(|row| row.len != hot.len),
            Err(_) => true,
        }
    }

    /// Answers the letters that cannot be taken as they are, and hands back the others.
    fn leave_out(&self, run: RunId, letters: Vec<Letter>, out: &Out) -> Vec<Letter> {
        let concerns = |letter: &Letter| match out {
            Out::Job(id) => letter.along.jobs.iter().any(|change| change.job.id == *id),
            Out::Delivered(id) => letter.along.delivered.contains(id),
            Out::Request { .. } => letter.along.create.is_some(),
            Out::Company => letter.along.has_company(),
        };
        let (gone, rest): (Vec<Letter>, Vec<Letter>) = letters.into_iter().partition(concerns);
        self.answer(run, gone, |_| match out {
            Out::Request { run, same_request } => Told::Existing { run: *run, same_request: *same_request },
            Out::Job(_) | Out::Delivered(_) | Out::Company => Told::Outdated,
        });
        rest
    }

    /// It is durable: what follows from it is done, and everybody is answered.
    fn known(
        &self,
        mut hot: Box<Hot>,
        after: After,
        letters: Vec<Letter>,
        refusals: Vec<Option<Refusal>>,
    ) -> (Option<Box<Hot>>, Vec<Letter>) {
        hot.len += u64::from(after.standing.is_some());
        let own = self.carry_out(&hot, after);
        let seen = Seen { status: windlass_store::project::status(&hot.run), len: hot.len };
        answer_all(letters, refusals, seen);
        let is_over = hot.run.status.is_ended();
        ((!is_over).then_some(hot), own)
    }

    /// Answers every letter in the same way; who does not wait for an answer comes again if the store is in trouble.
    fn answer(&self, run: RunId, letters: Vec<Letter>, told: impl Fn(&Letter) -> Told) {
        for letter in letters {
            let told = told(&letter);
            match (letter.back, told) {
                (Back::To(back), told) => drop(back.send(told)),
                (Back::Again, Told::Trouble(error)) => {
                    tracing::warn!(%run, %error, "an input could not be taken; it is brought again");
                    let letter = Letter { input: letter.input, along: letter.along, back: Back::Again };
                    self.post_later(run, letter, AGAIN);
                }
                (Back::Again, _) => {}
            }
        }
    }
}

/// Decides all letters, one after the other, on the run in memory.
fn decide(hot: &mut Hot, letters: &[Letter], given: &Given) -> (Step, Vec<Option<Refusal>>) {
    let mut joined = Step::default();
    let mut refusals = Vec::with_capacity(letters.len());
    for letter in letters {
        match hot.run.submit(&hot.plan, &letter.input, given) {
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

fn answer_all(letters: Vec<Letter>, refusals: Vec<Option<Refusal>>, seen: Seen) {
    for (letter, refusal) in letters.into_iter().zip(refusals) {
        if let Back::To(back) = letter.back {
            // Whoever stopped waiting does not need the answer.
            drop(back.send(refusal.map_or(Told::Taken(seen), Told::Refused)));
        }
    }
}
