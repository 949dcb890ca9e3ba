//! Examples: a definition, and beside it `<name>.run.json` with the params of the run, the actions from outside and the
//! expected end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::function;
use windlass_engine::plan::{self, Call, Exec, Form, Node, Plan};
use windlass_sdk::contract::StartMode;

use crate::flow::read;

/// The depth of nested directories at most.
const DEPTH_MAX: usize = 8;
/// The built-in examples: path and text of each file.
const BUILT_IN: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/examples.rs"));
const SCRIPT_SUFFIX: &str = ".run.json";
/// Descriptions of jobs and schedules, which are played by the scripts beside them.
const NO_FLOWS: [&str; 2] = [".job.json", ".schedule.json"];

/// Everything in a directory of examples.
#[derive(Default)]
pub(super) struct Examples {
    /// Those that are played, in the order of their names.
    pub(super) played: Vec<Example>,
    /// The texts of all definitions, by the names of their flows: flows may call others.
    pub(super) texts: BTreeMap<String, String>,
    /// Services that their nodes call.
    called: BTreeSet<String>,
    /// Scripts that their nodes run.
    pub(super) scripts: Vec<plan::Script>,
}

impl Examples {
    /// Every service a worker must offer for them.
    pub(super) fn services(&self) -> BTreeSet<String> {
        let built_in = function::NAMES.into_iter().map(str::to_owned);
        let dead = self.played.iter().flat_map(|example| example.script.dead_workers.values().flatten());
        self.called.iter().cloned().chain(built_in).chain(dead.cloned()).collect()
    }
}

/// A flow with its script.
pub(super) struct Example {
    /// The path below the examples' directory, without the ending of the file.
    pub(super) name: String,
    pub(super) form: Form,
    pub(super) script: ExampleScript,
}

/// The content of a `.run.json` file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExampleScript {
    /// The subject of the example, for readers.
    #[serde(default, rename = "about")]
    _about: String,
    /// The params of the run.
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    /// How calls are answered, by the path of their node or the name of their service. Others are made by the
    /// built-in functions.
    #[serde(default)]
    pub(super) answers: BTreeMap<String, ExampleAnswers>,
    /// Actions from outside, in order, each when the run cannot go on by itself.
    #[serde(default)]
    pub(super) script: Vec<ExampleAction>,
    #[serde(default)]
    pub(super) expect: ExpectedOutcome,
    /// Which nodes run: `all`, `specified_starts` or `isolated_nodes`.
    #[serde(default)]
    pub(super) exec_mode: StartMode,
    /// The nodes that `exec_mode` is about.
    #[serde(default)]
    pub(super) start_node_ids: Vec<String>,
    /// Workers that are registered but not there, with their services.
    #[serde(default)]
    pub(super) dead_workers: BTreeMap<String, Vec<String>>,
}

/// One answer for every call, or one after the other, the last one repeated.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum ExampleAnswers {
    Each(Vec<ExampleAnswer>),
    Always(ExampleAnswer),
}

