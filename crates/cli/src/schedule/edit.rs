//! `windlass schedule create` and `edit`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use windlass_sdk::contract::{
    CatchupRule, DstRule, NewSchedule, NewTask, OverlapRule, ScheduleInfo, SchedulePatch,
};

use super::show::print_schedule;
use crate::exit::{Exit, usage};
use crate::flow::read;
use crate::job::{JobSpecArgs, task_of};
use crate::json::read_json;
use crate::run::key_value;
use crate::session::{Session, duration, in_ms, platform_job_id};

/// The times and policies of a schedule, and its job or flow.
#[derive(Args)]
pub(crate) struct ScheduleArgs {
    /// The name of the schedule [default: that of its job or flow].
    #[arg(long)]
    name: Option<String>,
    /// The cron expression: five fields, six with seconds first, or a word such as @daily.
    #[arg(long, value_name = "EXPR")]
    cron: Option<String>,
    /// The time zone, such as Europe/Berlin [default: UTC].
    #[arg(long = "timezone", visible_alias = "tz", value_name = "ZONE")]
    timezone: Option<String>,
    /// The policy while an earlier one is running: skip, queue, cancel or allow [default: skip].
    #[arg(long, value_name = "POLICY", value_parser = word::<OverlapRule>)]
    overlap: Option<OverlapRule>,
    /// The policy for times at which no server ran: none, last or all [default: none].
    #[arg(long, value_name = "POLICY", value_parser = word::<CatchupRule>)]
    catchup: Option<CatchupRule>,
    /// The policy when clocks change: shift, skip or twice [default: shift].
    #[arg(long, value_name = "POLICY", value_parser = word::<DstRule>)]
    dst: Option<DstRule>,
    /// How late a missed time may be caught up: 6h, 2d [default: 1d].
    #[arg(long, value_name = "TIME", value_parser = duration)]
    window: Option<Duration>,
    /// Create jobs of this name.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["flow", "like"])]
    job: Option<String>,
    #[command(flatten)]
    spec: JobSpecArgs,
    /// Create jobs like this one.
    #[arg(long, value_name = "JOB", conflicts_with = "flow")]
    like: Option<String>,
    /// Start runs of this flow, by name or id.
    #[arg(long)]
    flow: Option<String>,
    /// With --flow: a param of the run, `key=value`, the value JSON or text; repeatable.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    params: Vec<(String, Value)>,
    /// With --flow: the version [default: the newest published one when it fires].
    #[arg(long)]
    version: Option<u32>,
}

#[derive(Args)]
pub(crate) struct ScheduleCreateArgs {
    /// The schedule as a JSON object in a file.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    args: ScheduleArgs,
    /// Create it disabled.
    #[arg(long)]
    disabled: bool,
}

#[derive(Args)]
pub(crate) struct ScheduleEditArgs {
    #[command(flatten)]
    which: super::ScheduleSelector,
    #[command(flatten)]
    args: ScheduleArgs,
}

pub(super) async fn create(create: ScheduleCreateArgs, session: &Session) -> Result<Exit> {
    let ScheduleCreateArgs { file, args, disabled } = create;
    let from_file = match &file {
        Some(file) => described(file).with_context(|| format!("cannot use {}", file.display()))?,
        None => NewSchedule::default(),
    };
    let target = target(&args, from_file.task.as_ref(), from_file.flow.as_deref(), session).await?;
    let mut schedule = from_file;
    if let Some(ScheduleTarget { task, like, flow }) = target {
        if schedule.flow != flow {
            (schedule.params, schedule.version, schedule.account) = (None, None, None);
        }
        (schedule.task, schedule.task_template_id, schedule.flow) = (task, like, flow);
    }
    if schedule.flow.is_some() {
        schedule.params = with_params(schedule.params.take(), args.params);
        schedule.version = args.version.or(schedule.version);
        schedule.account = args.spec.account.or(schedule.account);
    }
    schedule.cron_expr = args.cron.unwrap_or(schedule.cron_expr);
    if schedule.cron_expr.is_empty() {
        return Err(usage("no time is given: add --cron '0 9 * * 1-5' or --cron @daily"));
    }
    if schedule.task.is_none() && schedule.task_template_id.is_none() && schedule.flow.is_none() {
        return Err(usage("no job and no flow is given: add --job NAME, --like JOB or --flow FLOW"));
    }
    schedule.name = args.name.or(schedule.name);
    schedule.timezone = args.timezone.or(schedule.timezone);
    schedule.overlap = args.overlap.or(schedule.overlap);
    schedule.catchup = args.catchup.or(schedule.catchup);
    schedule.dst = args.dst.or(schedule.dst);
    schedule.window_ms = args.window.map(in_ms).or(schedule.window_ms);
    schedule.enabled = disabled.then_some(false).or(schedule.enabled);
    print_schedule(&session.client.schedules().create(&schedule).await?, session)
}

