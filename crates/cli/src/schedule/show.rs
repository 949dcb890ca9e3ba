//! `windlass schedule list`, `show`, `next`, `preview` and the output of changes.

use anyhow::Result;
use clap::Args;
use serde_json::json;
use windlass_sdk::contract::{
    CatchupRule, DstRule, NextRuns, ScheduleInfo, SchedulePreviewRequest, StartedId, Triggered,
};

use super::edit::word;
use crate::exit::Exit;
use crate::output::{self, ShortIds};
use crate::session::{Session, cut, from_now, in_words, native_job_id};

/// Characters of a reason that a row shows.
const REASON_CHARS: usize = 60;

#[derive(Args)]
pub(crate) struct SchedulePreviewArgs {
    /// Five fields, six with seconds first, or a word such as @daily.
    cron: String,
    /// The time zone, such as Europe/Berlin [default: UTC].
    #[arg(long = "timezone", visible_alias = "tz", value_name = "ZONE")]
    timezone: Option<String>,
    /// The policy when clocks change: shift, skip or twice.
    #[arg(long, value_name = "POLICY", value_parser = word::<DstRule>)]
    dst: Option<DstRule>,
    /// The number of times.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    count: u32,
}

pub(super) async fn preview(flags: SchedulePreviewArgs, session: &Session) -> Result<Exit> {
    let preview = SchedulePreviewRequest {
        cron_expr: flags.cron,
        timezone: flags.timezone,
        dst: flags.dst,
        count: Some(flags.count as usize),
    };
    slots(&session.client.schedules().preview(&preview).await?, session)
}

/// Prints times in UTC and in the time zone.
pub(super) fn slots(next: &NextRuns, session: &Session) -> Result<Exit> {
    let id = next.next_runs.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    session.out.value(next, &id, || {
        let local = next.local.iter().cloned().chain(std::iter::repeat(String::new()));
        let rows: Vec<[String; 3]> = next
            .next_runs
            .iter()
            .zip(local)
            .map(|(at, local)| [at.to_string(), local, from_now(*at)])
            .collect();
        if rows.is_empty() {
            return "it has no next time".to_owned();
        }
        session.out.table_text(["due", &format!("in {}", next.timezone), ""], &rows)
    })?;
    Ok(Exit::Done)
}

pub(super) async fn list(session: &Session) -> Result<Exit> {
    let schedules = session.client.schedules().all().await?;
    let ids = session.out.short_ids(schedules.iter().map(|schedule| schedule.id.as_str()));
    session.out.list(
        ["id", "name", "cron", "timezone", "state", "starts", "next", "last", "running"],
        &schedules,
        |schedule| schedule.id.clone(),
        |schedule| row(schedule, ids),
    )?;
    Ok(Exit::Done)
}

fn row(schedule: &ScheduleInfo, ids: ShortIds) -> [String; 9] {
    // The last error matters more than the last start.
    let last = match (&schedule.last_error, &schedule.last_run) {
        (Some(misfire), _) => cut(&misfire.reason, REASON_CHARS),
        (None, Some(last)) => from_now(last.slot),
        (None, None) => String::new(),
    };
    [
        ids.of(&schedule.id),
        schedule.name.clone(),
        schedule.cron_expr.clone(),
        schedule.timezone.clone(),
        state(schedule).to_owned(),
        starts(schedule),
        schedule.next_runs.first().map(|at| from_now(*at)).unwrap_or_default(),
        last,
        schedule.running.len().to_string(),
    ]
}

fn state(schedule: &ScheduleInfo) -> &'static str {
    if schedule.enabled { "enabled" } else { "disabled" }
}

fn starts(schedule: &ScheduleInfo) -> String {
    match (&schedule.task, &schedule.flow) {
        (Some(task), _) => format!("job {} in {}", task.name, task.queue_name),
        (None, Some(flow)) => {
            format!("flow {flow}{}", schedule.version.map(|n| format!(" v{n}")).unwrap_or_default())
        }
        (None, None) => String::new(),
    }
}

/// Prints a schedule.
pub(super) fn print_schedule(schedule: &ScheduleInfo, session: &Session) -> Result<Exit> {
    session.out.value(schedule, &schedule.id, || {
        let state = state(schedule);
        let given = match (&schedule.task, &schedule.params) {
            (Some(task), _) if task.payload.is_null() => String::new(),
            (Some(task), _) => task.payload.to_string(),
            (None, Some(params)) => json!(params).to_string(),
            (None, None) => String::new(),
        };
        let moments = |list: &[_]| {
            let each = |at: &windlass_sdk::contract::Time| format!("{at} ({})", from_now(*at));
            list.iter().map(each).collect::<Vec<_>>().join("\n          ")
        };
        let running: Vec<String> = schedule.running.iter().map(begun).collect();
        let heading = format!("{}  {}  {}\n", schedule.id, schedule.name, session.out.painted(state, state));
        let last = schedule.last_run.as_ref().map(|last| {
            let by = if last.manual { ", asked for" } else { "" };
            format!("{} at {} ({}{by})", begun(&last.started), last.slot, from_now(last.slot))
        });
        let misfire = schedule.last_error.as_ref();
        let window = i64::try_from(schedule.window_ms).unwrap_or(i64::MAX);
        let catchup = match schedule.catchup {
            CatchupRule::None => written(&schedule.catchup),
            CatchupRule::Last | CatchupRule::All => {
                format!("{} within {}", written(&schedule.catchup), in_words(window))
            }
        };
        heading
            + &output::facts([
                ("cron    ", format!("{} in {}", schedule.cron_expr, schedule.timezone)),
                ("starts", starts(schedule)),
                ("given", given),
                ("overlap", written(&schedule.overlap)),
                ("catchup", catchup),
                ("dst", written(&schedule.dst)),
                ("slots", format!("{} fired, {} passed", schedule.fired, schedule.passed)),
                ("last", last.unwrap_or_default()),
                (
                    "misfire",
                    misfire
                        .map(|misfire| format!("{} at {}", misfire.reason, misfire.slot))
                        .unwrap_or_default(),
                ),
                ("running", running.join(", ")),
                ("waiting", moments(&schedule.waiting)),
                ("next", moments(&schedule.next_runs)),
            ])
    })?;
    Ok(Exit::Done)
}

/// The word of a policy on the wire.
fn written(value: &impl serde::Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}

fn begun(what: &StartedId) -> String {
    match what {
        StartedId::TaskId(id) => format!("job {}", native_job_id(id)),
        StartedId::RunId(id) => format!("run {id}"),
    }
}

pub(super) fn print_triggered(triggered: &Triggered, session: &Session) -> Result<Exit> {
    let id = match &triggered.started {
        StartedId::TaskId(id) => native_job_id(id),
        StartedId::RunId(id) => id.clone(),
    };
    session.out.value(triggered, &id, || format!("{} started", begun(&triggered.started)))?;
    Ok(Exit::Done)
}

pub(super) fn print_deleted(schedule: &ScheduleInfo, session: &Session) -> Result<Exit> {
    let gone = json!({ "id": schedule.id, "deleted": true });
    session.out.value(&gone, &schedule.id, || format!("{} ({}) deleted", schedule.id, schedule.name))?;
    Ok(Exit::Done)
}
