//! Messages between runs and accounts. They wait in the store until they are delivered, so a crash loses none.
//!
//! Messages to one receiver go one after the other, oldest first: a child is created before it is canceled.

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

use crate::RuntimeError;
use crate::part::{RuntimePart, part};
use crate::runs::flow::CalledFlowError;
use crate::runs::mailbox::SubmitReply;
use crate::runs::{ExtraWrites, RunsState};

/// How often the store is read for undelivered messages: those of servers that died.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How long a message is left to the server that wrote it.
const GRACE_MS: u64 = 500;
/// Messages read at once; more when they are many.
const READ_LIMIT: usize = 1_000;
const READ_LIMIT_MAX: usize = 1 << 16;
/// Messages to one receiver that are delivered together.
const BATCH_MAX: usize = 64;
/// The delay before a failed delivery is retried.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Messages on their way, by receiver.
#[derive(Default)]
pub(crate) struct Outbox {
    queues: Mutex<BTreeMap<Party, ReceiverQueue>>,
    /// Another server has written messages.
    pub(crate) look: Notify,
}

/// Messages to one receiver, oldest first.
#[derive(Default)]
struct ReceiverQueue {
    waiting: VecDeque<Message>,
    ids: BTreeSet<MessageId>,
}

impl Outbox {
    fn queues(&self) -> MutexGuard<'_, BTreeMap<Party, ReceiverQueue>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message; `true` = no task delivers to this receiver yet.
    fn put(&self, message: Message) -> bool {
        let mut queues = self.queues();
        let is_new = !queues.contains_key(&message.to);
        let queue = queues.entry(message.to.clone()).or_default();
        if queue.ids.insert(message.id.clone()) {
            queue.waiting.push_back(message);
        }
        is_new
    }

    /// The next messages; several at once if their order does not matter. Empty = none is left.
    fn next(&self, to: &Party) -> Vec<Message> {
        let mut queues = self.queues();
        let queue = queues.entry(to.clone()).or_default();
        let is_end =
            |message: &&Message| matches!(message.note, Note::CallEnded { .. } | Note::Billed { .. });
        let mut next: Vec<Message> =
            queue.waiting.iter().take_while(is_end).take(BATCH_MAX).cloned().collect();
        if next.is_empty() {
            next.extend(queue.waiting.front().cloned());
        }
        if next.is_empty() {
            queues.remove(to);
        }
        next
    }

    /// Drops the messages to a receiver; the store has them.
    fn forget(&self, to: &Party) {
        if let Some(queue) = self.queues().get_mut(to) {
            *queue = ReceiverQueue::default();
        }
    }

    fn delivered(&self, message: &Message) {
        if let Some(queue) = self.queues().get_mut(&message.to) {
            queue.waiting.retain(|waiting| waiting.id != message.id);
            queue.ids.remove(&message.id);
        }
    }
}

/// Why a message is still there.
enum Undelivered {
    /// Try again after a while.
    Later(String),
    /// Another message has to be delivered before it, perhaps by another server.
    Early,
    /// Its receiver cannot be read: the messages to it stay in the store.
    SetAside,
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

part! {
    /// The delivery of messages, by one task per receiver and a poll of the store.
    pub(crate) OutboxDelivery, runs: RunsState
}

impl OutboxDelivery {
    /// Delivers a message that has just become durable.
    pub(crate) fn deliver_soon(&self, message: Message) {
        if message.at > self.clock().now() {
            // Found again in the store when its time has come.
            return;
        }
        let to = message.to.clone();
        if self.state().outbox.put(message) {
            let delivery = self.clone();
            self.tasks().spawn(async move { delivery.deliver_all(to).await });
        }
    }

