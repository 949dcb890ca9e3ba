//! Calls of a node or a branch: the executor, the service, and their retries and time limits.

use serde_json::Value;

use crate::definition::reader::{Fields, Reader, is_blank, shown};
use crate::limits;
use crate::money::Cost;
use crate::params::Params;
use crate::plan::{Call, Exec, OutputMode, Priority, Recheck, Script, StdinMode, Temporary};
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

/// The `func` that older definitions give to scripts.
const SCRIPT_FUNC: &str = "local_script";

/// The fields that say who works: of a node, of one of its branches, or of an exec that overrides single fields.
#[derive(Debug, Clone, Default)]
pub(in crate::definition) struct Doer {
    service: Option<String>,
    exec_type: Option<ExecType>,
    func: Option<String>,
    script: Option<Script>,
    /// Where the fields stand; of an override, where the overriding ones do.
    path: String,
    /// Those of `func` and `script` that stand there, and are not inherited.
    own: Vec<&'static str>,
}

impl Doer {
    pub(in crate::definition) fn read(fields: &mut Fields<'_>, reader: &mut Reader) -> Doer {
        let service = fields.name("service", reader).map(str::to_owned);
        let exec_type = fields.word("exec_type", &EXEC_TYPES, reader);
        let func = fields.name("func", reader).map(str::to_owned);
        let script = read_script(fields, reader);
        let own = [("func", func.is_some()), ("script", script.is_some())];
        let own = own.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect();
        Doer { service, exec_type, func, script, path: fields.path.clone(), own }
    }

    /// The fields of the node that is being read, with those of `subflow_execs` over them.
    pub(in crate::definition) fn of_node(fields: &mut Fields<'_>, reader: &mut Reader) -> Doer {
        let own = Doer::read(fields, reader);
        match reader.doer.take() {
            Some(given) => given.over(&own),
            None => own,
        }
    }

    /// These fields, and those of `under` that are not given here.
    pub(in crate::definition) fn over(self, under: &Doer) -> Doer {
        Doer {
            service: self.service.or_else(|| under.service.clone()),
            exec_type: self.exec_type.or(under.exec_type),
            func: self.func.or_else(|| under.func.clone()),
            script: self.script.or_else(|| under.script.clone()),
            path: self.path,
            own: self.own,
        }
    }

    /// Whether a service, function, script or flow is named at all.
    pub(in crate::definition) fn is_named(&self) -> bool {
        self.service.is_some() || self.func.is_some() || self.script.is_some()
    }

    /// Whether any of the fields is given.
    pub(in crate::definition) fn is_given(&self) -> bool {
        self.is_named() || self.exec_type.is_some()
    }

    /// Warns of fields that say who works where that is not asked.
    pub(in crate::definition) fn warn_of_idle(&self, reason: &str, reader: &mut Reader) {
        let given = [
            ("service", self.service.is_some()),
            ("exec_type", self.exec_type.is_some()),
            ("func", self.func.is_some()),
            ("script", self.script.is_some()),
        ];
        for (name, _) in given.into_iter().filter(|(_, given)| *given) {
            reader.warning(format!("{}.{name}", self.path), reason);
        }
    }

    /// Whether one of these execs takes this field from the node.
    fn is_taken(&self, name: &str, execs: &[Value]) -> bool {
        let given = |exec: &Value, name: &str| exec.get(name).is_some_and(|value| !is_blank(value));
        let kind_of = |exec: &Value| match exec.get("exec_type").and_then(Value::as_str).unwrap_or_default() {
            "" => Some(self.exec_type_or(ExecType::Http)),
            word => EXEC_TYPES.iter().find(|(known, _)| *known == word).map(|(_, kind)| *kind),
        };
        execs.iter().filter(|exec| !given(exec, name) && !given(exec, "subflow")).any(|exec| match name {
            "func" => kind_of(exec) == Some(ExecType::Func),
            "script" => kind_of(exec) == Some(ExecType::Script),
            _ => true,
        })
    }

    /// The same without warnings about fields that execs take.
    pub(in crate::definition) fn shared_with(mut self, execs: &[Value]) -> Doer {
        let own = std::mem::take(&mut self.own);
        self.own = own.into_iter().filter(|name| !self.is_taken(name, execs)).collect();
        self
    }

