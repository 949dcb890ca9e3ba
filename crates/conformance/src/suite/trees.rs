//! Trees of runs: their counts, and the child runs that wait for their turn.

use std::collections::BTreeMap;

use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::{InsufficientFundsAction, Parent};
use windlass_engine::params::Params;
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_store::Store;
use windlass_store::commit::Commit;
use windlass_store::flow::FlowChoice;
use windlass_store::outbox::{Child, Message, MessageId, Note, Party, WaitingTree};
use windlass_store::run::{Origin, RunGroup, RunProjection, RunStatus};

use crate::fixture::{FLOW, StoreFixture, at, flow_draft, flow_id, run_id, version_draft, version_id};

fn parent(run: u64, depth: u32, root: Option<u64>) -> Parent {
    Parent { run: run_id(run), node: NodePath::from("c"), fence: Fence(1), depth, root: root.map(run_id) }
}

/// The message that creates a child run, at this time.
fn creation(sender: u64, part: u32, parent: Parent, ms: i64) -> Message {
    let child = Child {
        child: run_id(100 * sender + u64::from(part)),
        flow: "first".to_owned(),
        version: None,
        params: Params::default(),
        params_in: Vec::new(),
        parent,
        account: None,
        budget: None,
        on_short_balance: InsufficientFundsAction::Fail,
        priority: None,
        chain: Vec::new(),
    };
    Message {
        id: MessageId { part, ..MessageId::new(Party::Run(run_id(sender)), Seq(1)) },
        to: Party::Run(child.child),
        at: at(ms),
        note: Note::StartChild(Box::new(child)),
    }
}

async fn send(fixture: &StoreFixture<'_>, messages: Vec<Message>) {
    let commit = Commit { messages, ..Commit::new(&Project::DEFAULT, fixture.command(), at(1)) };
    fixture.commit(commit).await.unwrap();
}

pub async fn a_run_remembers_the_tree_it_belongs_to(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Running, at(1), |_, _| {}).await.unwrap();
    for (run, of) in [(2, parent(1, 1, None)), (3, parent(2, 2, Some(1)))] {
        let expected = of.clone();
        fixture.create(run, RunStatus::Running, at(1), |origin, _| origin.parent = Some(of)).await.unwrap();
        let stored = fixture.run(run).await.unwrap().origin.parent;
        assert_eq!((stored.as_ref().map(Parent::root), stored), (Some(run_id(1)), Some(expected)));
    }
}

pub async fn runs_are_counted_by_tree_by_flow_and_together(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.publish(FlowChoice::Create(flow_draft(2, "second")), Some(version_draft(2))).await.unwrap();
    fixture.create(1, RunStatus::Running, at(1), |_, _| {}).await.unwrap();
    let tree = [
        (2, RunStatus::Running, parent(1, 1, None)),
        (3, RunStatus::Waiting, parent(2, 2, Some(1))),
        (4, RunStatus::Completed, parent(3, 3, Some(1))),
        (5, RunStatus::Running, parent(9, 1, None)),
    ];
    for (run, status, of) in tree {
        let child = |origin: &mut Origin, _: &mut RunProjection| {
            (origin.flow, origin.version, origin.parent) = (flow_id(2), version_id(2), Some(of));
        };
        fixture.create(run, status, at(1), child).await.unwrap();
    }
    let count =
        async |of: RunGroup, limit: usize| store.count_runs(&Project::DEFAULT, of, limit).await.unwrap();
    assert_eq!(count(RunGroup::Below(run_id(1)), 9).await, 3);
    assert_eq!(count(RunGroup::Below(run_id(1)), 2).await, 2, "no more than the limit is counted");
    assert_eq!(count(RunGroup::OpenBelow(run_id(1)), 9).await, 2);
    assert_eq!(count(RunGroup::OpenBelow(run_id(2)), 9).await, 0, "run 2 is not the root of a tree");
    assert_eq!(count(RunGroup::OpenOfFlow(flow_id(FLOW)), 9).await, 1);
    assert_eq!(count(RunGroup::OpenOfFlow(flow_id(2)), 9).await, 3);
    assert_eq!((count(RunGroup::Open, 9).await, count(RunGroup::Open, 3).await), (4, 3));
    // A run that ends is open no longer, and one that is opened again is.
    fixture.commit(fixture.entry(3, 1, RunStatus::Completed, at(2))).await.unwrap();
    assert_eq!(count(RunGroup::OpenBelow(run_id(1)), 9).await, 1);
    fixture.commit(fixture.entry(4, 1, RunStatus::Running, at(2))).await.unwrap();
    assert_eq!(count(RunGroup::OpenBelow(run_id(1)), 9).await, 2);
    assert_eq!(count(RunGroup::Below(run_id(1)), 9).await, 3);
}