impl ExampleAnswers {
    /// The answer to the call number `n`, from 0.
    pub(super) fn at(&self, n: usize) -> Option<&ExampleAnswer> {
        match self {
            ExampleAnswers::Always(answer) => Some(answer),
            ExampleAnswers::Each(list) => list.get(n).or(list.last()),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum ExampleAnswer {
    Done(Value),
    /// Fails with this message; tried again if the node has retries.
    Fail(String),
    /// Fails with this message, for good.
    Refuse(String),
    /// Never answers.
    Silence {},
    /// Not finished: asked again after `recheck_ms`.
    Suspend {
        recheck_ms: u64,
        #[serde(default)]
        memo: Value,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum ExampleAction {
    Signal {
        key: String,
        value: Value,
    },
    Decide {
        #[serde(default)]
        node: Option<String>,
        decision: Value,
        #[serde(default)]
        by: Option<String>,
        #[serde(default)]
        comment: Option<String>,
    },
    Cancel {
        #[serde(default)]
        reason: Option<String>,
    },
    /// Failed and canceled nodes again.
    Retry {},
    /// From a node on again, with the shared state as it is or as given.
    Rerun {
        from: String,
        #[serde(default)]
        shared: Option<Map<String, Value>>,
    },
}

/// The expected end of the run. Absent fields are not compared.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedOutcome {
    #[serde(default)]
    pub(super) status: Option<String>,
    /// These keys of the shared state, with these values.
    #[serde(default)]
    pub(super) shared: Map<String, Value>,
    #[serde(default, deserialize_with = "some")]
    pub(super) result: Option<Value>,
    /// Part of the message the run failed with.
    #[serde(default)]
    pub(super) error: Option<String>,
    /// The states of nodes, by path.
    #[serde(default)]
    pub(super) nodes: BTreeMap<String, String>,
    /// Outputs of nodes, by path.
    #[serde(default)]
    pub(super) outputs: BTreeMap<String, Value>,
}

/// A field that is there and null is a value, not an absence.
fn some<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Reads all examples below `dir`, or those of this program, in the order of their names. A definition without a script
/// can be called by others and is not played itself.
pub(super) fn load(dir: Option<&Path>) -> Result<Examples> {
    let Some(dir) = dir else {
        let files = BUILT_IN.iter().map(|(name, text)| (PathBuf::from(name), (*text).to_owned()));
        return examples_of(Path::new(""), &files.collect());
    };
    if !dir.is_dir() {
        bail!("there is no directory {}: name the one with the examples by --examples DIR", dir.display());
    }
    let mut paths = BTreeSet::new();
    collect(dir, 0, &mut paths)?;
    let mut files = BTreeMap::new();
    for path in paths.into_iter().filter(|path| is_definition(path) || is_script(path)) {
        let text = read(&path)?;
        files.insert(path, text);
    }
    examples_of(dir, &files)
}

fn examples_of(dir: &Path, files: &BTreeMap<PathBuf, String>) -> Result<Examples> {
    let mut examples = Examples::default();
    for (file, text) in files.iter().filter(|(file, _)| is_definition(file)) {
        let name = name_of(file, dir);
        let plan = plan_of(file, text)?;
        examples.called.extend(plan.nodes().flat_map(Node::calls).filter_map(service_of));
        examples.scripts.extend(plan.nodes().flat_map(Node::calls).filter_map(local_script_of));
        if examples.texts.insert(name.clone(), text.clone()).is_some() {
            bail!(
                "two definitions are called `{name}`: rename one of {}.*",
                file.with_extension("").display()
            );
        }
        let script_file = file.with_extension("").with_added_extension("run.json");
        if let Some(script) = files.get(&script_file) {
            let script = script_of(&script_file, script)?;
            examples.played.push(Example { name, form: plan.form, script });
        }
    }
    for script in files.keys().filter(|file| is_script(file)) {
        let name = name_of(script, dir);
        if !examples.texts.contains_key(name.strip_suffix(".run").unwrap_or(&name)) {
            bail!("{} has no definition beside it", script.display());
        }
    }
    if examples.played.is_empty() {
        bail!("{} holds no example: a definition with a `.run.json` file beside it", dir.display());
    }
    Ok(examples)
}

/// The service of a worker that a call asks for.
fn service_of(call: &Call) -> Option<String> {
    match &call.exec {
        Exec::Http | Exec::Queue => Some(call.service.clone()).filter(|service| !service.is_empty()),
        Exec::Func { .. } | Exec::Script(_) | Exec::Flow { .. } => None,
    }
}

fn local_script_of(call: &Call) -> Option<plan::Script> {
    match &call.exec {
        Exec::Script(script) => Some((**script).clone()),
        Exec::Http | Exec::Queue | Exec::Func { .. } | Exec::Flow { .. } => None,
    }
}

fn collect(dir: &Path, depth: usize, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    if depth > DEPTH_MAX {
        bail!("{} is more than {DEPTH_MAX} directories deep", dir.display());
    }
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let path = entry.with_context(|| format!("cannot list {}", dir.display()))?.path();
        if path.is_dir() {
            collect(&path, depth + 1, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

fn is_script(file: &Path) -> bool {
    file.to_string_lossy().ends_with(SCRIPT_SUFFIX)
}

fn is_definition(file: &Path) -> bool {
    let ending = file.extension().and_then(|ending| ending.to_str());
    let name = file.to_string_lossy();
    let is_flow = !is_script(file) && !NO_FLOWS.iter().any(|suffix| name.ends_with(suffix));
    matches!(ending, Some("json" | "yaml" | "yml")) && is_flow
}

fn name_of(file: &Path, dir: &Path) -> String {
    let below = file.strip_prefix(dir).unwrap_or(file).with_extension("");
    below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn plan_of(file: &Path, text: &str) -> Result<Arc<Plan>> {
    let compiled = compile(text, Strictness::Strict);
    match compiled.plan {
        Some(plan) => Ok(plan),
        None => {
            let problems: Vec<String> = compiled.problems.iter().map(ToString::to_string).collect();
            bail!("{} does not compile:\n  {}", file.display(), problems.join("\n  "))
        }
    }
}

fn script_of(file: &Path, text: &str) -> Result<ExampleScript> {
    serde_json::from_str(text).with_context(|| format!("{} is no run file", file.display()))
}
