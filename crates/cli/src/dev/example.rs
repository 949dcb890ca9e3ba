//! An example: a definition, and beside it `<name>.run.json`, which says what the run is given, what happens around
//! it and how it must end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::plan::Plan;

use crate::flow::read;

/// Directories inside directories that are looked into.
const DEPTH: usize = 8;
const SCRIPT_SUFFIX: &str = ".run.json";

/// Flows by name, for flows that call others.
pub(super) type Flows = BTreeMap<String, Arc<Plan>>;

/// A flow and what is to be done with it.
pub(super) struct Example {
    /// The path below the examples' directory, without the ending of the file.
    pub(super) name: String,
    pub(super) plan: Arc<Plan>,
    pub(super) script: Script,
}

/// What stands in a `.run.json` file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    /// What the file is an example of; for readers.
    #[serde(default, rename = "about")]
    _about: String,
    /// What the run is given.
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    /// How calls are answered, by the path of their node or the name of their service. Others are made by the
    /// built-in functions.
    #[serde(default)]
    pub(super) answers: BTreeMap<String, Answers>,
    /// What happens to the run from outside, in order, each when the run can go no further by itself.
    #[serde(default)]
    pub(super) script: Vec<Act>,
    #[serde(default)]
    pub(super) expect: Expect,
}

/// One answer for every call, or one after the other, the last one repeated.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Answers {
    Each(Vec<Answer>),
    Always(Answer),
}

impl Answers {
    /// The answer to the call number `n`, from 0.
    pub(super) fn at(&self, n: usize) -> Option<&Answer> {
        match self {
            Answers::Always(answer) => Some(answer),
            Answers::Each(list) => list.get(n).or(list.last()),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Answer {
    Done(Value),
    /// Fails with this message; tried again if the node has retries.
    Fail(String),
    /// Not finished: asked again after `recheck_ms`.
    Suspend {
        recheck_ms: u64,
        #[serde(default)]
        memo: Value,
    },
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Act {
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
    /// Failed and cancelled nodes again.
    Retry {},
}

/// How the run must end. What is not said does not matter.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
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
    /// What nodes put out, by path.
    #[serde(default)]
    pub(super) outputs: BTreeMap<String, Value>,
}

/// A field that is there and null is a value, not an absence.
fn some<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

/// Reads all examples below `dir`, in the order of their names. A definition without a script can be called by
/// others and is not played itself.
pub(super) fn load(dir: &Path) -> Result<(Vec<Example>, Flows)> {
    if !dir.is_dir() {
        bail!("there is no directory {}: name the one with the examples by --examples DIR", dir.display());
    }
    let mut files = BTreeSet::new();
    collect(dir, 0, &mut files)?;
    let (mut examples, mut flows) = (Vec::new(), Flows::new());
    for file in files.iter().filter(|file| is_definition(file)) {
        let name = name_of(file, dir);
        let plan = plan_of(file)?;
        if flows.insert(name.clone(), Arc::clone(&plan)).is_some() {
            bail!(
                "two definitions are called `{name}`: rename one of {}.*",
                file.with_extension("").display()
            );
        }
        let script_file = file.with_extension("").with_added_extension("run.json");
        if files.contains(&script_file) {
            examples.push(Example { name, plan, script: script_of(&script_file)? });
        }
    }
    for script in files.iter().filter(|file| is_script(file)) {
        let name = name_of(script, dir);
        if !flows.contains_key(name.strip_suffix(".run").unwrap_or(&name)) {
            bail!("{} has no definition beside it", script.display());
        }
    }
    if examples.is_empty() {
        bail!("{} holds no example: a definition with a `.run.json` file beside it", dir.display());
    }
    Ok((examples, flows))
}

fn collect(dir: &Path, depth: usize, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    if depth > DEPTH {
        bail!("{} is more than {DEPTH} directories deep", dir.display());
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
    matches!(ending, Some("json" | "yaml" | "yml")) && !is_script(file)
}

fn name_of(file: &Path, dir: &Path) -> String {
    let below = file.strip_prefix(dir).unwrap_or(file).with_extension("");
    below.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

fn plan_of(file: &Path) -> Result<Arc<Plan>> {
    let compiled = compile(&read(file)?, Strictness::Strict);
    match compiled.plan {
        Some(plan) => Ok(plan),
        None => {
            let problems: Vec<String> = compiled.problems.iter().map(ToString::to_string).collect();
            bail!("{} does not compile:\n  {}", file.display(), problems.join("\n  "))
        }
    }
}

fn script_of(file: &Path) -> Result<Script> {
    serde_json::from_str(&read(file)?).with_context(|| format!("{} is no run file", file.display()))
}
