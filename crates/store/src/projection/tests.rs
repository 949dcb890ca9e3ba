use proptest::prelude::*;
use serde_json::json;
use windlass_engine::counter::{Epoch, Fence, Seq};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::event::{Parent, Start};
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::project::Project;
use windlass_engine::retry::{Fault, FaultKind};

use super::*;
use crate::flow::{FlowChoice, FlowDraft, Publication, VersionDraft, VersionStatus};
use crate::job::JobStatus;
use crate::memory::Memory;
use crate::run::{RunRef, Since};

/// Fans inside a subflow, side by side with queues, retries, a timer and a signal.
const MIXED: &str = r#"{"start": "sf", "nodes": {
    "sf": {"kind": "subflow", "subflow": {"start": "f", "nodes": {
        "f": {"kind": "foreach", "service": "t", "exec_type": "queue", "prep": {"input_key": "$params.items"},
              "parallel_mode": "concurrent", "max_parallel": 3, "max_retries": 1, "wait_ms": 10},
        "g": {"kind": "parallel", "parallel_services": ["x", "y"], "parallel_mode": "concurrent"}},
        "edges": [{"from": "f", "to": "g"}]}},
    "q": {"service": "pull", "exec_type": "queue", "max_retries": 2, "wait_ms": 5},
    "p": {"service": "push", "max_retries": 2, "wait_ms": 5},
    "t": {"kind": "timer", "params": {"delay_ms": 20}}},
  "edges": [{"from": "sf", "to": "q"}, {"from": "q", "to": "p"}, {"from": "p", "to": "t"}, {"from": "t", "action": "default", "to": "p"}]}"#;

fn plan(text: &str) -> Arc<Plan> {
    let compiled = compile(text, Strictness::Strict);
    compiled.plan.unwrap_or_else(|| panic!("{:#?}", compiled.problems))
}

fn run_id() -> RunId {
    "run_0190a1b2c3d47000800000000000000a".parse().unwrap()
}

fn owner() -> Option<Owner> {
    Some(Owner { server: format!("srv_{:032x}", 1).parse().unwrap(), epoch: Epoch(1) })
}

fn start() -> Input {
    let params = json!({"items": [1, 2, 3, 4, 5]}).as_object().cloned().unwrap();
    Input::Start(Box::new(Start { params: params.into(), ..Start::default() }))
}

