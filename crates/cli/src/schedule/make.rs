//! Making and changing schedules.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use windlass_sdk::types::{Catchup, Dst, NewSchedule, NewTask, Overlap, Schedule, ScheduleChange};

use super::look::shown;
use crate::flow::read;
use crate::job::{Spec, task_of};
use crate::run::key_value;
use crate::session::{Session, duration, in_ms};

/// When and how a schedule fires, and what it starts.
#[derive(Args)]
pub(crate) struct Said {
    /// The name of the schedule; that of what it starts unless given.
    #[arg(long)]
    name: Option<String>,
    /// When: five fields, six with seconds first, or a word such as @daily.
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// The time zone, such as Europe/Berlin; UTC unless named.
    #[arg(long = "timezone", visible_alias = "tz", value_name = "ZONE")]
    timezone: Option<String>,
    /// While an earlier one is running: skip, queue, cancel or allow; skip unless given.
    #[arg(long, value_name = "POLICY", value_parser = word::<Overlap>)]
    overlap: Option<Overlap>,
    /// After slots that no server saw: none, last or all; none unless given.
    #[arg(long, value_name = "POLICY", value_parser = word::<Catchup>)]
    catchup: Option<Catchup>,
    /// When clocks change: shift, skip or twice; shift unless given.
    #[arg(long, value_name = "POLICY", value_parser = word::<Dst>)]
    dst: Option<Dst>,
    /// How late a missed slot may still be caught up: 6h, 2d; a day unless given.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    window: Option<Duration>,
    /// Create jobs of this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["flow", "like"])]
    job: Option<String>,
    #[command(flatten)]
    spec: Spec,
    /// Create jobs like this one.
    #[arg(long, value_name = "JOB", conflicts_with = "flow")]
    like: Option<String>,
    /// Start runs of this flow, by name or id.
    #[arg(long)]
    flow: Option<String>,
    /// With --flow: what the run is given, `key=value`, the value JSON or text; may be repeated.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    params: Vec<(String, Value)>,
    /// With --flow: the number of the version; the newest published one when it fires unless named.
    #[arg(long)]
    version: Option<u32>,
}

#[derive(Args)]
pub(crate) struct Create {
    /// The schedule as a JSON object in a file.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    said: Said,
    /// Make it, but do not let it fire yet.
    #[arg(long)]
    disabled: bool,
}

#[derive(Args)]
pub(crate) struct Edit {
    #[command(flatten)]
    which: super::Which,
    #[command(flatten)]
    said: Said,
}

pub(super) async fn create(create: Create, session: &Session) -> Result<ExitCode> {
    let Create { file, said, disabled } = create;
    let from_file = match &file {
        Some(file) => described(file).with_context(|| format!("cannot use {}", file.display()))?,
        None => NewSchedule::default(),
    };
    let target = target(&said, from_file.task.as_ref(), from_file.flow.as_deref(), session).await?;
    let mut schedule = from_file;
    if let Some(Target { task, like, flow }) = target {
        if schedule.flow != flow {
            (schedule.params, schedule.version, schedule.account) = (None, None, None);
        }
        (schedule.task, schedule.task_template_id, schedule.flow) = (task, like, flow);
    }
    if schedule.flow.is_some() {
        schedule.params = with_params(schedule.params.take(), said.params);
        schedule.version = said.version.or(schedule.version);
        schedule.account = said.spec.account.or(schedule.account);
    }
    schedule.cron_expr = said.cron.unwrap_or(schedule.cron_expr);
    if schedule.cron_expr.is_empty() {
        bail!("say when, such as --cron '0 9 * * 1-5' or --cron @daily");
    }
    if schedule.task.is_none() && schedule.task_template_id.is_none() && schedule.flow.is_none() {
        bail!("say what it starts: --job NAME, --like JOB, or --flow FLOW");
    }
    schedule.name = said.name.or(schedule.name);
    schedule.timezone = said.timezone.or(schedule.timezone);
    schedule.overlap = said.overlap.or(schedule.overlap);
    schedule.catchup = said.catchup.or(schedule.catchup);
    schedule.dst = said.dst.or(schedule.dst);
    schedule.window_ms = said.window.map(in_ms).or(schedule.window_ms);
    schedule.enabled = disabled.then_some(false).or(schedule.enabled);
    shown(&session.client.create_schedule(&schedule).await?, session)
}

