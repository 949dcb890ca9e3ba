//! What servers do in the world, and how its answers come back.

use windlass_engine::effect::{Effect, Order};
use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Outcome};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Exec;
use windlass_engine::recovery;
use windlass_engine::run::Step;

use super::{Boxed, Happening, World};
use crate::bug::Bug;
use crate::checker::Violation;
use crate::fault::Fault;
use crate::server::{Along, Hot, Said};
use crate::worker;

impl World {
    /// Carries out what a commit asks for.
    pub(crate) fn carry_out(&mut self, server: usize, hot: &Hot, step: &Step) -> Result<(), Violation> {
        for effect in &step.effects {
            match effect {
                Effect::Call(order) => match order.exec {
                    // These were rows of the commit.
                    Exec::Queue | Exec::Flow { .. } => {}
                    Exec::Http | Exec::Func { .. } | Exec::Script(_) => self.call(server, order),
                },
                Effect::Cancel { node, fence, exec } => self.cancel(server, hot.run.id, node, *fence, exec),
                // These were rows of the commit.
                Effect::Move { .. } | Effect::Tell { .. } | Effect::Bill { .. } | Effect::Raise { .. } => {}
            }
        }
        Ok(())
    }

    fn call(&mut self, server: usize, order: &Order) {
        let may = recovery::may_call(self.servers[server].last_beat, self.now);
        let remote = order.exec == Exec::Http;
        if !may || (remote && self.faults.strikes(Fault::LostCall, 4, &mut self.rng)) {
            return;
        }
        let ms = self.rng.between(0, 20);
        let by = (server, self.servers[server].life);
        self.after(ms, Happening::Arrive { by, order: Boxed(Box::new(order.clone())) });
    }

    fn cancel(&mut self, server: usize, run: RunId, node: &NodePath, fence: u64, exec: &Exec) {
        match exec {
            Exec::Queue | Exec::Flow { .. } => {}
            Exec::Http | Exec::Func { .. } | Exec::Script(_) => {
                if self.rng.percent(50) {
                    let ms = self.rng.between(1, 2_000);
                    let by = Some((server, self.servers[server].life));
                    let outcome = Boxed(Box::new(Outcome::Canceled));
                    let (node, attempt) = (node.clone(), 0);
                    self.after(ms, Happening::Return { run, node, fence, attempt, by, outcome });
                }
            }
        }
    }

    /// A call reaches a worker or a function.
    pub(super) fn arrive(&mut self, by: (usize, u64), order: Order) -> Result<(), Violation> {
        let Some(plan) = self.plan_of(order.run) else { return Ok(()) };
        self.checker.called(&plan, order.run, &order.node, order.fence)?;
        if self.servers[by.0].life != by.1 || !self.servers[by.0].is_up {
            return Ok(());
        }
        let suspended = order.memo.is_some();
        let deed = worker::perform(&order.node, order.fence, suspended, &mut self.faults, &mut self.rng);
        let Some(outcome) = deed.outcome else { return Ok(()) };
        let back = |by| Happening::Return {
            run: order.run,
            node: order.node.clone(),
            fence: order.fence,
            attempt: order.attempt,
            by,
            outcome: Boxed(Box::new(outcome.clone())),
        };
        self.after(deed.ms, back(Some(by)));
        if let Some(later) = deed.again_after_ms {
            self.after(deed.ms + later, back(None));
        }
        Ok(())
    }

    /// An answer comes back.
    pub(super) fn returned(
        &mut self,
        run: RunId,
        node: &NodePath,
        fence: u64,
        attempt: u32,
        by: Option<(usize, u64)>,
        outcome: Outcome,
    ) -> Result<(), Violation> {
        let server = match by {
            // The connection died with its server.
            Some((at, life)) if !self.servers[at].is_up || self.servers[at].life != life => return Ok(()),
            Some((at, _)) => at,
            None => match self.any_server() {
                Some(at) => at,
                None => return Ok(()),
            },
        };
        let (node, fence) = self.misread(run, node, fence, attempt);
        let input = Input::CallEnded { node: node.clone(), fence, outcome: outcome.clone(), worker: None };
        match self.submit(server, run, &input, &Along::default())? {
            Said::Nothing => {
                // Whoever answers tries again until it hears something.
                let outcome = Boxed(Box::new(outcome));
                self.after(500, Happening::Return { run, node, fence, attempt, by, outcome });
            }
            Said::Taken | Said::Refused(_) | Said::Existing(_) | Said::Outdated => {}
        }
        Ok(())
    }

    /// The planted bugs that take an answer for another one.
    fn misread(&mut self, run: RunId, node: &NodePath, fence: u64, attempt: u32) -> (NodePath, u64) {
        let mixes_up = matches!(self.bug, Some(Bug::FenceIgnored | Bug::AttemptAsFence | Bug::BranchMixUp));
        let Some(plan) = self.plan_of(run).filter(|_| mixes_up) else { return (node.clone(), fence) };
        let entries = self.disk.entries(run);
        let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
        let state = windlass_engine::run::Run::replay(run, &plan, events);
        let calls = state.open_calls(&plan);
        let fence_of =
            |node: &NodePath| calls.iter().find(|(path, ..)| path == node).map(|(_, fence, _)| *fence);
        match self.bug {
            Some(Bug::FenceIgnored) => (node.clone(), fence_of(node).unwrap_or(fence)),
            Some(Bug::AttemptAsFence) => {
                let same = state.node_attempt(&plan, node) == Some(attempt);
                (node.clone(), fence_of(node).filter(|_| same).unwrap_or(fence))
            }
            Some(Bug::BranchMixUp) => {
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