#[test]
fn a_job_that_is_made_and_cancelled_in_one_commit_is_made_cancelled() {
    let plan = plan(r#"{"start": "a", "nodes": {"a": {"service": "two words", "exec_type": "queue"}}}"#);
    let mut run = Run::new(run_id());
    let mut step = run.submit(&plan, &start(), &Given::at(Timestamp(1))).unwrap();
    let cancel = Input::Cancel { reason: None, by: None };
    let second = run.submit(&plan, &cancel, &Given::at(Timestamp(1))).unwrap();
    step.events.extend(second.events);
    step.effects.extend(second.effects);
    let rows = project(&mut Projection::default(), &run, &step, owner(), Timestamp(1));
    assert_eq!((rows.jobs.len(), rows.cancel.len()), (1, 0));
    assert_eq!(JobStatus::of(&rows.jobs[0].job), JobStatus::Canceled);
    assert_eq!(rows.jobs[0].job.spec.queue, "two words");
    assert_eq!((rows.projection.status, rows.projection.owner), (RunStatus::Canceling, None));
}

#[test]
fn every_end_of_a_child_has_a_message_of_its_own() {
    let plan = plan(r#"{"start": "a", "nodes": {"a": {"service": "s"}}}"#);
    let mut run = Run::new(run_id());
    let parent = Parent { run: run_id(), node: NodePath::from("c"), fence: Fence(9), depth: 1, root: None };
    let start = Input::Start(Box::new(Start { parent: Some(parent), ..Start::default() }));
    let done = |fence: u64| Input::CallEnded {
        node: NodePath::from("a"),
        fence: Fence(fence),
        outcome: CallOutcome::Done(Arc::default()),
        worker: None,
    };
    let again = Input::Rerun { from: NodePath::from("a"), shared: None };
    let mut step = RunStep::default();
    for input in [start, done(1), again, done(2)] {
        let next = run.submit(&plan, &input, &Given::at(Timestamp(1))).unwrap();
        step.events.extend(next.events);
        step.effects.extend(next.effects);
    }
    let rows = project(&mut Projection::default(), &run, &step, owner(), Timestamp(1));
    let numbers: Vec<u64> = rows.messages.iter().map(|message| message.id.seq.0).collect();
    let is_end = |event: &Event| matches!(event, Event::Ended { .. });
    let ends: Vec<u64> = (1..).zip(&step.events).filter(|(_, event)| is_end(event)).map(|(n, _)| n).collect();
    assert_eq!((numbers.len(), numbers), (2, ends));
}

#[test]
fn messages_of_one_commit_have_their_own_ids_and_keep_their_order() {
    let plan = plan(
        r#"{"start": "f", "nodes": {"f": {"kind": "foreach", "prep": {"input_key": "$params.items"},
            "parallel_mode": "concurrent", "max_parallel": 2,
            "subflow": {"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": "child"}}}}}}"#,
    );
    let mut run = Run::new(run_id());
    let parent = Parent { run: run_id(), node: NodePath::from("c"), fence: Fence(9), depth: 1, root: None };
    let params = json!({"items": [1, 2, 3]}).as_object().cloned().unwrap();
    let start = Start { params: params.into(), parent: Some(parent), ..Start::default() };
    let stopped = |index: usize, fence: u64| Input::CallEnded {
        node: NodePath::from(format!("f/{index}/c").as_str()),
        fence: Fence(fence),
        outcome: CallOutcome::Canceled,
        worker: None,
    };
    let cancel = Input::Cancel { reason: None, by: None };
    let mut step = RunStep::default();
    for input in [Input::Start(Box::new(start)), cancel, stopped(0, 1), stopped(1, 2)] {
        let next = run.submit(&plan, &input, &Given::at(Timestamp(1))).unwrap();
        step.events.extend(next.events);
        step.effects.extend(next.effects);
    }
    let mut rows = project(&mut Projection::default(), &run, &step, owner(), Timestamp(1));
    assert_eq!((rows.projection.status, rows.projection.owner), (RunStatus::Canceled, None));
    let name = |message: &Message| {
        let word = match message.note {
            Note::StartChild(_) => "start",
            Note::CancelChild => "cancel",
            Note::ReserveRaised { .. } => "raised",
            Note::CallEnded { .. } => "ended",
            Note::Billed { .. } => "billed",
            Note::BalanceChanged => "balance",
        };
        (word, message.id.part)
    };
    // The end of the run has the number of its last event too.
    rows.messages.sort_by(|one, other| one.id.cmp(&other.id));
    let names: Vec<_> = rows.messages.iter().map(name).collect();
    assert_eq!(names, [("ended", 0), ("start", 1), ("start", 2), ("cancel", 3), ("cancel", 4)]);
    assert!(rows.messages.iter().all(|message| message.id.seq == Seq(run.length)));
}

#[derive(Debug, Clone)]
enum Ask {
    /// The so-manieth open call ends.
    End(usize, End),
    /// So many milliseconds pass.
    Time(i64),
    Cancel,
    Pause,
    Resume,
    Retry,
    Rerun,
}

#[derive(Debug, Clone, Copy)]
enum End {
    Done,
    Failed,
    Permanent,
    Suspended,
    Lost,
}

fn ask() -> impl Strategy<Value = Ask> {
    let end = prop_oneof![
        6 => Just(End::Done),
        2 => Just(End::Failed),
        1 => Just(End::Permanent),
        2 => Just(End::Suspended),
        1 => Just(End::Lost),
    ];
    prop_oneof![
        20 => (any::<usize>(), end).prop_map(|(n, end)| Ask::End(n, end)),
        8 => (0i64..40).prop_map(Ask::Time),
        1 => Just(Ask::Cancel),
        1 => Just(Ask::Pause),
        2 => Just(Ask::Resume),
        2 => Just(Ask::Retry),
        1 => Just(Ask::Rerun),
    ]
}

fn outcome(end: End) -> CallOutcome {
    let fault = || Fault::new(FaultKind::Error, "boom");
    match end {
        End::Done => CallOutcome::Done(Arc::new(json!({"n": 1}))),
        End::Failed => CallOutcome::Failed(fault()),
        End::Permanent => CallOutcome::Failed(fault().permanent()),
        End::Suspended => CallOutcome::Suspended { memo: json!("m"), recheck_ms: Some(15) },
        End::Lost => CallOutcome::WorkerLost,
    }
}