pub(super) async fn edit(edit: Edit, session: &Session) -> Result<ExitCode> {
    let Edit { which, said } = edit;
    let now = session.schedule(&which.schedule).await?;
    let target = target(&said, now.task.as_ref(), now.flow.as_deref(), session).await?.unwrap_or_default();
    let id = now.id.clone();
    let mut change = ScheduleChange {
        name: said.name,
        cron_expr: said.cron,
        timezone: said.timezone,
        enabled: None,
        overlap: said.overlap,
        catchup: said.catchup,
        dst: said.dst,
        window_ms: said.window.map(in_ms),
        task: target.task,
        task_template_id: target.like,
        ..ScheduleChange::default()
    };
    if let Some(flow) = target.flow {
        // What a schedule starts is changed as a whole.
        let kept = Some(now).filter(|now| now.flow.as_ref() == Some(&flow));
        let (params, version, account) = kept.map_or((None, None, None), kept_of);
        change.params = with_params(params, said.params);
        change.version = said.version.or(version);
        change.account = said.spec.account.or(account);
        change.flow = Some(flow);
    }
    if change == ScheduleChange::default() {
        bail!("say what is to be different, such as --cron '0 8 * * *' or --priority 5");
    }
    shown(&session.client.change_schedule(&id, &change).await?, session)
}

type Kept = (Option<Map<String, Value>>, Option<u32>, Option<String>);

fn kept_of(schedule: Schedule) -> Kept {
    (schedule.params, schedule.version, schedule.account)
}

fn with_params(kept: Option<Map<String, Value>>, said: Vec<(String, Value)>) -> Option<Map<String, Value>> {
    if said.is_empty() {
        return kept;
    }
    let mut params = kept.unwrap_or_default();
    params.extend(said);
    Some(params)
}

/// What a schedule starts: one of these.
#[derive(Default)]
struct Target {
    task: Option<NewTask>,
    like: Option<String>,
    flow: Option<String>,
}

/// What the flags say it starts, laid over what it started; `None` if they say nothing about it.
async fn target(
    said: &Said,
    task: Option<&NewTask>,
    flow: Option<&str>,
    session: &Session,
) -> Result<Option<Target>> {
    let about_flow = !said.params.is_empty() || said.version.is_some();
    if let Some(like) = &said.like {
        if about_flow || !said.spec.is_empty() {
            bail!("--like takes everything from that job: say nothing else about it");
        }
        return Ok(Some(Target { like: Some(session.job_id(like).await?), ..Target::default() }));
    }
    let flow = said.flow.as_deref().or(flow.filter(|_| said.job.is_none()));
    if let Some(flow) = flow {
        if !said.spec.says_only_who_pays() {
            bail!(
                "it starts runs of the flow `{flow}`, which have no queue, payload or attempts: use -p KEY=VALUE"
            );
        }
        let is_said = said.flow.is_some() || about_flow || !said.spec.is_empty();
        return Ok(is_said.then(|| Target { flow: Some(flow.to_owned()), ..Target::default() }));
    }
    if about_flow {
        bail!("--param and --version are about runs of a flow: name it with --flow");
    }
    if said.job.is_none() && said.spec.is_empty() {
        return Ok(None);
    }
    let mut task = match (task, &said.job) {
        (Some(task), _) => task.clone(),
        (None, Some(_)) => task_of(json!({}), said.job.as_deref())?,
        (None, None) => bail!("say what the jobs are called: --job NAME"),
    };
    if let Some(name) = &said.job {
        task.name.clone_from(name);
    }
    said.spec.clone().lay_over(&mut task);
    Ok(Some(Target { task: Some(task), ..Target::default() }))
}

/// A schedule as a file describes it. The queue of its job may be left out, as everywhere here.
fn described(file: &Path) -> Result<NewSchedule> {
    let mut value: Value = serde_json::from_str(&read(file)?)?;
    if !value.is_object() {
        bail!(
            "a schedule is a JSON object such as {{\"cron_expr\": \"@daily\", \"task\": {{\"name\": \"report\"}}}}"
        );
    }
    if let Some(task) = value.get_mut("task") {
        *task = json!(task_of(task.take(), None).context("task")?);
    }
    // Flags may still say when.
    if value.get("cron_expr").is_none() {
        value["cron_expr"] = Value::from("");
    }
    Ok(serde_json::from_value(value)?)
}

/// One of the words of a policy.
pub(super) fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::from(text)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_words_that_are_listed_when_wrong() {
        assert_eq!(word::<Overlap>("queue"), Ok(Overlap::Queue));
        let wrong = word::<Catchup>("some").unwrap_err();
        assert!(wrong.contains("`none`, `last`, `all`"), "{wrong}");
    }

    #[test]
    fn single_params_win_over_those_that_are_there() {
        let there = json!({"a": 1, "b": 2}).as_object().cloned();
        assert_eq!(with_params(there.clone(), Vec::new()), there);
        let both = with_params(there, vec![("b".to_owned(), json!(3))]).unwrap();
        assert_eq!(Value::Object(both), json!({"a": 1, "b": 3}));
    }
}
