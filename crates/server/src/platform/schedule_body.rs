//! The body of a new or changed schedule.

use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_engine::problem::{Problem, Problems};
use windlass_engine::schedule::{Catchup, Cron, Dst, Overlap};
use windlass_runtime::schedules::{FiringTarget, ScheduleDraft};

use super::new_task::{TaskContext, examine_task};
use crate::app::App;
use crate::fields::{BodyFields, refused};
use crate::job::parse_id;
use crate::problem::{ApiResult, Code};

pub(super) const OVERLAPS: [(&str, Overlap); 4] = [
    ("skip", Overlap::Skip),
    ("queue", Overlap::Queue),
    ("cancel", Overlap::Cancel),
    ("allow", Overlap::Allow),
];
pub(super) const CATCHUPS: [(&str, Catchup); 3] =
    [("none", Catchup::None), ("last", Catchup::Last), ("all", Catchup::All)];
pub(super) const DSTS: [(&str, Dst); 3] = [("shift", Dst::Shift), ("skip", Dst::Skip), ("twice", Dst::Twice)];
/// A cron expression that is never wrong, to look at a time zone alone.
const ANY_MINUTE: &str = "* * * * *";
/// How far back missed slots are searched: a year.
const WINDOW_MS_MAX: u64 = 366 * 86_400_000;

/// The fields of a body; absent ones are `None`.
#[derive(Clone)]
pub(super) struct ScheduleFields {
    pub(super) name: Option<String>,
    pub(super) cron_expr: Option<String>,
    pub(super) timezone: Option<String>,
    pub(super) dst: Option<Dst>,
    pub(super) enabled: Option<bool>,
    pub(super) overlap: Option<Overlap>,
    pub(super) catchup: Option<Catchup>,
    pub(super) window_ms: Option<u64>,
    pub(super) target: Option<FiringTarget>,
}

impl ScheduleFields {
    /// Reads a body; everything that is wrong with it is told at once.
    pub(super) async fn read(app: &App, mut body: BodyFields, is_new: bool) -> ApiResult<ScheduleFields> {
        let mut problems = Problems::default();
        let cron_expr = if is_new {
            body.required("cron_expr", &mut problems)
        } else {
            body.text("cron_expr", &mut problems)
        };
        let mut fields = ScheduleFields {
            name: body.text("name", &mut problems),
            cron_expr,
            timezone: body.text("timezone", &mut problems),
            dst: body.word("dst", &DSTS, &mut problems),
            enabled: body.flag("enabled", &mut problems),
            overlap: body.word("overlap", &OVERLAPS, &mut problems),
            catchup: body.word("catchup", &CATCHUPS, &mut problems),
            window_ms: body.whole("window_ms", 0, WINDOW_MS_MAX, &mut problems),
            target: None,
        };
        let mut told = Vec::new();
        match asked(&mut body, is_new, &mut problems) {
            Some(TargetFields::Template(id)) => fields.target = template(app, &id, &mut problems).await?,
            Some(TargetFields::Task(task)) => {
                let (spec, wrong) = examine_task(task, TaskContext::Schedule);
                told = wrong;
                fields.target = Some(FiringTarget::Job(Box::new(spec)));
            }
            Some(TargetFields::Flow(flow)) => fields.target = flow.find(app, &mut problems).await?,
            None => {}
        }
        body.done(&mut problems);
        let mut all: Vec<Problem> = problems.into_list();
        all.extend(told);
        if all.is_empty() {
            return Ok(fields);
        }
        // Problems that the runtime would report later are reported together with these.
        let expr = fields.cron_expr.as_deref().unwrap_or(ANY_MINUTE);
        all.extend(wrong_cron(expr, fields.timezone.as_deref().unwrap_or_default()));
        Err(refused(all))
    }