pub async fn waiting_child_runs_are_read_by_tree_the_deepest_first(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let children = [
        creation(1, 2, parent(1, 1, None), 4),
        creation(1, 1, parent(1, 1, None), 4),
        creation(2, 1, parent(2, 2, Some(1)), 6),
        creation(3, 1, parent(3, 2, Some(1)), 5),
        creation(7, 1, parent(7, 1, None), 1),
    ];
    send(&fixture, children.to_vec()).await;
    let [second, first, late, deep, other] = children;
    let waiting = async |root: u64, limit: usize| {
        store.waiting_children(&Project::DEFAULT, run_id(root), limit).await.unwrap()
    };
    assert_eq!(waiting(1, 9).await, [deep.clone(), late.clone(), first.clone(), second.clone()]);
    assert_eq!(waiting(1, 2).await, [deep.clone(), late.clone()]);
    assert_eq!(waiting(7, 9).await, [other]);
    assert_eq!(waiting(2, 9).await, []);
    assert!(store.outbox(at(99), None, 9).await.unwrap().is_empty(), "they are not among the other messages");
    let delivered = Commit {
        delivered: vec![deep.id, first.id],
        ..Commit::new(&Project::DEFAULT, fixture.command(), at(2))
    };
    fixture.commit(delivered).await.unwrap();
    assert_eq!(waiting(1, 9).await, [late, second]);
}

pub async fn trees_with_waiting_child_runs_are_read_in_pages(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let children = [1, 1, 2, 3].into_iter().zip(1..);
    send(&fixture, children.map(|(root, part)| creation(root, part, parent(root, 1, None), 1)).collect())
        .await;
    let tree = |root: u64| WaitingTree { project: Project::DEFAULT, root: run_id(root) };
    assert_eq!(store.waiting_trees(None, 9).await.unwrap(), [tree(1), tree(2), tree(3)]);
    assert_eq!(store.waiting_trees(None, 2).await.unwrap(), [tree(1), tree(2)]);
    assert_eq!(store.waiting_trees(Some(tree(2)), 2).await.unwrap(), [tree(3)]);
    let last = creation(3, 4, parent(3, 1, None), 1).id;
    let delivered =
        Commit { delivered: vec![last], ..Commit::new(&Project::DEFAULT, fixture.command(), at(2)) };
    fixture.commit(delivered).await.unwrap();
    assert_eq!(store.waiting_trees(Some(tree(1)), 9).await.unwrap(), [tree(2)]);
}

pub async fn undelivered_messages_are_read_in_pages(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let message = |sender: u64, seq: u64, part: u32, ms: i64| Message {
        id: MessageId { part, ..MessageId::new(Party::Run(run_id(sender)), Seq(seq)) },
        to: Party::Run(run_id(9)),
        at: at(ms),
        note: Note::CancelChild,
    };
    let sent = [
        message(2, 1, 1, 1),
        message(1, 1, 1, 2),
        message(1, 1, 2, 2),
        message(1, 2, 1, 2),
        message(2, 1, 2, 2),
    ];
    send(&fixture, sent.iter().rev().cloned().chain([message(3, 1, 1, 50)]).collect()).await;
    let mut read: BTreeMap<usize, Vec<Message>> = BTreeMap::new();
    for limit in [1, 2, 9] {
        let mut after = None;
        loop {
            let page = store.outbox(at(9), after.clone(), limit).await.unwrap();
            let Some(last) = page.last() else { break };
            assert!(page.len() <= limit);
            after = Some(last.place());
            read.entry(limit).or_default().extend(page.into_iter().map(|row| row.message));
        }
    }
    assert!(read.values().all(|messages| *messages == sent), "{read:?}");
}
