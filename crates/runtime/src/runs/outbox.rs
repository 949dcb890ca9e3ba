//! Messages between runs and accounts. They wait in the store until they are delivered, so a crash loses none; a bounded
//! number of them is in memory.
//!
//! Messages to one receiver go one after the other, oldest first: a child is created before it is canceled.

mod queued;

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::counter::Seq;
use windlass_engine::event::Parent;
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::money::Bill;
use windlass_engine::plan::Called;
use windlass_engine::time::Timestamp;
use windlass_store::StoreError;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Child, Delivery, Message, MessageId, Note, OutboxCursor, Party};
use windlass_store::run::{Origin, RunRef};

use crate::RuntimeError;
use crate::part::{RuntimePart, part};
use crate::runs::flow::CalledFlowError;
use crate::runs::mailbox::SubmitReply;
use crate::runs::open_runs::{NoRoom, RunLimits};
use crate::runs::{ExtraWrites, RunsState};

pub(crate) use queued::Outbox;
use queued::{PAGE, QueueOutcome};

/// How often the store is read for undelivered messages: those of servers that died.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How often it is read for trees with waiting child runs, if no other server writes to it.
const TREES_INTERVAL: Duration = Duration::from_secs(60);
/// How long a message is left to the server that wrote it.
const GRACE_MS: u64 = 500;
/// The delay before a failed delivery is retried.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Why a message is still there.
enum Undelivered {
    /// Try again after a while.
    Later(String),
    /// It stays in the store until its receiver is created or can be read, or there is room for it.
    Left,
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
    /// Delivers a message that has just become durable, or leaves it to the store if there is no room.
    pub(crate) fn deliver_soon(&self, message: Message) {
        if message.at > self.clock().now() {
            // Found again in the store when its time has come.
            return;
        }
        let Note::StartChild(child) = &message.note else {
            let at = message.at;
            if !self.put(message) {
                self.state().outbox.leave(at);
            }
            return;
        };
        let root = child.parent.root();
        if !self.admit_child(child) {
            return self.leave_waiting(root, false);
        }
        if !self.put(message) {
            self.state().outbox.mark_unread(root);
            self.dismiss(root);
            self.leave_waiting(root, true);
        }
    }

    /// Queues a message for its receiver; `false` = there is no room.
    pub(super) fn put(&self, message: Message) -> bool {
        let to = message.to.clone();
        match self.state().outbox.queue(message) {
            QueueOutcome::First => {
                let delivery = self.clone();
                self.tasks().spawn(async move { delivery.deliver_all(to).await });
                true
            }
            QueueOutcome::Queued => true,
            QueueOutcome::Full => false,
        }
    }

