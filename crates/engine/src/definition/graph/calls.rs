//! Calls of a node or a branch: the executor, the service, and their retries and time limits.

use serde_json::Value;

use crate::definition::reader::{Fields, Reader, shown};
use crate::limits;
use crate::money::Cost;
use crate::params::Params;
use crate::plan::{Call, Exec, OutputMode, Script, StdinMode, Temporary};
use crate::reference::Template;
use crate::retry::{Backoff, Policy};

/// How long a script may run that does not say.
const SCRIPT_TIMEOUT_MS: u64 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::definition) enum ExecType {
    Http,
    Queue,
    Func,
    Script,
}

pub(in crate::definition) const EXEC_TYPES: [(&str, ExecType); 4] = [
    ("http", ExecType::Http),
    ("queue", ExecType::Queue),
    ("local_func", ExecType::Func),
    ("local_script", ExecType::Script),
];

/// The fields that say who works: of a node, or of one of its branches.
pub(in crate::definition) struct Doer<'v> {
    pub(in crate::definition) service: Option<&'v str>,
    pub(in crate::definition) exec_type: Option<ExecType>,
    func: Option<&'v str>,
    script: Option<Script>,
    path: String,
}

impl<'v> Doer<'v> {
    pub(in crate::definition) fn read(fields: &mut Fields<'v>, reader: &mut Reader) -> Doer<'v> {
        Doer {
            service: fields.name("service", reader),
            exec_type: fields.word("exec_type", &EXEC_TYPES, reader),
            func: fields.name("func", reader),
            script: read_script(fields, reader),
            path: fields.path.clone(),
        }
    }

    /// Whether the node names a service, function, script or flow at all.
    pub(in crate::definition) fn is_named(&self) -> bool {
        self.service.is_some() || self.func.is_some() || self.script.is_some()
    }

    /// The executor and the name of the service; a problem if the node names none.
    pub(in crate::definition) fn exec(
        &self,
        fallback: ExecType,
        reader: &mut Reader,
    ) -> Option<(Exec, String)> {
        let service = self.service.map(str::to_owned);
        match self.exec_type.unwrap_or(fallback) {
            kind @ (ExecType::Http | ExecType::Queue) => {
                let Some(service) = service else {
                    self.missing_service(reader);
                    return None;
                };
                Some((if kind == ExecType::Http { Exec::Http } else { Exec::Queue }, service))
            }
            ExecType::Func => {
                let Some(name) = self.func.or(self.service).map(str::to_owned) else {
                    reader.error(format!("{}.func", self.path), "the function is missing: name it in `func`");
                    return None;
                };
                Some((Exec::Func { name: name.clone() }, service.unwrap_or(name)))
            }
            ExecType::Script => {
                let Some(script) = self.script.clone() else {
                    let reason = "the script is missing: give `cmd` or `code`";
                    reader.error(format!("{}.script", self.path), reason);
                    return None;
                };
                let name = if script.language.is_empty() { &script.cmd } else { &script.language };
                let service = service.unwrap_or_else(|| shown(name));
                Some((Exec::Script(Box::new(script)), service))
            }
        }
    }

    fn missing_service(&self, reader: &mut Reader) {
        let path = format!("{}.service", self.path);
        let reason = "the service is missing: give its name".to_owned();
        if self.script.is_some() {
            reader.hint_error(path, reason, "set `exec_type: local_script` to run the script");
        } else if self.func.is_some() {
            reader.hint_error(path, reason, "set `exec_type: local_func` to call the function");
        } else {
            reader.error(path, reason);
        }
    }
}

const LANGUAGES: [(&str, &str); 6] = [
    ("python", "python"),
    ("javascript", "javascript"),
    ("bash", "bash"),
    ("sh", "sh"),
    ("python3", "python"),
    ("node", "javascript"),
];
/// The language of code without a language and without a command that runs it.
const LANGUAGE_DEFAULT: &str = "bash";
const STDIN_MODES: [(&str, StdinMode); 2] = [("json", StdinMode::Json), ("none", StdinMode::None)];
const OUTPUT_MODES: [(&str, OutputMode); 2] = [("json", OutputMode::Json), ("text", OutputMode::Text)];

fn read_script(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Script> {
    let mut script = fields.inner("script", reader)?;
    if script.map.is_empty() {
        return None;
    }
    let text = |found: Option<&str>| found.unwrap_or_default().to_owned();
    let mut read = Script {
        cmd: text(script.text("cmd", reader)),
        args: script.texts("args", reader).unwrap_or_default(),
        code: text(script.text("code", reader)),
        language: text(script.word("language", &LANGUAGES, reader)),
        timeout_ms: script.whole("timeout_ms", reader).filter(|ms| *ms > 0).unwrap_or(SCRIPT_TIMEOUT_MS),
        env: script
            .map("env", reader)
            .into_iter()
            .flatten()
            .map(|(key, value)| {
                (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            })
            .collect(),
        work_dir: text(script.text("work_dir", reader)),
        stdin_mode: script.word("stdin_mode", &STDIN_MODES, reader).unwrap_or_default(),
        output_mode: script.word("output_mode", &OUTPUT_MODES, reader).unwrap_or_default(),
    };
    if read.cmd.is_empty() && read.code.is_empty() {
        reader.error(script.path.clone(), "a script needs `cmd` or `code`");
    } else if read.cmd.is_empty() && read.language.is_empty() {
        LANGUAGE_DEFAULT.clone_into(&mut read.language);
    }
    script.finish(reader);
    Some(read)
}

/// Settings that hold for every call of a node.
#[derive(Debug, Clone, Default)]
pub(in crate::definition) struct Terms {
    pub(in crate::definition) retry: Policy,
    pub(in crate::definition) failover_max: u32,
    pub(in crate::definition) failover_delay_ms: u64,
    pub(in crate::definition) weighted_by_load: bool,
    pub(in crate::definition) timeout_ms: u64,
    pub(in crate::definition) total_timeout_ms: u64,
    pub(in crate::definition) temporary: Temporary,
    pub(in crate::definition) cost: Option<Cost>,
    pub(in crate::definition) recheck_ms: Option<u64>,
    pub(in crate::definition) at_most_once: bool,
}

impl Terms {
    pub(in crate::definition) fn read(fields: &mut Fields<'_>, reader: &mut Reader) -> Terms {
        Terms {
            retry: policy(
                fields.whole("max_retries", reader).unwrap_or(0),
                fields.whole("wait_ms", reader).unwrap_or(0),
                Backoff::Fixed,
            ),
            failover_max: count(fields.whole("max_attempts", reader).unwrap_or(0)),
            failover_delay_ms: fields.whole("attempt_delay_ms", reader).unwrap_or(0),
            weighted_by_load: fields.flag("weighted_by_load", reader).unwrap_or(false),
            timeout_ms: 0,
            total_timeout_ms: 0,
            temporary: Temporary::Fails,
            cost: cost(fields, reader),
            recheck_ms: recheck(fields, reader),
            at_most_once: fields.flag("at_most_once", reader).unwrap_or(false),
        }
    }

    /// The call of `exec` to `service` on these terms.
    pub(in crate::definition) fn call(&self, exec: Exec, service: String, params: Params) -> Call {
        // Only push workers can be switched: a job finds its worker, and the server is the only one of its kind.
        let failover_max = if exec == Exec::Http { self.failover_max } else { 1 };
        Call {
            exec,
            service,
            params,
            retry: self.retry,
            failover_max,
            failover_delay_ms: self.failover_delay_ms,
            weighted_by_load: self.weighted_by_load,
            timeout_ms: self.timeout_ms,
            total_timeout_ms: self.total_timeout_ms,
            temporary: self.temporary,
            cost: self.cost.clone(),
            recheck_ms: self.recheck_ms,
            at_most_once: self.at_most_once,
        }
    }
}

/// Growing delays get jitter, so that calls that failed together do not retry together; a fixed delay is exact.
pub(in crate::definition) fn policy(max: u64, delay_ms: u64, backoff: Backoff) -> Policy {
    let jitter = backoff == Backoff::Exponential;
    Policy { max: count(max), delay_ms, backoff, jitter, ..Policy::default() }
}

fn count(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Reads `recheck_ms`: how often a suspended call is asked again.
pub(in crate::definition) fn recheck(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<u64> {
    let bounds = (*limits::RECHECK_MS.start(), *limits::RECHECK_MS.end());
    fields.between("recheck_ms", bounds, " milliseconds", reader)
}

/// Reads `cost: {estimate, actual}`; a bare value is the estimate.
pub(in crate::definition) fn cost(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Cost> {
    let value = fields.value("cost")?;
    if !value.is_object() {
        let estimate = template(value, &fields.at("cost"), reader)?;
        return Some(Cost { estimate, actual: None });
    }
    let mut inner = Fields::of(value, fields.at("cost"), reader)?;
    let estimate = match inner.value("estimate") {
        Some(value) => template(value, &inner.at("estimate"), reader),
        None => {
            reader.error(inner.at("estimate"), "a cost needs an estimate, in minor units");
            None
        }
    };
    let actual = inner.value("actual").and_then(|value| template(value, &inner.at("actual"), reader));
    inner.finish(reader);
    Some(Cost { estimate: estimate?, actual })
}

/// An amount or a reference to one.
fn template(value: &Value, path: &str, reader: &mut Reader) -> Option<Template> {
    if let Value::Number(n) = value
        && n.as_i64().is_none_or(|n| n < 0)
    {
        reader.error(path, format!("an amount is a whole number of minor units from 0, not {n}"));
        return None;
    }
    Template::from_dag(value).map_err(|reason| reader.error(path, reason)).ok()
}
