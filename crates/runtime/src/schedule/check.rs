//! What is wrong with a schedule that somebody wants, each with the field as clients spell it.

use uuid::Uuid;
use windlass_engine::event::Start;
use windlass_engine::id::{FlowId, RunId};
use windlass_engine::input::{Given, Input, Refusal};
use windlass_engine::job::{JobSpec, SPAN_MS_MAX};
use windlass_engine::limits::NAME_BYTES;
use windlass_engine::problem::{Problem, Problems};
use windlass_engine::run::Run;
use windlass_engine::schedule::Cron;
use windlass_store::flow::{FlowRef, VersionRef, VersionRow, VersionStatus};

use super::{Draft, Target};
use crate::{Runtime, RuntimeError};

/// A draft that can be kept.
pub(super) struct Checked {
    pub(super) cron: Cron,
    /// Its own, or that of what it starts.
    pub(super) name: String,
}

/// Why a version cannot be started.
pub(super) struct NoVersion {
    /// The field that names it.
    pub(super) path: &'static str,
    pub(super) reason: String,
}

impl Runtime {
    /// The draft, or everything that is wrong with it.
    pub(super) async fn check_draft(
        &self,
        draft: &Draft,
    ) -> Result<Result<Checked, Vec<Problem>>, RuntimeError> {
        let mut problems = Problems::default();
        check_name(&mut problems, &draft.name);
        if draft.window_ms > SPAN_MS_MAX {
            let reason = format!("{} is too long, {SPAN_MS_MAX} (one year) is allowed", draft.window_ms);
            problems.error("$.window_ms", reason);
        }
        let cron = check_cron(&mut problems, draft);
        let name = match &draft.target {
            Target::Job(spec) => {
                check_job(&mut problems, spec);
                self.check_payer(&mut problems, "$.task.account", spec.account.as_deref()).await?;
                spec.name.clone()
            }
            Target::Flow { flow, version, params, account } => {
                self.check_payer(&mut problems, "$.account", account.as_deref()).await?;
                let start = Start { params: params.clone(), account: account.clone(), ..Start::default() };
                self.check_flow(&mut problems, *flow, *version, start).await?
            }
        };
        Ok(match cron.filter(|_| !problems.has_errors()) {
            Some(cron) => {
                let name = if draft.name.is_empty() { name } else { draft.name.clone() };
                Ok(Checked { cron, name })
            }
            None => Err(problems.into_list()),
        })
    }

    /// Whether whoever is to pay is there: what is started would be refused otherwise, every time.
    async fn check_payer(
        &self,
        problems: &mut Problems,
        path: &str,
        account: Option<&str>,
    ) -> Result<(), RuntimeError> {
        // One that is no name is a problem anyway.
        if let Some(account) = account.filter(|account| !account.trim().is_empty())
            && self.store().account(account).await?.is_none()
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
        start: Start,
    ) -> Result<String, RuntimeError> {
        let Some(row) = self.store().flow(FlowRef::Id(flow)).await? else {
            problems.error("$.flow", format!("there is no flow {flow}"));
            return Ok(String::new());
        };
        match self.version_to_start(flow, number).await? {
            Ok(version) => {
                let plan = self.plan(version.id).await?;
                let (mut run, input) = (Run::new(RunId::new(Uuid::nil())), Input::Start(Box::new(start)));
                // What it would be refused for later, it is refused for now.
                let refused = run.submit(&plan, &input, &Given::at(self.clock().now())).err();
                if let Some(Refusal::Bad(found)) = refused {
                    found.into_iter().for_each(|one| problems.error_hint(one.path, one.reason, one.hint));
                } else if let Some(refusal) = refused {
                    problems.error("$.flow", refusal.to_string());
                }
            }
            Err(NoVersion { path, reason }) => problems.error(path, reason),
        }
        Ok(row.name)
    }

    /// The version that is started: the one that is named, or the highest that is published.
    pub(super) async fn version_to_start(
        &self,
        flow: FlowId,
        number: Option<u32>,
    ) -> Result<Result<VersionRow, NoVersion>, RuntimeError> {
        let asked = number.map_or(VersionRef::Latest { flow }, |number| VersionRef::Number { flow, number });
        let found = self.store().version(asked).await?;
        let no = |path, reason| Ok(Err(NoVersion { path, reason }));
        let Some(version) = found else {
            return match number {
                Some(number) => no("$.version", format!("{flow} has no version {number}")),
                None => no("$.flow", format!("{flow} has no published version: publish one first")),
            };
        };
        let word = match version.status {
            VersionStatus::Published => return Ok(Ok(version)),
            VersionStatus::Draft => "a draft",
            VersionStatus::Archived => "archived",
        };
        no("$.version", format!("version {} of {flow} is {word}: name a published one", version.number))
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

fn check_cron(problems: &mut Problems, draft: &Draft) -> Option<Cron> {
    let mut add = |problem: Problem| problems.error_hint(problem.path, problem.reason, problem.hint);
    match Cron::parse(&draft.cron_expr, &draft.timezone) {
        Ok(cron) => Some(cron.with_dst(draft.dst)),
        Err(problem) => {
            // The zone is looked at last: whoever hears of the expression hears of both.
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
