//! The language of the case files.

use serde_json::{Map, Value, json};
use windlass_engine::counter::Fence;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::effect::Effect;
use windlass_engine::event::{Event, Start};
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::money::{Amount, Bill};
use windlass_engine::path::NodePath;
use windlass_engine::retry::{DeliveryProgress, Fault, FaultKind};
use windlass_engine::run::EstimateInputs;
use windlass_engine::time::Timestamp;

use super::shown::{shown_dry_run, shown_effect, shown_event};
use super::world::TestRun;

/// Plays a case and returns its text with the recorded lines as they are now.
pub fn play(text: &str) -> Result<String, String> {
    let (head, rest) = split_head(text);
    let mut out = head.clone();
    let definition: String =
        head.lines().filter(|line| !line.starts_with("# ")).map(|line| format!("{line}\n")).collect();
    let lenient = text.contains("\n= lenient");
    let strictness = if lenient { Strictness::Lenient } else { Strictness::Strict };
    let compiled = compile(&definition, strictness);
    let mut world = compiled.plan.clone().map(TestRun::of);
    let mut last = Vec::new();
    for line in rest.lines() {
        match line.split_at_checked(2) {
            Some((">" | "> " | "! " | "x ", _)) => {}
            Some((mark @ ("< " | "<~"), input)) => {
                out.push_str(line);
                out.push('\n');
                let world =
                    world.as_mut().ok_or_else(|| format!("does not compile: {:#?}", compiled.problems))?;
                last = feed(world, input.trim_start()).map_err(|error| format!("`{line}`: {error}"))?;
                for recorded in last.iter().filter(|_| mark == "< ") {
                    out.push_str(recorded);
                    out.push('\n');
                }
            }
            Some(("= ", claim)) => {
                out.push_str(line);
                out.push('\n');
                let holds = match claim.split_once(' ').unwrap_or((claim, "")) {
                    ("lenient", _) => Ok(()),
                    ("saw" | "unseen" | "silence", _) => about_answer(&last, claim),
                    (
                        "problem" | "warning" | "unreported" | "problems" | "no" | "expand" | "ok"
                        | "publishes",
                        _,
                    ) => about_definition(&compiled, claim),
                    _ => match &world {
                        Some(world) => about_run(world, claim),
                        None => Err(format!("does not compile: {:#?}", compiled.problems)),
                    },
                };
                holds.map_err(|error| format!("`{line}`: {error}"))?;
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    Ok(out)
}

fn split_head(text: &str) -> (String, String) {
    let (mut head, mut rest) = (String::new(), String::new());
    for line in text.lines() {
        let body = !rest.is_empty() || ["< ", "<~", "= "].iter().any(|mark| line.starts_with(mark));
        let part = if body { &mut rest } else { &mut head };
        part.push_str(line);
        part.push('\n');
    }
    (head, rest)
}

/// `TIME [short=a,b] [spend_limit=N] WORD …`
fn feed(world: &mut TestRun, text: &str) -> Result<Vec<String>, String> {
    let (time, mut rest) = text.split_once(' ').ok_or("an input is `TIME WORD …`")?;
    let mut given = Given::at(Timestamp(time.parse().map_err(|_| format!("bad time `{time}`"))?));
    if let Some(short) = rest.strip_prefix("short=") {
        let (nodes, after) = short.split_once(' ').ok_or("short=NODE,… WORD …")?;
        given.insufficient_funds = nodes.split(',').map(NodePath::from).collect();
        rest = after;
    }
    if let Some(limit) = rest.strip_prefix("spend_limit=") {
        let (limit, after) = limit.split_once(' ').ok_or("spend_limit=N WORD …")?;
        given.spend_limit = Some(limit.parse().map_err(show)?);
        rest = after;
    }
    let input = parse_input(world, rest)?;
    let mut lines = Vec::new();
    let submitted = world.submit(&input, &given);
    world.last = Some(submitted.clone());
    match submitted {
        Ok(step) => {
            lines.extend(step.events.iter().map(|event| format!("> {}", shown_event(event))));
            lines.extend(step.effects.iter().map(|effect| format!("! {}", shown_effect(effect))));
        }
        Err(refusal) => lines.push(format!("x {refusal}")),
    }
    world.check()?;
    Ok(lines)
}

fn parse_input(world: &TestRun, text: &str) -> Result<Input, String> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let call = |outcome: fn(&str) -> Result<CallOutcome, String>| -> Result<Input, String> {
        let (target, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let (target, worker) = match target.split_once('%') {
            Some((target, worker)) => (target, Some(worker.to_owned())),
            None => (target, None),
        };
        let (node, fence) = match target.split_once('@') {
            Some((node, fence)) => (node, fence.parse().map_err(|_| "bad fence")?),
            None => (target, current_fence(world, target)),
        };
        Ok(Input::CallEnded { node: NodePath::from(node), fence, outcome: outcome(rest)?, worker })
    };
    Ok(match word {
        "start" => {
            let start: Start = if rest.is_empty() {
                Start::default()
            } else {
                serde_json::from_value(value(rest)?).map_err(show)?
            };
            Input::Start(Box::new(start))
        }
        "done" => call(|rest| Ok(CallOutcome::Done(value(rest)?.into())))?,
        "fail" => call(|rest| Ok(CallOutcome::Failed(fault(rest)?)))?,
        "fail!" => call(|rest| Ok(CallOutcome::Failed(fault(rest)?.permanent())))?,
        "suspend" => call(|rest| {
            let (recheck, memo) = rest.split_once(' ').unwrap_or((rest, ""));
            Ok(CallOutcome::Suspended { memo: value(memo)?, recheck_ms: recheck.parse().ok() })
        })?,
        "lost" => call(|_| Ok(CallOutcome::WorkerLost))?,
        "server_lost" => call(|_| Ok(CallOutcome::ServerLost))?,
        "canceled" => call(|_| Ok(CallOutcome::Canceled))?,
        "child" => child_ended(world, rest)?,
        "time" => Input::TimePassed,
        "signal" => {
            let (key, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let (key, id) = match key.split_once('#') {
                Some((key, id)) => (key, Some(id.to_owned())),
                None => (key, None),
            };
            Input::Signal { id, key: key.to_owned(), value: value(rest)?, by: None }
        }
        "decide" => {
            let mut parts = rest.splitn(4, ' ');
            let node = parts.next().filter(|node| *node != "-").map(NodePath::from);
            let decision = value(parts.next().unwrap_or(""))?;
            let by = parts.next().map(str::to_owned);
            let comment = parts.next().map(str::to_owned);
            Input::Decide { node, decision, by, comment }
        }
        "cancel" => Input::Cancel { reason: (!rest.is_empty()).then(|| rest.to_owned()), by: None },
        "pause" => Input::Pause,
        "resume" => Input::Resume,
        "step" => Input::Step,
        "retry" => Input::Retry,
        "rerun" => {
            let (from, shared) = rest.split_once(' ').unwrap_or((rest, ""));
            let shared: Option<Map<String, Value>> =
                if shared.is_empty() { None } else { Some(serde_json::from_str(shared).map_err(show)?) };
            Input::Rerun { from: NodePath::from(from), shared }
        }
        "continue" => {
            let (node, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            Input::Continue { node: NodePath::from(node), value: value(rest)? }
        }
        "funded" => Input::BalanceChanged { budget: rest.parse().ok(), balance: None },
        "raised" => Input::ReserveRaised { budget: rest.parse().map_err(show)? },
        "balance" => Input::BalanceChanged { budget: None, balance: rest.parse().ok() },
        other => return Err(format!("unknown input `{other}`")),
    })
}

/// `NODE ESTIMATED ACTUAL done|fail|canceled …`, or `-` for a bill without an end.
fn child_ended(world: &TestRun, text: &str) -> Result<Input, String> {
    let [target, estimated, actual, how] = *text.splitn(4, ' ').collect::<Vec<_>>() else {
        return Err("child NODE ESTIMATED ACTUAL done|fail|canceled|- …".to_owned());
    };
    let amount = |text: &str| text.parse::<i64>().map_err(show);
    let bill = Bill { estimated: Amount(amount(estimated)?), actual: Amount(amount(actual)?) };
    let (word, rest) = how.split_once(' ').unwrap_or((how, ""));
    let told = parse_input(world, &format!("{} {target} {rest}", word.replace('-', "canceled")))?;
    let Input::CallEnded { node, fence, outcome, .. } = told else {
        return Err("no end of a call".to_owned());
    };
    Ok(Input::ChildEnded { node, fence, outcome: (word != "-").then_some(outcome), bill })
}

fn current_fence(world: &TestRun, node: &str) -> Fence {
    let calls = world.run.open_calls(&world.plan);
    calls.iter().find(|(path, ..)| path.as_str() == node).map_or(Fence::ZERO, |(_, fence, _)| *fence)
}

/// `KIND[+sent|+unsent][+other] [MESSAGE]`: how far the call came, and whether there is another worker to call.
fn fault(text: &str) -> Result<Fault, String> {
    let (kind, message) = text.split_once(' ').unwrap_or((text, "failed"));
    let mut words = kind.split('+');
    let kind: FaultKind = serde_json::from_value(json!(words.next())).map_err(show)?;
    let mut fault = Fault::new(kind, message);
    for word in words {
        match word {
            "sent" => fault = fault.undelivered(DeliveryProgress::Sent),
            "unsent" => fault = fault.undelivered(DeliveryProgress::NotSent),
            "other" => fault.delivery.has_other_worker = true,
            other => return Err(format!("unknown word `{other}` of a delivery")),
        }
    }
    Ok(fault)
}

fn value(text: &str) -> Result<Value, String> {
    if text.is_empty() {
        Ok(Value::Null)
    } else {
        serde_json::from_str(text).map_err(|e| format!("{e}: {text}"))
    }
}

fn show(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn about_definition(compiled: &windlass_engine::definition::Compiled, claim: &str) -> Result<(), String> {
    let listed = || compiled.problems.iter().map(|p| format!("\n    {p}")).collect::<String>();
    let (word, rest) = claim.split_once(' ').unwrap_or((claim, ""));
    match word {
        "ok" if compiled.plan.is_some() && compiled.problems.is_empty() => Ok(()),
        "no" if compiled.plan.is_none() => Ok(()),
        "publishes" if compiled.plan.is_some() => Ok(()),
        "problems" if compiled.problems.len().to_string() == rest => Ok(()),
        "unreported" if !compiled.problems.iter().any(|p| p.to_string().contains(rest)) => Ok(()),
        "ok" | "no" | "publishes" | "problems" | "unreported" => Err(format!("problems:{}", listed())),
        "expand" => {
            let expansion = windlass_engine::definition::expand(&compiled.definition, Strictness::Strict);
            let now = serde_json::to_value(&expansion.tasks).unwrap();
            if now == value(rest)? { Ok(()) } else { Err(format!("it is {now}")) }
        }
        _ => {
            let found = compiled.problems.iter().any(|problem| {
                let severity = if word == "problem" { "error" } else { "warning" };
                let text = problem.to_string();
                text.contains(rest) && text.contains(severity)
            });
            if found { Ok(()) } else { Err(format!("problems:{}", listed())) }
        }
    }
}

/// Expectations about the last input: `saw TEXT`, `unseen TEXT`, or `silence` for no event at all.
fn about_answer(last: &[String], claim: &str) -> Result<(), String> {
    let (word, rest) = claim.split_once(' ').unwrap_or((claim, ""));
    let found = last.iter().any(|line| line.contains(rest));
    let holds = match word {
        "saw" => found,
        "unseen" => !found,
        _ => last.is_empty(),
    };
    if holds { Ok(()) } else { Err(format!("the last input led to:\n    {}", last.join("\n    "))) }
}

fn about_run(world: &TestRun, claim: &str) -> Result<(), String> {
    let run = &world.run;
    let state = super::world::picture(run);
    let (word, rest) = claim.split_once(' ').unwrap_or((claim, ""));
    let equal = |now: Value, wanted: &str| {
        let wanted = value(wanted)?;
        if now == wanted { Ok(()) } else { Err(format!("it is {now}")) }
    };
    match word {
        "status" => equal(state["status"].clone(), &format!("\"{rest}\"")),
        "result" => equal(state["result"].clone(), rest),
        "shared" => equal(state["root"]["shared"].clone(), rest),
        "wake" => equal(json!(run.wake_at()), rest),
        "cost" => equal(json!([run.cost.estimated, run.cost.actual]), rest),
        "own" => equal(json!([run.own_cost().estimated, run.own_cost().actual]), rest),
        "round" => equal(json!(run.round), rest),
        "granted" => equal(json!(run.n_granted), rest),
        "needs" => equal(json!(run.needs()), rest),
        "overlooked" => equal(json!(run.is_overlooked()), rest),
        "error" => {
            let error =
                run.error.as_ref().map(|e| format!("{} {} {}", e.node, e.fault.kind, e.fault.message));
            match error {
                Some(error) if error.contains(rest) => Ok(()),
                other => Err(format!("it is {other:?}")),
            }
        }
        "node" => {
            let (node, wanted) = rest.split_once(' ').ok_or("= node NODE STATUS")?;
            let now = windlass_engine::run::Run::node_status(run, &world.plan, &NodePath::from(node));
            if now == Some(wanted) { Ok(()) } else { Err(format!("it is {now:?}")) }
        }
        "output" => {
            let (node, wanted) = rest.split_once(' ').ok_or("= output NODE VALUE")?;
            let now = run.node_output(&world.plan, &NodePath::from(node));
            equal(now.map_or(Value::Null, |output| (*output).clone()), wanted)
        }
        "why" => {
            let now = serde_json::to_string(&run.why(&world.plan)).unwrap();
            if now.contains(rest) { Ok(()) } else { Err(format!("it is {now}")) }
        }
        "log" => {
            let found = world.journal.iter().any(|(_, event)| match event {
                Event::Logged { message, .. } => message.contains(rest),
                _ => false,
            });
            if found { Ok(()) } else { Err("nothing of the kind was logged".to_owned()) }
        }
        "dry-run" => {
            let (input, wanted) =
                rest.split_once(" => ").ok_or("= dry-run INPUT => NODE STATUS, … | calls | cost")?;
            let given = Given::at(run.updated_at);
            let now = match run.dry_run(
                &world.plan,
                &parse_input(world, input)?,
                &given,
                &EstimateInputs::default(),
            ) {
                Ok(report) => shown_dry_run(&report),
                Err(refusal) => format!("refused: {refusal}"),
            };
            if now == wanted { Ok(()) } else { Err(format!("it is {now}")) }
        }
        "ledger" | "told" | "order" | "stops" | "refused" | "nothing" => about_effects(world, word, rest),
        other => Err(format!("unknown claim `{other}`")),
    }
}

/// Expectations about effects: `ledger` all movements, `told` the last message to the parent, `order` fields of the
/// newest call of a node; and of the last input `stops`, `refused` and `nothing`.
fn about_effects(world: &TestRun, word: &str, rest: &str) -> Result<(), String> {
    let last = world.last.as_ref().ok_or("nothing was asked yet")?;
    let equal = |now: Value, wanted: &str| {
        let wanted = value(wanted)?;
        if now == wanted { Ok(()) } else { Err(format!("it is {now}")) }
    };
    match word {
        "ledger" => {
            let moved = world.effects.iter().filter_map(|effect| match effect {
                Effect::Move { movement, .. } => Some(json!([movement.kind.word(), movement.amount])),
                _ => None,
            });
            equal(moved.collect(), rest)
        }
        "told" => {
            let told = world.effects.iter().rev().find_map(|effect| match effect {
                Effect::Tell { status, result, error, .. } => Some(json!([status, result, error])),
                _ => None,
            });
            equal(json!(told), rest)
        }
        "order" => {
            let (node, wanted) = rest.split_once(' ').ok_or("= order NODE {…}")?;
            let newest = world.effects.iter().rev().find_map(|effect| match effect {
                Effect::Call(spec) if spec.node.as_str() == node => Some(order_fields(spec)),
                _ => None,
            });
            let now = newest.ok_or("it was never called")?;
            let Value::Object(wanted) = value(wanted)? else { return Err("= order NODE {…}".to_owned()) };
            let same = wanted.iter().all(|(field, value)| now.get(field) == Some(value));
            if same { Ok(()) } else { Err(format!("it is {now}")) }
        }
        "stops" => {
            let effects = last.iter().flat_map(|step| &step.effects);
            let stopped = effects.filter_map(|effect| match effect {
                Effect::Cancel { node, fence, .. } => Some(json!(format!("{node}@{fence}"))),
                _ => None,
            });
            equal(stopped.collect(), rest)
        }
        "refused" => match last {
            Err(refusal) if refusal.to_string().contains(rest) => Ok(()),
            other => Err(format!("it is {other:?}")),
        },
        _ => match last {
            Ok(step) if step.events.is_empty() && step.effects.is_empty() => Ok(()),
            other => Err(format!("it is {other:?}")),
        },
    }
}

fn order_fields(spec: &windlass_engine::effect::CallSpec) -> Value {
    json!({
        "service": spec.service, "exec": format!("{:?}", spec.exec), "input": spec.input,
        "params": spec.params, "memo": spec.memo, "key": spec.key, "visit": spec.visit,
        "fence": spec.fence, "attempt": spec.attempt, "deadline": spec.deadline,
        "timeout_ms": spec.timeout_ms, "priority": spec.priority, "avoid": spec.avoid, "stays_with": spec.stays_with,
        "weighted_by_load": spec.weighted_by_load, "depth": spec.depth,
    })
}
