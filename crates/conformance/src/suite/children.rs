//! Messages between runs and their child runs.

use serde_json::json;
use windlass_engine::counter::Fence;
use windlass_engine::effect::Effect;
use windlass_engine::event::Parent;
use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::run::Run;
use windlass_store::commit::Commit;
use windlass_store::outbox::{Delivery, Message, Note, Party};
use windlass_store::run::RunStatus;
use windlass_store::{Refusal, Store};

use crate::driver::{Driver, child_of, delivered_input, start_with};
use crate::fixture::{StoreFixture, at, run_id, undelivered};

const CHILD: &str = r#"{"start": "a", "nodes": {"a": {"service": "s", "post": {"output_key": "x"}}, "b": {"service": "t"}},
    "edges": [{"from": "a", "to": "b"}]}"#;
const CALLING: &str = r#"{"start": "c", "nodes": {"c": {"kind": "subflow", "flow": "child", "params": {"n": 3}, "post": {"output_key": "got"}}}}"#;
const CALLING_EACH: &str = r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "prep": {"input_key": "$params.items"},
    "parallel_mode": "concurrent", "subflow": {"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": "child"}}}}}}"#;

pub async fn a_child_run_tells_its_parent_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut parent = Driver::new(&fixture, 1, CALLING).await;
    let effects = parent.start(start_with(json!({})), 10).await;
    let Effect::Call(spec) = &effects[0] else { panic!("{effects:?}") };
    let creation = undelivered(store, at(99), 10).await.remove(0);
    let delivered =
        Commit { delivered: vec![creation.id], ..Commit::new(&Project::DEFAULT, fixture.command(), at(11)) };
    fixture.commit(delivered).await.unwrap();
    let mut child = Driver::new(&fixture, 2, CHILD).await;
    child.start(child_of(run_id(1), "c", spec.fence), 11).await;
    child.done("a", 1, json!(7), 12).await;
    assert!(undelivered(store, at(99), 10).await.is_empty());
    child.done("b", 2, json!(8), 13).await;
    let messages = undelivered(store, at(99), 10).await;
    assert_eq!(messages.len(), 1);
    assert_eq!((&messages[0].to, &messages[0].id.sender), (&Party::Run(run_id(1)), &Party::Run(run_id(2))));
    let delivered = vec![messages[0].id.clone()];
    let more = Commit { delivered, ..Commit::new(&Project::DEFAULT, fixture.command(), at(20)) };
    parent.submit_with(delivered_input(&messages[0].note), 20, more).await.unwrap();
    let row = fixture.run(1).await.unwrap();
    assert_eq!(row.projection.status, RunStatus::Completed);
    assert_eq!(row.projection.shared.as_deref(), Some(&json!({"got": {"x": 7}})));
    assert!(undelivered(store, at(99), 10).await.is_empty());
    // The child's next round sends another message, with its own number.
    child.submit(Input::Rerun { from: NodePath::from("b"), shared: None }, 30).await.unwrap();
    child.done("b", 3, json!(9), 31).await;
    let again = undelivered(store, at(99), 10).await;
    assert!(again.len() == 1 && again[0].id.seq > messages[0].id.seq, "{again:?}");
}

pub async fn a_call_of_a_flow_waits_in_the_outbox_until_its_child_is_created(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut parent = Driver::new(&fixture, 1, CALLING).await;
    parent.start(start_with(json!({})), 10).await;
    let projection = fixture.run(1).await.unwrap().projection;
    assert_eq!((projection.owner, projection.wake_at), (None, None), "only the message is left to wake it");
    let sent = undelivered(store, at(99), 10).await;
    let id = RunId::of_call(run_id(1), Fence(1));
    assert_eq!((sent.len(), &sent[0].to), (1, &Party::Run(id)));
    let Delivery::Create(child) = sent[0].note.delivery() else { panic!("{sent:?}") };
    let parent_of_it =
        Parent { run: run_id(1), node: NodePath::from("c"), fence: Fence(1), depth: 1, root: None };
    assert_eq!((child.child, child.flow.as_str(), child.version), (id, "child", None));
    assert_eq!((child.params.get("n"), child.parent.clone()), (Some(&json!(3)), parent_of_it));

    let delivers = |message: &Message| Commit {
        delivered: vec![message.id.clone()],
        ..Commit::new(&Project::DEFAULT, fixture.command(), at(11))
    };
    let start = Input::Start(Box::new(child.start()));
    let mut created = Driver::new(&fixture, 2, CHILD).await;
    created.run = Run::new(id);
    created.submit_with(start.clone(), 11, delivers(&sent[0])).await.unwrap();
    assert!(undelivered(store, at(99), 10).await.is_empty());
    // A server that read the message before it was delivered creates nothing.
    let mut again = Driver::new(&fixture, 3, CHILD).await;
    let refused = again.submit_with(start, 12, delivers(&sent[0])).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::AlreadyDelivered(sent[0].id.clone())));
    assert_eq!(fixture.run(3).await, None);
}

pub async fn cancelling_a_run_leaves_a_message_for_each_of_its_children(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut parent = Driver::new(&fixture, 1, CALLING_EACH).await;
    parent.start(start_with(json!({"items": [1, 2, 3]})), 10).await;
    parent.submit(Input::Cancel { reason: None, by: None }, 10).await.unwrap();
    let sent = undelivered(store, at(99), 10).await;
    let is_creation = |message: &Message| matches!(message.note, Note::StartChild(_));
    let kinds: Vec<bool> = sent.iter().map(is_creation).collect();
    assert_eq!(kinds, [true, true, true, false, false, false], "a child is created before it is cancelled");
    let to = |messages: &[Message]| messages.iter().map(|message| message.to.clone()).collect::<Vec<_>>();
    assert_eq!(to(&sent[..3]), to(&sent[3..]));
    assert_eq!(to(&sent[..3]), [1, 2, 3].map(|fence| Party::Run(RunId::of_call(run_id(1), Fence(fence)))));
    assert!(matches!(delivered_input(&sent[5].note), Input::Cancel { .. }));
}
