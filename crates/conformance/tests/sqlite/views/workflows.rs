//! The views of workflows, their tasks and their logs.

use std::collections::BTreeMap;

use rusqlite::params_from_iter;
use windlass_engine::counter::Seq;
use windlass_engine::event::Level;
use windlass_engine::id::{CommandId, FlowId, VersionId};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Form, Node, NodeKind, Plan, Scope};
use windlass_engine::project::Project;
use windlass_engine::run::Run;
use windlass_engine::run::state::{Nest, Phase, ScopeState};
use windlass_store::commit::Commit;
use windlass_store::flow::{FlowChoice, FlowDraft, FlowRef, Publication, VersionDraft, VersionStatus};
use windlass_store::log::{LogRow, LoggedLine};

use super::*;

#[test]
fn workflow_logs_are_the_lines_that_the_engine_derives_from_the_journal() {
    let mut n = 0;
    for filled in all().into_iter().chain(taken_up()) {
        let sql = "SELECT * FROM workflow_logs ORDER BY id";
        let mut rows = filled.rows(sql, |row| {
            let ids = (text::<String>(row, "id")?, text::<String>(row, "workflow_task_id")?);
            let what = (text::<String>(row, "level")?, text::<Option<String>>(row, "node_id")?);
            let data: serde_json::Value = serde_json::from_str(&text::<String>(row, "data")?).unwrap();
            let at = moment(text(row, "created_at")?);
            Ok((ids, what, text::<String>(row, "message")?, data.to_string(), at))
        });
        let mut expected = Vec::new();
        for run in filled.runs() {
            for (seq, entry) in filled.journal(run.id) {
                for (place, event) in entry.events.iter().enumerate() {
                    let Some(line) = windlass_engine::log::line(event) else { continue };
                    let ids = (format!("{}.{seq}.{place}", run.id), run.id.to_string());
                    let what = (line.level.word().to_owned(), line.node.map(|node| node.to_string()));
                    let data = serde_json::Value::Object(line.data).to_string();
                    expected.push((ids, what, line.message, data, Some(entry.at)));
                }
            }
        }
        rows.sort();
        expected.sort();
        assert_eq!(rows, expected);
        n += rows.len();
    }
    assert!(n > 100, "{n}");
}

#[test]
fn workflow_logs_say_every_event_as_the_engine_does() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../engine/tests/journals");
    let filled = fill!(replays::a_run_replays_from_its_journal);
    let run = filled.runs().remove(0).id;
    let (mut kinds, mut seq) = (std::collections::BTreeSet::new(), 100);
    for file in std::fs::read_dir(fixtures).unwrap() {
        let fixture: serde_json::Value =
            serde_json::from_slice(&std::fs::read(file.unwrap().path()).unwrap()).unwrap();
        for entry in fixture["entries"].as_array().unwrap() {
            let entry = Entry::decode(entry.to_string().as_bytes()).unwrap();
            let sql = "INSERT INTO journal (run, seq, v, at, command, events) \
                       SELECT no, ?1, 1, ?2, randomblob(16), ?3 FROM runs WHERE id = ?4";
            let (id, events) = (run.uuid(), serde_json::to_string(&entry.events).unwrap());
            filled.db.execute(sql, rusqlite::params![seq, entry.at.0, events, id.as_bytes()]).unwrap();
            let lines = entry.events.iter().filter_map(windlass_engine::log::line).map(|line| {
                let data = serde_json::Value::Object(line.data).to_string();
                (line.level.word().to_owned(), line.message, data)
            });
            let sql = format!("SELECT * FROM workflow_logs WHERE id LIKE '%.{seq}.%'");
            let rows = filled.rows(&sql, |row| {
                let data: serde_json::Value = serde_json::from_str(&text::<String>(row, "data")?).unwrap();
                Ok((text::<String>(row, "level")?, text::<String>(row, "message")?, data.to_string()))
            });
            assert_eq!(rows, lines.collect::<Vec<_>>(), "{:?}", entry.events);
            let kind = |event: &serde_json::Value| event["e"].to_string();
            let events: serde_json::Value =
                serde_json::from_str(&serde_json::to_string(&entry.events).unwrap()).unwrap();
            kinds.extend(events.as_array().unwrap().iter().map(kind));
            filled.db.execute("DELETE FROM journal WHERE seq = ?1", [seq]).unwrap();
            seq += 1;
        }
    }
    assert!(kinds.len() >= 25, "{kinds:?}");
}