    /// The draft, changed as the body says.
    pub(super) fn over(self, draft: ScheduleDraft) -> ScheduleDraft {
        ScheduleDraft {
            name: self.name.unwrap_or(draft.name),
            cron_expr: self.cron_expr.unwrap_or(draft.cron_expr),
            timezone: self.timezone.unwrap_or(draft.timezone),
            dst: self.dst.unwrap_or(draft.dst),
            enabled: self.enabled.unwrap_or(draft.enabled),
            overlap: self.overlap.unwrap_or(draft.overlap),
            catchup: self.catchup.unwrap_or(draft.catchup),
            window_ms: self.window_ms.unwrap_or(draft.window_ms),
            target: self.target.unwrap_or(draft.target),
        }
    }
}

/// The problems of a cron expression and of its time zone.
pub(super) fn wrong_cron(expr: &str, zone: &str) -> Vec<Problem> {
    let Err(problem) = Cron::parse(expr, zone) else { return Vec::new() };
    // The zone is looked at last.
    let zone = Cron::parse(ANY_MINUTE, zone).err().filter(|zone| zone.path != problem.path);
    [Some(problem), zone].into_iter().flatten().collect()
}

/// The target of a schedule, as the body names it.
enum TargetFields {
    Template(String),
    Task(BodyFields),
    Flow(FlowTargetFields),
}

struct FlowTargetFields {
    flow: String,
    version: Option<u32>,
    params: Map<String, Value>,
    account: Option<String>,
}

/// The target of a schedule: exactly one of three fields.
fn asked(body: &mut BodyFields, is_new: bool, problems: &mut Problems) -> Option<TargetFields> {
    let named: Vec<&str> =
        ["task_template_id", "task", "flow"].into_iter().filter(|name| body.has(name)).collect();
    if named.len() > 1 {
        let reason = format!("it says `{}`: give one of them", named.join("` and `"));
        problems.error(body.at(named[1]), reason);
    } else if named.is_empty() && is_new {
        let reason = "it names no target: give `task`, `task_template_id`, or `flow` with `params`";
        problems.error(body.place(), reason);
    }
    for name in ["version", "params", "account"] {
        if body.has(name) && !body.has("flow") {
            problems.error(body.at(name), "it goes with `flow`: give that too");
        }
    }
    let template = body.text("task_template_id", problems);
    let task = body.within("task", problems);
    let flow = body.text("flow", problems);
    let version = body.whole("version", 1, u32::MAX, problems);
    let params = body.object("params", problems).unwrap_or_default();
    let account = body.text("account", problems);
    match (template, task, flow) {
        (Some(id), None, None) => Some(TargetFields::Template(id)),
        (None, Some(task), None) => Some(TargetFields::Task(task)),
        (None, None, Some(flow)) => {
            Some(TargetFields::Flow(FlowTargetFields { flow, version, params, account }))
        }
        (None, None, None) | (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => None,
    }
}

/// A task like the one that is named.
async fn template(app: &App, text: &str, problems: &mut Problems) -> ApiResult<Option<FiringTarget>> {
    let row = match parse_id(text) {
        Some(job) => app.store().job(app.project(), job).await?,
        None => None,
    };
    match row {
        Some(row) if row.job.spec.run.is_some() => {
            problems.error("$.task_template_id", "the task belongs to a run: name one of its own");
            Ok(None)
        }
        Some(row) => {
            let mut spec = Arc::unwrap_or_clone(row.job.spec);
            if spec.is_template() {
                // The open template has its key; each task that is made from it would be taken for it.
                spec.dedup_key.clear();
            }
            spec.run_at = None;
            Ok(Some(FiringTarget::Job(Box::new(spec))))
        }
        None => {
            problems.error("$.task_template_id", "there is no such task: create it first, or give `task`");
            Ok(None)
        }
    }
}

impl FlowTargetFields {
    async fn find(self, app: &App, problems: &mut Problems) -> ApiResult<Option<FiringTarget>> {
        match app.flow(&self.flow).await {
            Ok(flow) => Ok(Some(FiringTarget::Flow {
                flow: flow.id,
                version: self.version,
                params: self.params,
                account: self.account,
            })),
            Err(error) if error.code() == Code::UnknownFlow => {
                problems.error("$.flow", "there is no flow of this name or id: publish it first");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