fn input(ask: &Ask, plan: &Plan, run: &Run) -> Option<Input> {
    Some(match ask {
        Ask::End(n, end) => {
            let calls = run.open_calls(plan);
            let (node, fence, _) = calls.get(n.checked_rem(calls.len())?)?.clone();
            Input::CallEnded { node, fence, outcome: outcome(*end), worker: None }
        }
        Ask::Time(_) => Input::TimePassed,
        Ask::Cancel => Input::Cancel { reason: None, by: None },
        Ask::Pause => Input::Pause,
        Ask::Resume => Input::Resume,
        Ask::Retry => Input::Retry,
        Ask::Rerun => Input::Rerun { from: NodePath::from("sf"), shared: None },
    })
}

fn publish(store: &Memory) -> Origin {
    let (flow, version) =
        (format!("flow_{:032x}", 1).parse().unwrap(), format!("ver_{:032x}", 1).parse().unwrap());
    let draft = FlowDraft {
        id: flow,
        name: "mixed".to_owned(),
        description: String::new(),
        labels: Default::default(),
        is_template: false,
        allow_same_name: false,
    };
    let version_draft = VersionDraft {
        id: version,
        number: None,
        definition: MIXED.to_owned(),
        plan: None,
        form: windlass_engine::plan::Form::Graph,
        lenient: false,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let publication =
        Publication { flow: FlowChoice::Create(draft), version: Some(version_draft), now: Timestamp(0) };
    store.publish_now(&Project::DEFAULT, publication).unwrap();
    Origin {
        flow,
        version,
        request: None,
        labels: Default::default(),
        account: None,
        parent: None,
        schedule: None,
        created_at: Timestamp(0),
    }
}

proptest! {
    #[test]
    fn the_row_equals_the_replayed_journal_under_any_inputs(
        asks in prop::collection::vec(ask(), 0..80),
    ) {
        let (plan, store) = (plan(MIXED), Memory::new());
        let origin = publish(&store);
        let (mut run, mut projection) = (Run::new(run_id()), Projection::default());
        let (mut now, mut len) = (0, 0);
        let mut journal = Vec::new();
        for ask in std::iter::once(None).chain(asks.iter().map(Some)) {
            if let Some(Ask::Time(ms)) = ask {
                now += ms;
            }
            let next = match ask {
                None => Some(start()),
                Some(ask) => input(ask, &plan, &run),
            };
            let Some(next) = next else { continue };
            let at = Timestamp(now);
            let Ok(step) = run.submit(&plan, &next, &Given::at(at)) else { continue };
            journal.extend(step.events.iter().map(|event| (at, event.clone())));
            let rows = project(&mut projection, &run, &step, owner(), at);
            let run_projection = rows.projection.clone();
            let jobs = rows.cancel.iter().filter_map(|id| store.job_now(&Project::DEFAULT, *id).unwrap()).collect();
            let command = format!("cmd_{:032x}", len + 1).parse().unwrap();
            let create = (len == 0).then(|| origin.clone());
            let mut commit = rows.into_commit(command, at, &run, Seq(len), step, create);
            commit.jobs.extend(cancelled(jobs, at));
            store.commit_now(vec![commit]).remove(0).unwrap();
            len += 1;
            prop_assert_eq!(projection.n_in_flight(), run.n_granted);
            prop_assert_eq!(&Projection::resume(&plan, &run, &run_projection), &projection);
            prop_assert_eq!(run_projection.owner.is_some(), projection.in_flight.n_direct() > 0);
        }
        let row = store.run_now(&Project::DEFAULT, RunRef::Id(run_id())).unwrap().unwrap();
        let stored = store.journal_now(&Project::DEFAULT, run_id(), Since::Entry(Seq::ZERO), 1_000).unwrap().entries;
        let events: Vec<_> = stored
            .iter()
            .flat_map(|(_, entry)| entry.events.iter().map(|event| (entry.at, event.clone())))
            .collect();
        prop_assert_eq!(&events, &journal);
        let replayed = Run::replay(run_id(), &plan, events.iter().map(|(at, event)| (*at, event)));
        let picture = |run: &Run| serde_json::to_value(run).unwrap();
        prop_assert_eq!(picture(&replayed), picture(&run));
        let resumed = Projection::resume(&plan, &replayed, &row.projection);
        let again = super::run_projection(&resumed, &replayed, owner());
        prop_assert_eq!(again, row.projection);
    }
}