    /// Reads undelivered messages until the server stops.
    pub(crate) async fn poll_outbox(self) {
        // The server that wrote a message delivers it at once, as long as it lives.
        let grace = if self.is_shared() { GRACE_MS } else { 0 };
        let trees_interval = if self.is_shared() { POLL_INTERVAL } else { TREES_INTERVAL };
        let (mut from, mut trees_at) = (None, None::<tokio::time::Instant>);
        loop {
            if let Err(error) = self.read_messages(from.take(), grace).await {
                tracing::warn!(%error, "messages could not be read");
            }
            if trees_at.is_none_or(|at| at.elapsed() >= trees_interval) {
                trees_at = Some(tokio::time::Instant::now());
                if let Err(error) = self.read_waiting_trees().await {
                    tracing::warn!(%error, "trees with waiting child runs could not be read");
                }
            }
            from = self.state().outbox.take_left();
            if from.is_some() {
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(POLL_INTERVAL) => {}
                () = self.state().outbox.look.notified() => {
                    from = self.state().outbox.take_left();
                    let wait = if from.is_some() { 0 } else { grace + 1 };
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_millis(wait)) => {}
                        () = self.stopped() => return,
                    }
                }
                () = self.stopped() => return,
            }
        }
    }

    /// Reads undelivered messages from this time on, page by page, as fast as there is room for them.
    async fn read_messages(&self, from: Option<Timestamp>, grace: u64) -> Result<(), StoreError> {
        let due = Timestamp(self.clock().now().0.saturating_sub_unsigned(grace));
        let first = MessageId::new(Party::Run(RunId::new(Uuid::nil())), Seq::ZERO);
        let before = |at: Timestamp| OutboxCursor { at, project: self.project().clone(), id: first };
        let mut after = from.map(|at| before(Timestamp(at.0.saturating_sub(1))));
        loop {
            while !self.state().outbox.has_room() {
                tokio::select! {
                    () = self.state().outbox.look.notified() => {}
                    () = tokio::time::sleep(RETRY_DELAY) => {}
                    () = self.stopped() => return Ok(()),
                }
            }
            let page = self.store().outbox(due, after.take(), PAGE).await?;
            after = page.last().filter(|_| page.len() == PAGE).map(|last| last.place());
            page.into_iter().for_each(|undelivered| self.deliver_soon(undelivered.message));
            if after.is_none() {
                return Ok(());
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
                self.remove(&message);
                true
            }
            Err(Undelivered::Left) => {
                self.remove(&message);
                if let Some((root, _)) = message.note.tree() {
                    self.leave_waiting(root, true);
                }
                true
            }
            Err(Undelivered::Later(reason)) => {
                tracing::warn!(message = %message.id, reason, "a message could not be delivered yet");
                false
            }
        }
    }

    fn remove(&self, message: &Message) {
        let unread = self.state().outbox.remove(message);
        unread.into_iter().for_each(|root| self.read_tree_soon(root));
    }

    async fn deliver(&self, message: &Message) -> Result<(), Undelivered> {
        let _turn = match message.to {
            Party::Run(_) => self.state().outbox.deliveries.acquire().await.ok(),
            Party::Account(_) => None,
        };
        match (message.note.delivery(), &message.to) {
            (Delivery::Create(child), _) => self.deliver_child(message, &child).await,
            (Delivery::Submit(input), Party::Run(run)) => self.pass_on(&[message], *run, input).await,
            // All that an account has to say is that it moved.
            (Delivery::Submit(_), Party::Account(account)) => {
                if self.money().check_and_wait(account).await {
                    self.forget(&[message]).await
                } else {
                    Err(Undelivered::Later("the server stops".to_owned()))
                }
            }
        }
    }

    /// Submits an input in the commit that delivers these messages.
    async fn pass_on(&self, messages: &[&Message], run: RunId, input: Input) -> Result<(), Undelivered> {
        let delivered = messages.iter().map(|message| message.id.clone()).collect();
        let extra = ExtraWrites { delivered, ..ExtraWrites::default() };
        match self.runs().submit_for_reply(run, input, extra).await {
            // One of two messages was delivered meanwhile: the other is looked at again.
            SubmitReply::Outdated if messages.len() > 1 => {
                Err(Undelivered::Later("its child run was created meanwhile".to_owned()))
            }
            SubmitReply::Taken(_) | SubmitReply::Outdated | SubmitReply::Existing { .. } => Ok(()),
            SubmitReply::Refused(_) => self.forget(messages).await,
            SubmitReply::UnknownRun => match (messages, self.creation_of(run).await?) {
                ([cancel], Some((creation, child))) if matches!(cancel.note, Note::CancelChild) => {
                    Box::pin(self.take_back(&creation, &child, cancel)).await
                }
                // The message waits in the store until its run is created.
                (_, Some(_)) => Err(Undelivered::Left),
                (_, None) => self.forget(messages).await,
            },
            SubmitReply::Trouble(error) if self.runs().is_set_aside(run, &error) => Err(Undelivered::Left),
            SubmitReply::Trouble(error) => Err(error.into()),
        }
    }

    /// A child run is canceled before it was created: both messages go in the commit that tells its parent.
    async fn take_back(
        &self,
        creation: &Message,
        child: &Child,
        cancel: &Message,
    ) -> Result<(), Undelivered> {
        let Parent { run, node, fence, .. } = child.parent.clone();
        let (outcome, bill) = (Some(CallOutcome::Canceled), Bill::default());
        self.pass_on(&[creation, cancel], run, Input::ChildEnded { node, fence, outcome, bill }).await
    }

    /// Creates a child run, unless it has no room or is canceled already.
    async fn deliver_child(&self, message: &Message, child: &Child) -> Result<(), Undelivered> {
        let has_waited = self.has_waited(child.parent.root());
        if (has_waited || self.state().outbox.cancels(&message.to))
            && let Some(cancel) = self.cancel_of(child.child).await?
        {
            // The message may be a copy of one that was delivered since it was read.
            if let Some((creation, _)) = self.creation_of(child.child).await? {
                self.take_back(&creation, child, &cancel).await?;
            }
            self.settle(child, false);
            return Ok(());
        }
        let created = self.create_child(message, child).await;
        match &created {
            Ok(is_created) => self.settle(child, *is_created),
            Err(Undelivered::Left) => self.settle(child, false),
            Err(Undelivered::Later(_)) => {}
        }
        if created? && has_waited {
            // They came while it waited. If they cannot be read now, the poll finds them.
            let sent = self.store().outbox_to(self.project(), message.to.clone()).await;
            sent.into_iter().flatten().for_each(|message| self.deliver_soon(message));
        }
        Ok(())
    }

    /// A call of a flow creates its child, in the commit that delivers the message: never twice, never not at all.
    /// `false` = it is not to be created.
    async fn create_child(&self, message: &Message, child: &Child) -> Result<bool, Undelivered> {
        if let Some(reason) = self.tree_refusal(child.parent.root()) {
            return self.refuse_child(message, child, reason).await;
        }
        let origin = match self.origin_of(child).await {
            Ok(origin) => origin,
            Err(CalledFlowError::Unknown(reason)) => return self.refuse_child(message, child, reason).await,
            Err(CalledFlowError::Runtime(error)) => return Err(error.into()),
        };
        let (flow, depth) = (origin.flow, child.parent.depth);
        match RunLimits::of(self.inner()).admit_open(flow, depth).await {
            Ok(()) => {}
            Err(NoRoom::Full(full)) => {
                self.wait_for_room(child, &full);
                return Err(Undelivered::Left);
            }
            Err(NoRoom::Store(error)) => return Err(error.into()),
        }
        let created = self.start_child(message, child, origin).await;
        if !matches!(created, Ok(true)) {
            self.on_closed(flow);
        }
        created
    }

    async fn start_child(
        &self,
        message: &Message,
        child: &Child,
        origin: Origin,
    ) -> Result<bool, Undelivered> {
        let start = self.runs().complete(child.start(), origin.version).await?;
        let extra = ExtraWrites {
            create: Some(origin),
            delivered: vec![message.id.clone()],
            ..ExtraWrites::default()
        };
        match self.runs().submit_for_reply(child.child, Input::Start(Box::new(start)), extra).await {
            SubmitReply::Taken(_) => Ok(true),
            SubmitReply::Outdated | SubmitReply::Existing { .. } => Ok(false),
            SubmitReply::Refused(_)
                if self.store().run(self.project(), RunRef::Id(child.child)).await?.is_some() =>
            {
                self.forget(&[message]).await.map(|()| false)
            }
            SubmitReply::Refused(refusal) => self.refuse_child(message, child, refusal.to_string()).await,
            SubmitReply::UnknownRun => Err(Undelivered::Later("its version is not there".to_owned())),
            SubmitReply::Trouble(error) => Err(error.into()),
        }
    }

    /// Tells the parent that its child run is not created.
    async fn refuse_child(
        &self,
        message: &Message,
        child: &Child,
        reason: String,
    ) -> Result<bool, Undelivered> {
        self.pass_on(&[message], child.parent.run, child.refused(reason)).await.map(|()| false)
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

    /// The message that creates this run, if it is yet to be delivered.
    async fn creation_of(&self, run: RunId) -> Result<Option<(Message, Box<Child>)>, StoreError> {
        let sent = self.store().outbox_to(self.project(), Party::Run(run)).await?;
        Ok(sent.into_iter().find_map(|message| {
            let Note::StartChild(child) = &message.note else { return None };
            let child = child.clone();
            Some((message, child))
        }))
    }

    /// The message that cancels this run, if it is yet to be delivered.
    async fn cancel_of(&self, run: RunId) -> Result<Option<Message>, StoreError> {
        let sent = self.store().outbox_to(self.project(), Party::Run(run)).await?;
        Ok(sent.into_iter().find(|message| matches!(message.note, Note::CancelChild)))
    }

    /// Deletes messages that are delivered, or no longer wanted.
    async fn forget(&self, messages: &[&Message]) -> Result<(), Undelivered> {
        let mut commit = Commit::new(self.project(), CommandId::new(Uuid::now_v7()), self.clock().now());
        commit.delivered.extend(messages.iter().map(|message| message.id.clone()));
        match self.store().commit_one(commit).await {
            Err(StoreError::Refused(_)) if messages.len() > 1 => {
                Err(Undelivered::Later("its child run was created meanwhile".to_owned()))
            }
            Ok(_) | Err(StoreError::Refused(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
