//! Validation of schedules; each problem names the field as clients spell it.

use uuid::Uuid;
use windlass_engine::event::Start;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::input::{Given, Input, Refusal};
use windlass_engine::job::{JobSpec, SPAN_MS_MAX};
use windlass_engine::limits::NAME_BYTES;
use windlass_engine::problem::{Problem, Problems};
use windlass_engine::run::Run;
use windlass_engine::schedule::Cron;
use windlass_store::flow::FlowRef;

use super::{FiringTarget, ScheduleDraft, ScheduleError};
use crate::RuntimeError;
use crate::part::RuntimePart;
use crate::runs::VersionChoiceError;
use crate::schedules::Schedules;

/// A draft that can be kept.
pub(super) struct CheckedDraft {
    pub(super) cron: Cron,
    /// Its own name, or that of its target.
    pub(super) name: String,
}

impl Schedules {
    /// The draft, or everything that is wrong with it.
    pub(super) async fn check_draft(&self, draft: &ScheduleDraft) -> Result<CheckedDraft, ScheduleError> {
        let mut problems = Problems::default();
        check_name(&mut problems, &draft.name);
        if draft.window_ms > SPAN_MS_MAX {
            let reason = format!("{} is too long, {SPAN_MS_MAX} (one year) is allowed", draft.window_ms);
            problems.error("$.window_ms", reason);
        }
        let cron = check_cron(&mut problems, draft);
        let name = match &draft.target {
            FiringTarget::Job(spec) => {
                check_job(&mut problems, spec);
                self.check_payer(&mut problems, "$.task.account", spec.account.as_deref()).await?;
                spec.name.clone()
            }
            FiringTarget::Flow { flow, version, params, account } => {
                self.check_payer(&mut problems, "$.account", account.as_deref()).await?;
                let start =
                    Start { params: params.clone().into(), account: account.clone(), ..Start::default() };
                self.check_flow(&mut problems, *flow, *version, start).await?
            }
        };
        match cron.filter(|_| !problems.has_errors()) {
            Some(cron) => {
                let name = if draft.name.is_empty() { name } else { draft.name.clone() };
                Ok(CheckedDraft { cron, name })
            }
            None => Err(ScheduleError::Problems(problems.into_list())),
        }
    }

    /// Whether the account exists: without it, every start would be refused.
    async fn check_payer(
        &self,
        problems: &mut Problems,
        path: &str,
        account: Option<&str>,
    ) -> Result<(), RuntimeError> {
        // One that is no name is a problem anyway.
        if let Some(account) = account.filter(|account| !account.trim().is_empty())
            && self.store().account(self.project(), account).await?.is_none()
        {
            problems.error(path, format!("there is no account `{account}`; open it first, or leave it out"));
        }
        Ok(())
    }

    /// Whether the flow could be started now; answers with its name.
    async fn check_flow(
        &self,
        problems: &mut Problems,
        flow: FlowId,
        number: Option<u32>,
        mut start: Start,
    ) -> Result<String, RuntimeError> {
        let Some(row) = self.store().flow(self.project(), FlowRef::Id(flow)).await? else {
            problems.error("$.flow", format!("there is no flow {flow}"));
            return Ok(String::new());
        };
        match self.runs().choose_version(&row, number).await {
            Ok(version) => {
                let plan = self.runs().plan(version.id).await?;
                start.account = self.money().payer(start.account, version.id).await?;
                if let Some(missing) = self.money().missing_payer(start.account.as_deref()) {
                    problems.error_hint(missing.path, missing.reason, missing.hint);
                }
                let (mut run, input) = (Run::new(RunId::new(Uuid::nil())), Input::Start(Box::new(start)));
                // A schedule is refused now if its starts would be refused later.
                let refused = run.submit(&plan, &input, &Given::at(self.clock().now())).err();
                if let Some(Refusal::Bad(found)) = refused {
                    found.into_iter().for_each(|one| problems.error_hint(one.path, one.reason, one.hint));
                } else if let Some(refusal) = refused {
                    problems.error("$.flow", refusal.to_string());
                }
            }
            Err(VersionChoiceError::Runtime(error)) => return Err(error),
            Err(error) => problems.error(version_place(&error), error.to_string()),
        }
        Ok(row.name)
    }
}

/// The field of a schedule that a choice of a version failed for.
pub(super) fn version_place(error: &VersionChoiceError) -> &'static str {
    match error {
        VersionChoiceError::NonePublished { .. } => "$.flow",
        VersionChoiceError::Unknown { .. }
        | VersionChoiceError::NotPublished { .. }
        | VersionChoiceError::Runtime(_) => "$.version",
    }
}

fn check_name(problems: &mut Problems, name: &str) {
    if name.len() > NAME_BYTES {
        problems.error("$.name", format!("it has {} bytes, at most {NAME_BYTES} are allowed", name.len()));
    }
    if name.contains(char::is_control) {
        problems.error("$.name", "control characters are not allowed");
    }
}

fn check_cron(problems: &mut Problems, draft: &ScheduleDraft) -> Option<Cron> {
    let mut add = |problem: Problem| problems.error_hint(problem.path, problem.reason, problem.hint);
    match Cron::parse(&draft.cron_expr, &draft.timezone) {
        Ok(cron) => Some(cron.with_dst(draft.dst)),
        Err(problem) => {
            // The zone is checked last, so that a problem with the expression is reported together with it.
            let is_zone = problem.path == "$.timezone";
            add(problem);
            if let Err(zone) = Cron::parse("* * * * *", &draft.timezone)
                && !is_zone
            {
                add(zone);
            }
            None
        }
    }
}

fn check_job(problems: &mut Problems, spec: &JobSpec) {
    for Problem { path, reason, hint, .. } in spec.problems() {
        problems.error_hint(path.replacen("$.", "$.task.", 1), reason, hint);
    }
    if spec.run_at.is_some() {
        problems.error("$.task.run_at", "the schedule says when: leave it out");
    }
}
