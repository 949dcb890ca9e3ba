//! What runs and accounts do to runs: messages that wait in the store until they are delivered.
//!
//! Messages to one receiver go one after the other, oldest first: a child is created before it is cancelled.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use uuid::Uuid;
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::input::Input;
use windlass_engine::plan::Called;
use windlass_engine::time::Timestamp;
use windlass_store::StoreError;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Child, Delivery, Message, MessageId, Note, Party};
use windlass_store::run::{Origin, RunRef};

use crate::Runtime;
use crate::RuntimeError;
use crate::mailbox::Told;
use crate::run::Along;

/// How often the store is asked for messages that nobody delivered: those of servers that died.
const LOOK: Duration = Duration::from_secs(5);
/// How long a message is left to the server that wrote it.
const GRACE_MS: u64 = 500;
/// Messages read at once; more when they are many.
const AT_ONCE: usize = 1_000;
const AT_ONCE_MAX: usize = 1 << 16;
/// Messages to one receiver that are delivered together.
const TOGETHER: usize = 64;
/// When to try again what the store could not take.
const AGAIN: Duration = Duration::from_millis(500);

/// Messages on their way, by receiver.
#[derive(Default)]
pub(crate) struct Outbox {
    lanes: Mutex<BTreeMap<Party, Lane>>,
    /// Another server has written messages.
    pub(crate) look: Notify,
}

/// Messages to one receiver, oldest first.
#[derive(Default)]
struct Lane {
    waiting: VecDeque<Message>,
    ids: BTreeSet<MessageId>,
}

impl Outbox {
    fn lanes(&self) -> MutexGuard<'_, BTreeMap<Party, Lane>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message; `true` = nobody delivers to this receiver yet.
    fn put(&self, message: Message) -> bool {
        let mut lanes = self.lanes();
        let is_new = !lanes.contains_key(&message.to);
        let lane = lanes.entry(message.to.clone()).or_default();
        if lane.ids.insert(message.id.clone()) {
            lane.waiting.push_back(message);
        }
        is_new
    }

    /// What is to be delivered next; several at once if their order does not matter. Empty = nothing is left.
    fn next(&self, to: &Party) -> Vec<Message> {
        let mut lanes = self.lanes();
        let lane = lanes.entry(to.clone()).or_default();
        let is_end =
            |message: &&Message| matches!(message.note, Note::CallEnded { .. } | Note::Billed { .. });
        let mut next: Vec<Message> = lane.waiting.iter().take_while(is_end).take(TOGETHER).cloned().collect();
        if next.is_empty() {
            next.extend(lane.waiting.front().cloned());
        }
        if next.is_empty() {
            lanes.remove(to);
        }
        next
    }

    fn delivered(&self, message: &Message) {
        if let Some(lane) = self.lanes().get_mut(&message.to) {
            lane.waiting.retain(|waiting| waiting.id != message.id);
            lane.ids.remove(&message.id);
        }
    }
}

/// Why a message is still there.
enum Undelivered {
    /// Try again after a while.
    Later(String),
    /// Another message has to be delivered before it, perhaps by another server.
    Early,
}

impl From<StoreError> for Undelivered {
    fn from(error: StoreError) -> Self {
        Undelivered::Later(error.to_string())
    }
}

impl From<RuntimeError> for Undelivered {
    fn from(error: RuntimeError) -> Self {
        Undelivered::Later(error.to_string())
    }
}

impl Runtime {
    /// Delivers a message that has just become durable.
    pub(crate) fn deliver_soon(&self, message: Message) {
        if message.at > self.clock().now() {
            // Found again in the store when its time has come.
            return;
        }
        let to = message.to.clone();
        if self.outbox().put(message) {
            let runtime = self.clone();
            self.tasks().spawn(async move { runtime.deliver_all(to).await });
        }
    }