    /// Reads undelivered messages until the server stops.
    pub(crate) async fn poll_outbox(self) {
        let mut limit = READ_LIMIT;
        loop {
            let mut wait = POLL_INTERVAL;
            // The server that wrote a message delivers it at once, as long as it lives.
            let grace = if self.is_shared() { GRACE_MS } else { 0 };
            let due = Timestamp(self.clock().now().0.saturating_sub_unsigned(grace));
            match self.store().outbox(due, limit).await {
                Ok(messages) => {
                    // More wait behind those that are on their way already.
                    let is_full = messages.len() == limit;
                    limit = if is_full { limit.saturating_mul(2).min(READ_LIMIT_MAX) } else { READ_LIMIT };
                    wait = if is_full { RETRY_DELAY } else { POLL_INTERVAL };
                    messages.into_iter().for_each(|undelivered| self.deliver_soon(undelivered.message));
                }
                Err(error) => tracing::warn!(%error, "messages could not be read"),
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.state().outbox.look.notified() => {
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
            for message in self.state().outbox.next(&to) {
                let delivery = self.clone();
                next.spawn(async move { delivery.deliver_one(message).await });
            }
            if next.is_empty() {
                return;
            }
            let all = next.join_all().await.into_iter().all(|delivered| delivered);
            if !all {
                tokio::select! {
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                    () = self.stopped() => return,
                }
            }
        }
    }

    /// Delivers a message; `false` = it is still there.
    async fn deliver_one(&self, message: Message) -> bool {
        match self.deliver(&message).await {
            Ok(()) => {
                self.state().outbox.delivered(&message);
                true
            }
            Err(Undelivered::Later(reason)) => {
                tracing::warn!(message = %message.id, reason, "a message could not be delivered yet");
                false
            }
            Err(Undelivered::SetAside) => {
                self.state().outbox.forget(&message.to);
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
                if self.money().check_and_wait(account).await {
                    self.forget(message).await
                } else {
                    Err(Undelivered::Later("the server stops".to_owned()))
                }
            }
        }
    }

    async fn pass_on(&self, message: &Message, run: RunId, input: Input) -> Result<(), Undelivered> {
        let extra = ExtraWrites { delivered: vec![message.id.clone()], ..ExtraWrites::default() };
        match self.runs().submit_for_reply(run, input, extra).await {
            SubmitReply::Taken(_) | SubmitReply::Outdated | SubmitReply::Existing { .. } => Ok(()),
            SubmitReply::Refused(_) => self.forget(message).await,
            // The message waits until its run is created.
            SubmitReply::UnknownRun if self.is_to_be_created(run).await? => Err(Undelivered::Early),
            SubmitReply::UnknownRun => self.forget(message).await,
            SubmitReply::Trouble(error) if self.runs().is_set_aside(run, &error) => {
                Err(Undelivered::SetAside)
            }
            SubmitReply::Trouble(error) => Err(error.into()),
        }
    }

    /// A call of a flow creates its child, in the commit that delivers the message: never twice, never not at all.
    async fn create_child(&self, message: &Message, child: &Child) -> Result<(), Undelivered> {
        let origin = match self.origin_of(child).await {
            Ok(origin) => origin,
            Err(CalledFlowError::Unknown(reason)) => {
                return self.pass_on(message, child.parent.run, child.refused(reason)).await;
            }
            Err(CalledFlowError::Store(error)) => return Err(error.into()),
        };
        let start = self.runs().complete(child.start(), origin.version).await?;
        let extra = ExtraWrites {
            create: Some(origin),
            delivered: vec![message.id.clone()],
            ..ExtraWrites::default()
        };
        match self.runs().submit_for_reply(child.child, Input::Start(Box::new(start)), extra).await {
            SubmitReply::Taken(_) | SubmitReply::Outdated | SubmitReply::Existing { .. } => Ok(()),
            SubmitReply::Refused(_)
                if self.store().run(self.project(), RunRef::Id(child.child)).await?.is_some() =>
            {
                self.forget(message).await
            }
            SubmitReply::Refused(refusal) => {
                self.pass_on(message, child.parent.run, child.refused(refusal.to_string())).await
            }
            SubmitReply::UnknownRun => Err(Undelivered::Later("its version is not there".to_owned())),
            SubmitReply::Trouble(error) => Err(error.into()),
        }
    }

    /// The origin of the child, or the reason why it cannot be created.
    async fn origin_of(&self, child: &Child) -> Result<Origin, CalledFlowError> {
        let called = Called { flow: child.flow.clone(), version: child.version };
        let (flow, version) = self.runs().called(&called).await?;
        Ok(Origin {
            flow,
            version,
            request: None,
            labels: BTreeMap::new(),
            account: child.account.clone(),
            parent: Some(child.parent.clone()),
            schedule: None,
            created_at: self.clock().now(),
        })
    }

    async fn is_to_be_created(&self, run: RunId) -> Result<bool, StoreError> {
        let sent = self.store().outbox_to(self.project(), Party::Run(run)).await?;
        Ok(sent.iter().any(|message| matches!(message.note, Note::StartChild(_))))
    }

    /// Deletes a message that is delivered, or no longer wanted.
    async fn forget(&self, message: &Message) -> Result<(), Undelivered> {
        let mut commit = Commit::new(self.project(), CommandId::new(Uuid::now_v7()), self.clock().now());
        commit.delivered.push(message.id.clone());
        match self.store().commit_one(commit).await {
            Ok(_) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