    /// Warns of fields of a node whose branches are these execs, if none of them takes the field.
    pub(in crate::definition) fn warn_of_untaken(&self, execs: &[Value], reader: &mut Reader) {
        let service = self.service.as_ref().map(|_| "service");
        for name in service.into_iter().chain(self.own.iter().copied()) {
            if !self.is_taken(name, execs) {
                reader.warning(
                    format!("{}.{name}", self.path),
                    "has no effect: no branch takes it from the node",
                );
            }
        }
    }

    /// The same without an executor, which also says how services are called.
    pub(in crate::definition) fn without_exec_type(self) -> Doer {
        Doer { exec_type: None, ..self }
    }

    /// The executor that is given or implied.
    pub(in crate::definition) fn exec_type_or(&self, fallback: ExecType) -> ExecType {
        let is_script = self.func.as_deref() == Some(SCRIPT_FUNC) && self.script.is_some();
        self.exec_type.unwrap_or(if is_script { ExecType::Script } else { fallback })
    }

    /// The executor and the name of the service; a problem if the node names none.
    pub(in crate::definition) fn exec(
        &self,
        fallback: ExecType,
        reader: &mut Reader,
    ) -> Option<(Exec, String)> {
        let service = self.service.clone();
        let kind = self.exec_type_or(fallback);
        let exec = match kind {
            ExecType::Http | ExecType::Queue => {
                let Some(service) = service else {
                    self.missing_service(reader);
                    return None;
                };
                (if kind == ExecType::Http { Exec::Http } else { Exec::Queue }, service)
            }
            ExecType::Func => {
                let Some(name) = self.func.clone().or_else(|| service.clone()) else {
                    reader.error(format!("{}.func", self.path), "the function is missing: name it in `func`");
                    return None;
                };
                (Exec::Func { name: name.clone() }, service.unwrap_or(name))
            }
            ExecType::Script => {
                let Some(script) = self.script.clone() else {
                    let reason = "the script is missing: give `cmd` or `code`";
                    reader.error(format!("{}.script", self.path), reason);
                    return None;
                };
                let name = if script.language.is_empty() { &script.cmd } else { &script.language };
                let service = service.unwrap_or_else(|| shown(name));
                (Exec::Script(Box::new(script)), service)
            }
        };
        self.warn_of_unused(kind, reader);
        Some(exec)
    }

    /// Warns of a function or script that the executor does not use.
    fn warn_of_unused(&self, kind: ExecType, reader: &mut Reader) {
        let (word, used) = match kind {
            ExecType::Http => ("http", ""),
            ExecType::Queue => ("queue", ""),
            ExecType::Func => ("local_func", "func"),
            ExecType::Script => ("local_script", "script"),
        };
        for name in self.own.iter().filter(|name| **name != used) {
            if kind == ExecType::Script && self.func.as_deref() == Some(SCRIPT_FUNC) {
                continue;
            }
            reader.warning(format!("{}.{name}", self.path), format!("has no effect with exec_type {word}"));
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
    if fields.value("script").is_some_and(is_blank) {
        return None;
    }
    let mut script = fields.inner("script", reader)?;
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
    pub(in crate::definition) recheck: Recheck,
    pub(in crate::definition) priority: Option<Priority>,
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
            recheck: recheck(fields, reader),
            priority: None,
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
            recheck: self.recheck,
            priority: self.priority,
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

/// Reads `recheck_ms` and `until_reported`: when a suspended call is asked again.
pub(in crate::definition) fn recheck(fields: &mut Fields<'_>, reader: &mut Reader) -> Recheck {
    let bounds = (*limits::RECHECK_MS.start(), *limits::RECHECK_MS.end());
    let is_absent = reader.is_lenient() && fields.value("recheck_ms").is_some_and(is_blank);
    let every = if is_absent { None } else { fields.between("recheck_ms", bounds, " milliseconds", reader) };
    let until_reported = fields.flag("until_reported", reader).unwrap_or(false);
    match (every, until_reported) {
        (Some(_), true) => {
            let reason =
                "a suspended call is asked again every `recheck_ms` or waits until it is reported, not both";
            reader.error(fields.at("until_reported"), reason);
            Recheck::UntilReported
        }
        (Some(ms), false) => Recheck::Every(ms),
        (None, true) => Recheck::UntilReported,
        (None, false) => Recheck::OfService,
    }
}

/// Reads `cost: {estimate, actual}`; a bare value is the estimate.
pub(in crate::definition) fn cost(fields: &mut Fields<'_>, reader: &mut Reader) -> Option<Cost> {
    let value = fields.value("cost")?;
    if value.as_object().is_some_and(|cost| cost.values().all(Value::is_null)) {
        return None;
    }
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