    /// Looks for messages that nobody delivered, again and again.
    pub(crate) async fn look_for_messages(self) {
        let mut limit = AT_ONCE;
        loop {
            let mut wait = LOOK;
            // Whoever wrote a message delivers it at once, as long as it lives.
            let grace = if self.is_alone() { 0 } else { GRACE_MS };
            let due = Timestamp(self.clock().now().0.saturating_sub_unsigned(grace));
            match self.store().outbox(due, limit).await {
                Ok(messages) => {
                    // More wait behind those that are on their way already.
                    let is_full = messages.len() == limit;
                    limit = if is_full { limit.saturating_mul(2).min(AT_ONCE_MAX) } else { AT_ONCE };
                    wait = if is_full { AGAIN } else { LOOK };
                    messages.into_iter().for_each(|message| self.deliver_soon(message));
                }
                Err(error) => tracing::warn!(%error, "messages could not be read"),
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.outbox().look.notified() => {
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(grace + 1)) => {}
                        () = self.stopped() => return,
                    }
                }
                () = self.stopped() => return,
            }
        }
    }

    async fn deliver_all(&self, to: Party) {
        loop {
            let mut next = tokio::task::JoinSet::new();
            for message in self.outbox().next(&to) {
                let runtime = self.clone();
                next.spawn(async move { runtime.deliver_one(message).await });
            }
            if next.is_empty() {
                return;
            }
            let all = next.join_all().await.into_iter().all(|delivered| delivered);
            if !all {
                tokio::select! {
                    () = tokio::time::sleep(AGAIN) => {}
                    () = self.stopped() => return,
                }
            }
        }
    }

    /// Delivers a message; `false` = it is still there.
    async fn deliver_one(&self, message: Message) -> bool {
        match self.deliver(&message).await {
            Ok(()) => {
                self.outbox().delivered(&message);
                true
            }
            Err(Undelivered::Later(reason)) => {
                tracing::warn!(message = %message.id, reason, "a message could not be delivered yet");
                false
            }
            Err(Undelivered::Early) => {
                tracing::debug!(message = %message.id, "its receiver is yet to be created");
                false
            }
        }
    }

    async fn deliver(&self, message: &Message) -> Result<(), Undelivered> {
        match (message.note.delivery(), &message.to) {
            (Delivery::Create(child), _) => self.create_child(message, &child).await,
            (Delivery::Submit(input), Party::Run(run)) => self.pass_on(message, *run, input).await,
            // All that an account has to say is that it moved.
            (Delivery::Submit(_), Party::Account(account)) => {
                if self.follow_up(account).await {
                    self.forget(message).await
                } else {
                    Err(Undelivered::Later("the server stops".to_owned()))
                }
            }
        }
    }

    async fn pass_on(&self, message: &Message, run: RunId, input: Input) -> Result<(), Undelivered> {
        let along = Along { delivered: vec![message.id.clone()], ..Along::default() };
        match self.tell(run, input, along).await {
            Told::Taken(_) | Told::Outdated | Told::Existing { .. } => Ok(()),
            Told::Refused(_) => self.forget(message).await,
            // A run that is yet to be created is told afterwards.
            Told::UnknownRun if self.is_to_be_created(run).await? => Err(Undelivered::Early),
            Told::UnknownRun => self.forget(message).await,
            Told::Trouble(error) => Err(error.into()),
        }
    }

    /// A call of a flow creates its child, in the commit that delivers the message: never twice, never not at all.
    async fn create_child(&self, message: &Message, child: &Child) -> Result<(), Undelivered> {
        let origin = match self.origin_of(child).await? {
            Ok(origin) => origin,
            Err(reason) => return self.pass_on(message, child.parent.run, child.refused(reason)).await,
        };
        let start = self.complete(child.start(), origin.version).await?;
        let along = Along { create: Some(origin), delivered: vec![message.id.clone()], ..Along::default() };
        match self.tell(child.child, Input::Start(Box::new(start)), along).await {
            Told::Taken(_) | Told::Outdated | Told::Existing { .. } => Ok(()),
            Told::Refused(_) if self.store().run(RunRef::Id(child.child)).await?.is_some() => {
                self.forget(message).await
            }
            Told::Refused(refusal) => {
                self.pass_on(message, child.parent.run, child.refused(refusal.to_string())).await
            }
            Told::UnknownRun => Err(Undelivered::Later("its version is not there".to_owned())),
            Told::Trouble(error) => Err(error.into()),
        }
    }

    /// What the child comes from, or why it cannot be created.
    async fn origin_of(&self, child: &Child) -> Result<Result<Origin, String>, Undelivered> {
        let called = Called { flow: child.flow.clone(), version: child.version };
        let (flow, version) = match self.called(&called).await? {
            Ok(found) => found,
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(Ok(Origin {
            flow,
            version,
            request: None,
            labels: BTreeMap::new(),
            account: child.account.clone(),
            parent: Some(child.parent.clone()),
            schedule: None,
            created_at: self.clock().now(),
        }))
    }

    async fn is_to_be_created(&self, run: RunId) -> Result<bool, StoreError> {
        let sent = self.store().outbox_to(Party::Run(run)).await?;
        Ok(sent.iter().any(|message| matches!(message.note, Note::StartChild(_))))
    }

    /// A message that nobody wants any more, or that all have heard.
    async fn forget(&self, message: &Message) -> Result<(), Undelivered> {
        let mut commit = Commit::new(CommandId::new(Uuid::now_v7()), self.clock().now());
        commit.delivered.push(message.id.clone());
        match self.store().commit_one(commit).await {
            Ok(_) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