#[test]
fn workflow_logs_have_the_lines_that_workers_report() {
    let filled = fill!(replays::a_call_through_the_queue_makes_a_job_that_can_be_claimed);
    let run = filled.runs().remove(0).id;
    let said = |level, data| LoggedLine { level, message: "half".to_owned(), data };
    let lines = vec![
        said(Level::Warn, serde_json::json!({"percent": 50})),
        said(Level::Info, serde_json::Value::Null),
    ];
    let (node, now) = (filled.attempts().remove(0).1.node, Timestamp(1_790_000_000_001));
    let row = LogRow { run, entry: Seq(3), fence: Fence(1), node, at: now, text: "all".to_owned(), lines };
    let logs = vec![row];
    let commit = Commit { logs, ..Commit::new(&Project::DEFAULT, CommandId::new(uuid::Uuid::now_v7()), now) };
    block_on((&filled.store as &dyn Store).commit_one(commit)).unwrap();
    let sql = "SELECT level, node_id, message, data, created_at FROM workflow_logs WHERE id LIKE '%.f1.%' ORDER BY id";
    let rows = filled.rows(sql, |row| {
        Ok([0, 1, 2, 3, 4].map(|at| row.get::<_, Option<String>>(at).unwrap().unwrap_or_default()))
    });
    let node = filled.attempts().remove(0).1.node.to_string();
    let at = "2026-09-21T14:13:20.001Z";
    let row =
        |level: &str, message: &str, data: &str| [level, node.as_str(), message, data, at].map(str::to_owned);
    let expected =
        [row("info", "all", "{}"), row("warn", "half", r#"{"percent":50}"#), row("info", "half", "{}")];
    assert_eq!(rows, expected);
}

#[test]
fn workflow_tasks_are_the_runs_with_the_states_of_their_nodes() {
    let mut n = 0;
    for filled in all().into_iter().chain(taken_up()) {
        for run in filled.runs() {
            let sql = format!("SELECT * FROM workflow_tasks WHERE run = x'{}'", run.id.uuid().simple());
            let row = filled.rows(&sql, |row| {
                let ids = (text::<String>(row, "id")?, text::<String>(row, "workflow_id")?);
                let money =
                    (text::<i64>(row, "total_estimated_cost")?, text::<i64>(row, "total_actual_cost")?);
                let error = (
                    text::<Option<String>>(row, "error_node_id")?,
                    text::<Option<String>>(row, "error_message")?,
                );
                let modes = (text::<String>(row, "exec_mode")?, text::<String>(row, "start_node_ids")?);
                let times = [moment(text(row, "completed_at")?), moment(text(row, "created_at")?)];
                let states = (text::<String>(row, "node_states")?, text::<String>(row, "runtime_variables")?);
                Ok((ids, text::<String>(row, "status")?, money, error, modes, times, states))
            });
            let [(ids, status, money, error, modes, times, states)] = row.try_into().unwrap();
            let (origin, projection) = (&run.origin, &run.projection);
            assert_eq!(ids, (run.id.to_string(), origin.flow.to_string()));
            let open = matches!(projection.status.word(), "waiting" | "paused" | "canceling");
            assert_eq!(status, if open { "running" } else { projection.status.word() });
            assert_eq!(money, (projection.cost.estimated.0, projection.cost.actual.0));
            let fault = projection.error.as_ref();
            assert_eq!(error.0, fault.map(|error| error.node.to_string()));
            assert_eq!(error.1, fault.map(|error| error.fault.message.clone()));
            assert_eq!((modes.0.as_str(), modes.1.as_str()), ("all", "[]"));
            assert_eq!(times, [projection.ended_at, Some(origin.created_at)]);
            let (states, variables) = states;
            n += filled.compare_states(&run, &serde_json::from_str(&states).unwrap());
            filled.compare_variables(&run, &serde_json::from_str(&variables).unwrap());
        }
    }
    assert!(n > 30, "{n}");
}

impl Filled {
    /// Compares the states of a run's outermost nodes with the fold of its journal; returns their number.
    fn compare_states(&self, row: &RunRow, states: &serde_json::Value) -> usize {
        let (plan, run) = self.folded(row);
        let mut phases = BTreeMap::new();
        phases_of(&plan.root, &run.root, &NodePath::root(), &mut phases);
        let word = |phase: &Phase| match phase {
            Phase::Open(_) if row.projection.ended_at.is_some() => "canceled",
            Phase::Open(_) => "running",
            Phase::Pending | Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => phase.word(),
        };
        let told: BTreeMap<String, &str> =
            phases.iter().map(|(path, phase)| (path.to_string(), word(phase))).collect();
        let seen = states.as_object().unwrap().iter();
        let seen: BTreeMap<String, &str> = seen
            .map(|(path, state)| (path.clone(), state["status"].as_str().unwrap()))
            .filter(|(_, status)| *status != "pending")
            .collect();
        assert_eq!(seen, told);
        for (ix, node) in plan.root.nodes.iter().enumerate() {
            let (state, seen) = (run.root.node(ix), &states[&node.key]);
            if state.phase == Phase::Pending {
                assert!(seen.is_null() || *seen == serde_json::json!({"status": "pending"}), "{seen}");
                continue;
            }
            let word = word(&state.phase);
            let time = |name: &str| moment(seen[name].as_str().map(str::to_owned));
            assert_eq!(time("startedAt"), state.entered_at);
            let closed = state.ended_at.or(row.projection.ended_at).filter(|_| word != "running");
            assert_eq!(time("completedAt"), closed, "{seen}");
            let job = windlass_engine::id::JobId::of_call(row.id, state.fence);
            let job =
                block_on(self.store.job(&Project::DEFAULT, job)).unwrap().map(|row| row.id().to_string());
            assert_eq!(seen["taskId"].as_str(), job.as_deref());
            if let NodeKind::Call(_) = node.kind {
                assert_eq!(seen.get("output"), state.output.as_deref(), "{seen}");
            }
        }
        states.as_object().unwrap().len()
    }

    /// Compares the variables of a run with its shared state. The view of an open run lacks the last error and the writes
    /// of nodes with others inside.
    fn compare_variables(&self, row: &RunRow, variables: &serde_json::Value) {
        let (plan, run) = self.folded(row);
        let mut shared = run.root.shared.unwrap_or_default();
        if row.projection.ended_at.is_none() {
            let holds =
                |node: &&Node| matches!(node.kind, NodeKind::Fan(_) | NodeKind::Sub(_) | NodeKind::Loop(_));
            for node in plan.root.nodes.iter().filter(holds) {
                let key = node.post.output_key.clone().unwrap_or_default();
                shared.retain(|name, _| *name != key && *name != format!("{key}_errors"));
                shared.retain(|name, _| !node.post.output_map.contains_key(name));
            }
            shared.remove("_error");
        }
        assert_eq!(*variables, serde_json::to_value(shared).unwrap(), "{:?}", plan.form);
    }

    fn folded(&self, row: &RunRow) -> (std::sync::Arc<Plan>, Run) {
        let version = block_on(self.store.version(&Project::DEFAULT, VersionRef::Id(row.origin.version)))
            .unwrap()
            .unwrap();
        let plan = compile(&version.definition, Strictness::Strict).plan.unwrap();
        let journal = self.journal(row.id);
        let events = journal.iter().flat_map(|(_, entry)| entry.events.iter().map(|event| (entry.at, event)));
        let run = Run::replay(row.id, &plan, events);
        (plan, run)
    }
}

/// Every node that is not pending, by its path.
fn phases_of(scope: &Scope, state: &ScopeState, path: &NodePath, phases: &mut BTreeMap<NodePath, Phase>) {
    for (ix, node) in scope.nodes.iter().enumerate() {
        let (here, inner) = (path.child(&node.key), state.node(ix));
        if inner.phase == Phase::Pending {
            continue;
        }
        match (&node.kind, inner.nest.as_deref()) {
            (NodeKind::Loop(body), Some(Nest::Loop(turns))) => {
                for (index, turn) in turns.turns.iter().enumerate() {
                    phases_of(&body.body, turn, &here.at(index), phases);
                }
            }
            (_, Some(Nest::Fan(arms))) => {
                let slots = arms.slots.iter().enumerate().filter(|(_, slot)| slot.phase != Phase::Pending);
                phases.extend(slots.map(|(at, slot)| (here.at(at), slot.phase.clone())));
            }
            (_, None) => {}
            (_, Some(Nest::Scope(_) | Nest::Loop(_))) => panic!("no run here has a flow inside"),
        }
        phases.insert(here, inner.phase.clone());
    }
}

#[test]
fn workflows_given_as_yaml_have_their_nodes() {
    let yaml = "nodes:\n- {id: a, type: x}\nedges: []\n";
    let filled = Filled::with(async |store: &dyn Store| {
        let id = uuid::Uuid::from_u128(1);
        let flow = FlowDraft {
            id: FlowId::new(id),
            name: "yaml".to_owned(),
            description: String::new(),
            labels: BTreeMap::new(),
            is_template: false,
            allow_same_name: false,
        };
        let version = VersionDraft {
            id: VersionId::new(id),
            number: None,
            definition: yaml.to_owned(),
            plan: None,
            form: Form::Dag,
            lenient: false,
            status: VersionStatus::Published,
            note: String::new(),
        };
        let (flow, now) = (FlowChoice::Create(flow), Timestamp(1));
        store.publish(&Project::DEFAULT, Publication { flow, version: Some(version), now }).await.unwrap();
    });
    let rows = filled
        .rows("SELECT nodes, edges, definition FROM workflows JOIN versions USING (flow)", |row| {
            Ok([0, 1, 2].map(|at| row.get::<_, String>(at).unwrap()))
        });
    assert_eq!(rows, [[r#"[{"id":"a","type":"x"}]"#, "[]", yaml]]);
}

#[test]
fn workflows_are_the_flows() {
    let filled = fill!(replays::a_run_replays_from_its_journal);
    let definition =
        r#"{"nodes": [{"id": "a", "type": "x"}], "edges": [], "variables": {"v": {"type": "string"}}}"#;
    let sql = "UPDATE versions SET definition = ?1; UPDATE named_flows SET is_template = 1";
    for (nth, sql) in sql.split(';').enumerate() {
        filled.db.execute(sql, params_from_iter([definition].iter().take(1 - nth))).unwrap();
    }
    let flow = filled.runs().remove(0).origin.flow;
    let sql = "SELECT id, name, nodes, edges, variables, is_template FROM workflows WHERE id =";
    let rows = filled.rows(&format!("{sql} '{flow}'"), |row| {
        let texts = [0, 1, 2, 3, 4].map(|at| row.get::<_, String>(at).unwrap());
        Ok((texts, row.get::<_, bool>(5)?))
    });
    let name = block_on((&filled.store as &dyn Store).flow(&Project::DEFAULT, FlowRef::Id(flow)))
        .unwrap()
        .unwrap()
        .name;
    let expected = [
        flow.to_string(),
        name,
        r#"[{"id":"a","type":"x"}]"#.to_owned(),
        "[]".to_owned(),
        r#"{"v":{"type":"string"}}"#.to_owned(),
    ];
    assert_eq!(rows, [(expected, true)]);
    for (fields, owner) in [
        ("", None),
        (r#""account": "acme","#, Some("acme")),
        (r#""account_id": 7,"#, Some("7")),
        (r#""account": "","#, None),
    ] {
        let definition = format!("{{{fields} \"nodes\": [], \"edges\": []}}");
        filled.db.execute("UPDATE versions SET definition = ?1, json = NULL", [definition]).unwrap();
        let sql = format!("SELECT account_id FROM workflows WHERE id = '{flow}'");
        let found = filled.rows(&sql, |row| row.get::<_, Option<String>>(0));
        assert_eq!(found, [owner.map(str::to_owned)], "{fields}");
    }
}

#[test]
fn variables_of_an_open_run_are_those_its_nodes_have_written() {
    let filled = fill!(rounds::nodes_write_while_their_runs_are_open);
    let sql = "SELECT runtime_variables FROM workflow_tasks ORDER BY id";
    let rows = filled.rows(sql, |row| row.get::<_, String>(0));
    let read = |text: &String| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let expected = [
        serde_json::json!({"sum": "six"}),
        serde_json::json!({"all": {"list": [{"deep": null}, 2], "\"\\": {"0": ["'"]}}, "first": {"deep": null},
            "none": null, "odd": "'", "right": [true]}),
    ];
    assert_eq!(rows.iter().map(read).collect::<Vec<_>>(), expected);
    let mut runs = filled.runs();
    runs.sort_by_key(|run| run.id);
    runs.iter().zip(&expected).for_each(|(run, variables)| filled.compare_variables(run, variables));
}
