//! Messages from one run to another.

use serde_json::json;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::{Ending, InsufficientFundsAction, Parent};
use windlass_engine::money::{Amount, Bill};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Priority;
use windlass_engine::project::Project;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Child, Message, MessageId, Note, Party};
use windlass_store::run::RunStatus;
use windlass_store::{Refusal, Store};

use crate::fixture::{StoreFixture, at, run_id, undelivered};

fn message(sender: u64, seq: u64, ms: i64) -> Message {
    Message {
        id: MessageId::new(Party::Run(run_id(sender)), Seq(seq)),
        to: Party::Run(run_id(9)),
        at: at(ms),
        note: Note::CallEnded {
            node: NodePath::from("call"),
            fence: Fence(3),
            ending: Ending::Completed,
            result: json!({"n": 1}).into(),
            error: None,
            bill: Bill { estimated: Amount(5), actual: Amount(3) },
        },
    }
}

async fn send(fixture: &StoreFixture<'_>, messages: Vec<Message>) {
    fixture
        .commit(Commit { messages, ..Commit::new(&Project::DEFAULT, fixture.command(), at(1)) })
        .await
        .unwrap();
}

fn delivery(fixture: &StoreFixture<'_>, message: &Message) -> Commit {
    Commit { delivered: vec![message.id.clone()], ..Commit::new(&Project::DEFAULT, fixture.command(), at(2)) }
}

pub async fn a_message_is_sent_with_the_commit_of_its_sender(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut commit = fixture.entry(1, 0, RunStatus::Completed, at(1));
    let funded = Message {
        id: MessageId::new(Party::Account("payer".to_owned()), Seq(7)),
        to: Party::Account("payer".to_owned()),
        at: at(1),
        note: Note::BalanceChanged,
    };
    commit.messages = vec![message(1, 4, 2), funded.clone()];
    fixture.commit(commit).await.unwrap();
    assert_eq!(undelivered(store, at(9), 10).await, [funded.clone(), message(1, 4, 2)]);
    assert_eq!(undelivered(store, at(9), 1).await, [funded]);
}

pub async fn the_same_message_twice_is_one_message(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    send(&fixture, vec![message(1, 1, 1), message(1, 1, 1)]).await;
    send(&fixture, vec![message(1, 1, 1), message(1, 2, 1), message(2, 1, 1)]).await;
    assert_eq!(undelivered(store, at(9), 10).await.len(), 3);
}

pub async fn a_message_is_delivered_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let sent = message(1, 1, 1);
    send(&fixture, vec![sent.clone()]).await;
    fixture.commit(delivery(&fixture, &sent)).await.unwrap();
    assert!(undelivered(store, at(9), 10).await.is_empty());
    let mut second = fixture.entry(9, 0, RunStatus::Running, at(3));
    second.delivered = vec![sent.id.clone()];
    let refused = fixture.commit(second).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::AlreadyDelivered(sent.id)));
    assert_eq!(fixture.run(9).await, None);
}

pub async fn a_delivered_message_is_not_sent_again(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let sent = message(1, 1, 1);
    send(&fixture, vec![sent.clone()]).await;
    fixture.commit(delivery(&fixture, &sent)).await.unwrap();
    send(&fixture, vec![sent]).await;
    assert!(undelivered(store, at(9), 10).await.is_empty());
}

pub async fn a_message_is_not_delivered_before_its_time(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    send(&fixture, vec![message(1, 1, 50), message(1, 2, 40)]).await;
    assert!(undelivered(store, at(39), 10).await.is_empty());
    assert_eq!(undelivered(store, at(49), 10).await, [message(1, 2, 40)]);
    assert_eq!(undelivered(store, at(50), 10).await, [message(1, 2, 40), message(1, 1, 50)]);
}

pub async fn an_unknown_message_cannot_be_delivered(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let refused = fixture.commit(delivery(&fixture, &message(1, 1, 1))).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownMessage(message(1, 1, 1).id)));
}

pub async fn a_refused_commit_delivers_nothing(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let sent = message(1, 1, 1);
    send(&fixture, vec![sent.clone()]).await;
    let mut stale = fixture.entry(9, 3, RunStatus::Running, at(3));
    stale.delivered = vec![sent.id.clone()];
    assert!(fixture.commit(stale).await.unwrap_err().is_conflict());
    assert_eq!(undelivered(store, at(9), 10).await, [sent]);
}

pub async fn messages_with_one_number_differ_by_their_part(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let child = Child {
        child: run_id(9),
        flow: "a flow".to_owned(),
        version: Some(2),
        params: json!({"n": 1}).as_object().cloned().unwrap().into(),
        params_in: Vec::new(),
        parent: Parent {
            run: run_id(1),
            node: NodePath::from("call"),
            fence: Fence(3),
            depth: 1,
            root: None,
        },
        account: Some("acme".to_owned()),
        budget: Some(Amount(40)),
        on_short_balance: InsufficientFundsAction::Wait,
        priority: Some(Priority::High),
        chain: vec!["a flow".to_owned()],
    };
    let part = |part: u32, note: Note| {
        let end = message(1, 7, 1);
        Message { id: MessageId { part, ..end.id }, note, ..end }
    };
    let sent = [
        message(1, 7, 1),
        part(1, Note::StartChild(Box::new(child))),
        part(2, Note::CancelChild),
        part(11, Note::CancelChild),
        message(1, 8, 1),
    ];
    send(&fixture, sent.iter().rev().cloned().collect()).await;
    send(&fixture, vec![sent[3].clone()]).await;
    assert_eq!(undelivered(store, at(9), 10).await, sent);
    fixture.commit(delivery(&fixture, &sent[1])).await.unwrap();
    let refused = fixture.commit(delivery(&fixture, &sent[1])).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::AlreadyDelivered(sent[1].id.clone())));
    let left: Vec<u32> = undelivered(store, at(9), 10).await.iter().map(|message| message.id.part).collect();
    assert_eq!(left, [0, 2, 11, 0]);
}

pub async fn undelivered_messages_are_found_by_their_receiver(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let to = |to: Party, message: Message| Message { to, ..message };
    let (late, early) = (message(2, 1, 50), message(1, 2, 1));
    let others = [
        to(Party::Run(run_id(8)), message(1, 3, 1)),
        to(Party::Account(run_id(9).to_string()), message(1, 4, 1)),
    ];
    send(&fixture, [vec![late.clone(), early.clone()], others.to_vec()].concat()).await;
    assert_eq!(
        store.outbox_to(&Project::DEFAULT, Party::Run(run_id(9))).await.unwrap(),
        [early.clone(), late.clone()]
    );
    fixture.commit(delivery(&fixture, &early)).await.unwrap();
    assert_eq!(store.outbox_to(&Project::DEFAULT, Party::Run(run_id(9))).await.unwrap(), [late]);
    assert_eq!(store.outbox_to(&Project::DEFAULT, Party::Run(run_id(7))).await.unwrap(), []);
    let [_, of_account] = others;
    assert_eq!(store.outbox_to(&Project::DEFAULT, of_account.to.clone()).await.unwrap(), [of_account]);
    assert_eq!(store.outbox_to(&Project::DEFAULT, Party::Account("unknown".to_owned())).await.unwrap(), []);
}
