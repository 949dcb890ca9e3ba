//! Effects of commits: calls, cancels, and their answers.

use windlass_engine::counter::{Epoch, Fence};
use windlass_engine::effect::{CallSpec, Effect};
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Exec;
use windlass_engine::recovery;
use windlass_engine::run::RunStep;

use super::SimWorld;
use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::event::{SimEvent, Unordered};
use crate::fault::SimFault;
use crate::server::{SimCachedRun, SimExtraWrites, SimReply};
use crate::worker;

impl SimWorld {
    /// Carries out the effects of a commit.
    pub(crate) fn carry_out(
        &mut self,
        server: usize,
        cached: &SimCachedRun,
        step: &RunStep,
    ) -> Result<(), Violation> {
        for effect in &step.effects {
            match effect {
                Effect::Call(spec) => match spec.exec {
                    // The commit contains these as rows.
                    Exec::Queue | Exec::Flow { .. } => {}
                    Exec::Http | Exec::Func { .. } | Exec::Script(_) => self.call(server, spec),
                },
                Effect::Cancel { node, fence, exec } => {
                    self.cancel(server, cached.run.id, node, *fence, exec)
                }
                // The commit ended the calls of unclaimed jobs; any other call is on its way to its worker.
                Effect::Withdraw { .. } => {}
                // The commit contains these as rows.
                Effect::Move { .. } | Effect::Tell { .. } | Effect::Bill { .. } | Effect::Raise { .. } => {}
            }
        }
        Ok(())
    }

    fn call(&mut self, server: usize, spec: &CallSpec) {
        let may = recovery::may_call(self.servers[server].last_beat, self.now);
        let remote = spec.exec == Exec::Http;
        if !may || (remote && self.faults.strikes(SimFault::LostCall, 4, &mut self.rng)) {
            return;
        }
        let ms = self.rng.between(0, 20);
        let by = (server, self.servers[server].epoch);
        self.after(ms, SimEvent::Arrive { by, order: Unordered(Box::new(spec.clone())) });
    }

    fn cancel(&mut self, server: usize, run: RunId, node: &NodePath, fence: Fence, exec: &Exec) {
        match exec {
            Exec::Queue | Exec::Flow { .. } => {}
            Exec::Http | Exec::Func { .. } | Exec::Script(_) => {
                if self.rng.percent(50) {
                    let ms = self.rng.between(1, 2_000);
                    let by = Some((server, self.servers[server].epoch));
                    let outcome = Unordered(Box::new(CallOutcome::Canceled));
                    let (node, attempt) = (node.clone(), 0);
                    self.after(ms, SimEvent::Return { run, node, fence, attempt, by, outcome });
                }
            }
        }
    }

    /// A call reaches a worker or a function.
    pub(crate) fn arrive(&mut self, by: (usize, Epoch), spec: CallSpec) -> Result<(), Violation> {
        let Some(plan) = self.plan_of(spec.run) else { return Ok(()) };
        self.checker.called(&plan, spec.run, &spec.node, spec.fence)?;
        if self.servers[by.0].epoch != by.1 || !self.servers[by.0].is_up {
            return Ok(());
        }
        let suspended = spec.memo.is_some();
        let behavior = worker::perform(&spec.node, spec.fence, suspended, &mut self.faults, &mut self.rng);
        let Some(outcome) = behavior.outcome else { return Ok(()) };
        let back = |by| SimEvent::Return {
            run: spec.run,
            node: spec.node.clone(),
            fence: spec.fence,
            attempt: spec.attempt,
            by,
            outcome: Unordered(Box::new(outcome.clone())),
        };
        self.after(behavior.ms, back(Some(by)));
        if let Some(later) = behavior.again_after_ms {
            self.after(behavior.ms + later, back(None));
        }
        Ok(())
    }

    /// An answer arrives at a server.
    pub(crate) fn returned(
        &mut self,
        run: RunId,
        node: &NodePath,
        fence: Fence,
        attempt: u32,
        by: Option<(usize, Epoch)>,
        outcome: CallOutcome,
    ) -> Result<(), Violation> {
        let server = match by {
            // The connection ended with its server.
            Some((at, epoch)) if !self.servers[at].is_up || self.servers[at].epoch != epoch => return Ok(()),
            Some((at, _)) => at,
            None => match self.any_server() {
                Some(at) => at,
                None => return Ok(()),
            },
        };
        let (node, fence) = self.apply_answer_bug(run, node, fence, attempt);
        let input = Input::CallEnded { node: node.clone(), fence, outcome: outcome.clone(), worker: None };
        match self.submit(server, run, &input, &SimExtraWrites::default())? {
            SimReply::Nothing => {
                // The sender repeats the answer until it gets a reply.
                let outcome = Unordered(Box::new(outcome));
                self.after(500, SimEvent::Return { run, node, fence, attempt, by, outcome });
            }
            SimReply::Taken | SimReply::Refused(_) | SimReply::Existing(_) | SimReply::Outdated => {}
        }
        Ok(())
    }

    /// Applies planted bugs that take an answer for another one.
    fn apply_answer_bug(
        &mut self,
        run: RunId,
        node: &NodePath,
        fence: Fence,
        attempt: u32,
    ) -> (NodePath, Fence) {
        let mixes_up = matches!(
            self.bug,
            Some(PlantedBug::FenceIgnored | PlantedBug::AttemptAsFence | PlantedBug::BranchMixUp)
        );
        let Some(plan) = self.plan_of(run).filter(|_| mixes_up) else { return (node.clone(), fence) };
        let entries = self.store.entries(run);
        let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
        let state = windlass_engine::run::Run::replay(run, &plan, events);
        let calls = state.open_calls(&plan);
        let fence_of =
            |node: &NodePath| calls.iter().find(|(path, ..)| path == node).map(|(_, fence, _)| *fence);
        match self.bug {
            Some(PlantedBug::FenceIgnored) => (node.clone(), fence_of(node).unwrap_or(fence)),
            Some(PlantedBug::AttemptAsFence) => {
                let same = state.node_attempt(&plan, node) == Some(attempt);
                (node.clone(), fence_of(node).filter(|_| same).unwrap_or(fence))
            }
            Some(PlantedBug::BranchMixUp) => {
                let next =
                    node.split_last().and_then(|(fan, at)| Some(fan.at(at.parse::<usize>().ok()? + 1)));
                match next.and_then(|next| Some((fence_of(&next)?, next))) {
                    Some((fence, next)) => (next, fence),
                    None => (node.clone(), fence),
                }
            }
            _ => (node.clone(), fence),
        }
    }
}