pub(super) async fn edit(edit: ScheduleEditArgs, session: &Session) -> Result<Exit> {
    let ScheduleEditArgs { which, args } = edit;
    let now = session.schedule(&which.schedule).await?;
    let target = target(&args, now.task.as_ref(), now.flow.as_deref(), session).await?.unwrap_or_default();
    let id = now.id.clone();
    let mut change = SchedulePatch {
        name: args.name,
        cron_expr: args.cron,
        timezone: args.timezone,
        enabled: None,
        overlap: args.overlap,
        catchup: args.catchup,
        dst: args.dst,
        window_ms: args.window.map(in_ms),
        task: target.task,
        task_template_id: target.like,
        ..SchedulePatch::default()
    };
    if let Some(flow) = target.flow {
        // The API changes the flow of a schedule with all its fields.
        let kept = Some(now).filter(|now| now.flow.as_ref() == Some(&flow));
        let (params, version, account) = kept.map_or((None, None, None), kept_of);
        change.params = with_params(params, args.params);
        change.version = args.version.or(version);
        change.account = args.spec.account.or(account);
        change.flow = Some(flow);
    }
    if change == SchedulePatch::default() {
        return Err(usage("no change is given: add one, such as --cron '0 8 * * *' or --priority 5"));
    }
    print_schedule(&session.client.schedules().edit(&id, &change).await?, session)
}

type KeptFlowFields = (Option<Map<String, Value>>, Option<u32>, Option<String>);

fn kept_of(schedule: ScheduleInfo) -> KeptFlowFields {
    (schedule.params, schedule.version, schedule.account)
}

fn with_params(kept: Option<Map<String, Value>>, args: Vec<(String, Value)>) -> Option<Map<String, Value>> {
    if args.is_empty() {
        return kept;
    }
    let mut params = kept.unwrap_or_default();
    params.extend(args);
    Some(params)
}

/// The job or flow of a schedule: one of these.
#[derive(Default)]
struct ScheduleTarget {
    task: Option<NewTask>,
    like: Option<String>,
    flow: Option<String>,
}

/// The job or flow of the schedule with the flags applied; `None` without flags about it.
async fn target(
    args: &ScheduleArgs,
    task: Option<&NewTask>,
    flow: Option<&str>,
    session: &Session,
) -> Result<Option<ScheduleTarget>> {
    let about_flow = !args.params.is_empty() || args.version.is_some();
    if let Some(like) = &args.like {
        if about_flow || !args.spec.is_empty() {
            return Err(usage("--like takes all fields from that job: leave the other flags of the job out"));
        }
        return Ok(Some(ScheduleTarget {
            like: Some(platform_job_id(&session.job_id(like).await?)),
            ..ScheduleTarget::default()
        }));
    }
    let flow = args.flow.as_deref().or(flow.filter(|_| args.job.is_none()));
    if let Some(flow) = flow {
        if !args.spec.has_only_account() {
            return Err(usage(format!(
                "runs of the flow `{flow}` have no queue, payload or attempts: use -p KEY=VALUE"
            )));
        }
        let is_given = args.flow.is_some() || about_flow || !args.spec.is_empty();
        return Ok(
            is_given.then(|| ScheduleTarget { flow: Some(flow.to_owned()), ..ScheduleTarget::default() })
        );
    }
    if about_flow {
        return Err(usage("--param and --version belong to a flow: add --flow FLOW"));
    }
    if args.job.is_none() && args.spec.is_empty() {
        return Ok(None);
    }
    let mut task = match (task, &args.job) {
        (Some(task), _) => task.clone(),
        (None, Some(_)) => task_of(json!({}), args.job.as_deref())?,
        (None, None) => return Err(usage("the job has no name: add --job NAME")),
    };
    if let Some(name) = &args.job {
        task.name.clone_from(name);
    }
    args.spec.clone().apply_to_task(&mut task);
    Ok(Some(ScheduleTarget { task: Some(task), ..ScheduleTarget::default() }))
}

/// The schedule that a file describes. The queue of its job may be left out.
fn described(file: &Path) -> Result<NewSchedule> {
    let mut value = read_json(read(file)?.as_bytes())?;
    if !value.is_object() {
        bail!(
            "a schedule is a JSON object such as {{\"cron_expr\": \"@daily\", \"task\": {{\"name\": \"report\"}}}}"
        );
    }
    if let Some(task) = value.get_mut("task") {
        *task = json!(task_of(task.take(), None).context("task")?);
    }
    // A flag may give the cron expression.
    if value.get("cron_expr").is_none() {
        value["cron_expr"] = Value::from("");
    }
    Ok(serde_json::from_value(value)?)
}

/// Reads a word of a policy.
pub(super) fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(Value::from(text)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_policy_is_refused_with_the_list_of_policies() {
        assert_eq!(word::<OverlapRule>("queue"), Ok(OverlapRule::Queue));
        let wrong = word::<CatchupRule>("some").unwrap_err();
        assert!(wrong.contains("`none`, `last`, `all`"), "{wrong}");
    }

    #[test]
    fn params_of_flags_win_over_existing_ones() {
        let there = json!({"a": 1, "b": 2}).as_object().cloned();
        assert_eq!(with_params(there.clone(), Vec::new()), there);
        let both = with_params(there, vec![("b".to_owned(), json!(3))]).unwrap();
        assert_eq!(Value::Object(both), json!({"a": 1, "b": 3}));
    }
}
