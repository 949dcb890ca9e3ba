//! What a body says about a schedule.

use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_engine::problem::{Problem, Problems};
use windlass_engine::schedule::{Catchup, Cron, Dst, Overlap};
use windlass_runtime::schedule::{Draft, Target};

use super::fields::{Fields, refused};
use super::shape;
use super::task::{Place, judged};
use crate::app::App;
use crate::problem::{Answer, Code};

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
/// How far back missed slots may be looked for: a year. Older ones nobody misses.
const WINDOW_MS_MAX: u64 = 366 * 86_400_000;

/// What a body says; what it does not say is absent.
#[derive(Clone)]
pub(super) struct Said {
    pub(super) name: Option<String>,
    pub(super) cron_expr: Option<String>,
    pub(super) timezone: Option<String>,
    pub(super) dst: Option<Dst>,
    pub(super) enabled: Option<bool>,
    pub(super) overlap: Option<Overlap>,
    pub(super) catchup: Option<Catchup>,
    pub(super) window_ms: Option<u64>,
    pub(super) target: Option<Target>,
}

impl Said {
    /// Reads a body; everything that is wrong with it is told at once.
    pub(super) async fn read(app: &App, mut body: Fields, is_new: bool) -> Answer<Said> {
        let mut problems = Problems::default();
        let cron_expr = if is_new {
            body.required("cron_expr", &mut problems)
        } else {
            body.text("cron_expr", &mut problems)
        };
        let mut said = Said {
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
            Some(Asked::Template(id)) => said.target = template(app, &id, &mut problems).await?,
            Some(Asked::Task(task)) => {
                let (spec, wrong) = judged(task, Place::Schedule);
                told = wrong;
                said.target = Some(Target::Job(Box::new(spec)));
            }
            Some(Asked::Flow(flow)) => said.target = flow.find(app, &mut problems).await?,
            None => {}
        }
        body.done(&mut problems);
        let mut all: Vec<Problem> = problems.into_list();
        all.extend(told);
        if all.is_empty() {
            return Ok(said);
        }
        // What the runtime would refuse after this is told with it.
        let expr = said.cron_expr.as_deref().unwrap_or(ANY_MINUTE);
        all.extend(wrong_cron(expr, said.timezone.as_deref().unwrap_or_default()));
        Err(refused(all))
    }

    /// The draft, changed as the body says.
    pub(super) fn over(self, draft: Draft) -> Draft {
        Draft {
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

/// What is wrong with a cron expression and its time zone, with both of them.
pub(super) fn wrong_cron(expr: &str, zone: &str) -> Vec<Problem> {
    let Err(problem) = Cron::parse(expr, zone) else { return Vec::new() };
    // The zone is looked at last.
    let zone = Cron::parse(ANY_MINUTE, zone).err().filter(|zone| zone.path != problem.path);
    [Some(problem), zone].into_iter().flatten().collect()
}

/// What a schedule is to start, as the body names it.
enum Asked {
    Template(String),
    Task(Fields),
    Flow(AskedFlow),
}

struct AskedFlow {
    flow: String,
    version: Option<u32>,
    params: Map<String, Value>,
    account: Option<String>,
}

/// What the schedule is to start: one of three ways to say it.
fn asked(body: &mut Fields, is_new: bool, problems: &mut Problems) -> Option<Asked> {
    let named: Vec<&str> =
        ["task_template_id", "task", "flow"].into_iter().filter(|name| body.has(name)).collect();
    if named.len() > 1 {
        let reason = format!("it says `{}`: give one of them", named.join("` and `"));
        problems.error(body.at(named[1]), reason);
    } else if named.is_empty() && is_new {
        let reason =
            "it does not say what to start: give `task`, `task_template_id`, or `flow` with `params`";
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
        (Some(id), None, None) => Some(Asked::Template(id)),
        (None, Some(task), None) => Some(Asked::Task(task)),
        (None, None, Some(flow)) => Some(Asked::Flow(AskedFlow { flow, version, params, account })),
        (None, None, None) | (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => None,
    }
}

/// A task like the one that is named.
async fn template(app: &App, text: &str, problems: &mut Problems) -> Answer<Option<Target>> {
    let row = match shape::job_id(text) {
        Some(job) => app.store().job(job).await?,
        None => None,
    };
    match row {
        Some(row) if row.job.spec.run.is_some() => {
            problems.error("$.task_template_id", "the task belongs to a run: name one of its own");
            Ok(None)
        }
        Some(row) => {
            let mut spec = Arc::unwrap_or_clone(row.job.spec);
            spec.run_at = None;
            Ok(Some(Target::Job(Box::new(spec))))
        }
        None => {
            problems.error("$.task_template_id", "there is no such task: create it first, or give `task`");
            Ok(None)
        }
    }
}

impl AskedFlow {
    async fn find(self, app: &App, problems: &mut Problems) -> Answer<Option<Target>> {
        match app.flow(&self.flow).await {
            Ok(flow) => Ok(Some(Target::Flow {
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
