//! Messages in memory: a bounded part of those in the store.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore};
use windlass_engine::id::RunId;
use windlass_engine::time::Timestamp;
use windlass_store::outbox::{Message, MessageId, Note, Party};

/// Messages read at once.
pub(super) const PAGE: usize = 1_000;
/// Messages in memory. The others are read from the store when there is room.
const MESSAGES_MAX: usize = 10_000;
/// Messages to one receiver that are delivered together.
const BATCH_MAX: usize = 64;

/// Messages that are delivered at once: requests of clients wait behind so many commits at most.
const DELIVERIES_MAX: usize = 32;

/// Messages on their way, by receiver: a part of those in the store.
pub(crate) struct Outbox {
    inside: Mutex<OutboxState>,
    /// The right to deliver a message to a run.
    pub(super) deliveries: Semaphore,
    /// Another server has written messages, or there is room for those that were left to the store.
    pub(crate) look: Notify,
}

#[derive(Default)]
struct OutboxState {
    queues: BTreeMap<Party, ReceiverQueue>,
    n_messages: usize,
    /// The time of the oldest message that was left to the store.
    left_at: Option<Timestamp>,
    /// Trees whose child runs were left to the store.
    unread: BTreeSet<RunId>,
}

/// Messages to one receiver, oldest first.
#[derive(Default)]
struct ReceiverQueue {
    waiting: VecDeque<Message>,
    ids: BTreeSet<MessageId>,
}

impl Default for Outbox {
    fn default() -> Self {
        Outbox { inside: Mutex::default(), deliveries: Semaphore::new(DELIVERIES_MAX), look: Notify::new() }
    }
}

/// The result of queueing a message.
pub(super) enum QueueOutcome {
    /// No task delivers to this receiver yet: the caller starts one.
    First,
    Queued,
    /// There is no room in memory.
    Full,
}

impl Outbox {
    fn inside(&self) -> MutexGuard<'_, OutboxState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queue(&self, message: Message) -> QueueOutcome {
        let mut inside = self.inside();
        let is_known = inside.queues.get(&message.to).is_some_and(|queue| queue.ids.contains(&message.id));
        if is_known {
            return QueueOutcome::Queued;
        }
        if inside.n_messages >= MESSAGES_MAX {
            return QueueOutcome::Full;
        }
        inside.n_messages += 1;
        let is_first = !inside.queues.contains_key(&message.to);
        let queue = inside.queues.entry(message.to.clone()).or_default();
        queue.ids.insert(message.id.clone());
        queue.waiting.push_back(message);
        if is_first { QueueOutcome::First } else { QueueOutcome::Queued }
    }

    /// Whether the message is in memory.
    pub(in crate::runs) fn holds(&self, message: &Message) -> bool {
        self.inside().queues.get(&message.to).is_some_and(|queue| queue.ids.contains(&message.id))
    }

    /// Whether the receiver is to be canceled, by a message behind others.
    pub(super) fn cancels(&self, to: &Party) -> bool {
        let is_cancel = |message: &Message| matches!(message.note, Note::CancelChild);
        self.inside().queues.get(to).is_some_and(|queue| queue.waiting.iter().any(is_cancel))
    }

    /// A message is left to the store, and read again from there.
    pub(super) fn leave(&self, at: Timestamp) {
        let mut inside = self.inside();
        inside.left_at = Some(inside.left_at.map_or(at, |left_at| left_at.min(at)));
    }

    /// A tree whose child runs are left to the store is told when there is room.
    pub(in crate::runs) fn mark_unread(&self, root: RunId) {
        self.inside().unread.insert(root);
    }

    /// The next messages; several at once if their order does not matter. Empty = none is left.
    pub(super) fn next(&self, to: &Party) -> Vec<Message> {
        let mut inside = self.inside();
        let queue = inside.queues.entry(to.clone()).or_default();
        let is_end =
            |message: &&Message| matches!(message.note, Note::CallEnded { .. } | Note::Billed { .. });
        let mut next: Vec<Message> =
            queue.waiting.iter().take_while(is_end).take(BATCH_MAX).cloned().collect();
        if next.is_empty() {
            next.extend(queue.waiting.front().cloned());
        }
        if next.is_empty() {
            inside.queues.remove(to);
        }
        next
    }

    /// Removes a message; returns the trees that were waiting for room.
    pub(super) fn remove(&self, message: &Message) -> BTreeSet<RunId> {
        let mut inside = self.inside();
        let Some(queue) = inside.queues.get_mut(&message.to) else { return BTreeSet::new() };
        if !queue.ids.remove(&message.id) {
            return BTreeSet::new();
        }
        queue.waiting.retain(|waiting| waiting.id != message.id);
        inside.n_messages -= 1;
        if inside.n_messages > MESSAGES_MAX / 2 {
            return BTreeSet::new();
        }
        if inside.left_at.is_some() {
            self.look.notify_one();
        }
        std::mem::take(&mut inside.unread)
    }

    /// Where the next read begins: at the oldest message that was left to the store, if any was and there is room.
    pub(super) fn take_left(&self) -> Option<Timestamp> {
        let mut inside = self.inside();
        if inside.n_messages > MESSAGES_MAX / 2 { None } else { inside.left_at.take() }
    }

    /// Whether there is room for a page.
    pub(in crate::runs) fn has_room(&self) -> bool {
        self.inside().n_messages + PAGE <= MESSAGES_MAX
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use windlass_engine::counter::Seq;

    use super::*;

    fn message(to: u128, seq: u64) -> Message {
        let run = |n: u128| RunId::new(Uuid::from_u128(n));
        Message {
            id: MessageId::new(Party::Run(run(1_000_000)), Seq(seq)),
            to: Party::Run(run(to)),
            at: Timestamp(i64::try_from(seq).unwrap()),
            note: Note::CancelChild,
        }
    }

    #[test]
    fn a_bounded_number_of_messages_is_in_memory() {
        let outbox = Outbox::default();
        for seq in 0..MESSAGES_MAX as u64 {
            assert!(!matches!(outbox.queue(message(u128::from(seq % 7), seq)), QueueOutcome::Full));
        }
        let late = MESSAGES_MAX as u64;
        for seq in [late + 1, late] {
            assert!(matches!(outbox.queue(message(1, seq)), QueueOutcome::Full));
            outbox.leave(Timestamp(i64::try_from(seq).unwrap()));
        }
        assert!(matches!(outbox.queue(message(0, 0)), QueueOutcome::Queued), "a known message takes no room");
        let root = RunId::new(Uuid::from_u128(5));
        outbox.mark_unread(root);
        assert_eq!(outbox.take_left(), None, "there is no room yet");
        let mut woken = BTreeSet::new();
        for seq in 0..late {
            woken.extend(outbox.remove(&message(u128::from(seq % 7), seq)));
            assert_eq!(
                woken.is_empty(),
                seq + 1 < late / 2,
                "the tree is told when half of the room is free"
            );
        }
        assert_eq!(outbox.take_left(), Some(Timestamp(i64::try_from(late).unwrap())));
        assert_eq!(outbox.take_left(), None);
        assert_eq!((woken, outbox.inside().n_messages), (BTreeSet::from([root]), 0));
    }
}
