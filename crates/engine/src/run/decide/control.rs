//! Steering a run: cancel, pause, resume, step, retry, rerun.

use serde_json::{Map, Value};

use super::Decider;
use super::outside::{bad, is_reserved};
use crate::event::{Ending, Event, Parent};
use crate::input::Refusal;
use crate::path::NodePath;
use crate::run::state::{Phase, Status};
use crate::weight::{Excess, weigh};

/// How long calls may take to confirm a cancel before the run ends without them.
pub const CANCEL_GRACE_MS: u64 = 30_000;

impl Decider<'_> {
    pub(super) fn cancel(&self, reason: Option<&str>, by: Option<&str>) -> Result<Vec<Event>, Refusal> {
        match self.run.status {
            // A second cancel is a no-op, and so is one of a canceled run.
            Status::Canceling | Status::Canceled => return Ok(Vec::new()),
            Status::Pending => return Err(Refusal::NotStarted),
            Status::Completed | Status::Failed => {
                return Err(Refusal::Ended { status: self.run.status.word() });
            }
            Status::Running | Status::Paused => {}
        }
        Ok(vec![Event::Canceling {
            until: self.given.now.after(CANCEL_GRACE_MS),
            reason: reason.map(str::to_owned),
            by: by.map(str::to_owned),
        }])
    }

    /// When no call is granted any more, a canceled run ends.
    pub(super) fn end_of_cancel(&self) -> Option<Vec<Event>> {
        (self.run.n_granted == 0).then(|| self.end_cancel())
    }

    pub(super) fn end_cancel(&self) -> Vec<Event> {
        let mut events = self.drop_inside(&NodePath::root());
        events.push(Event::Ended { status: Ending::Canceled, error: None, result: None });
        events
    }

    pub(super) fn pause(&self) -> Result<Vec<Event>, Refusal> {
        self.run.status.require_open()?;
        Ok(if self.run.status == Status::Paused { Vec::new() } else { vec![Event::Paused] })
    }

    pub(super) fn resume(&self) -> Result<Vec<Event>, Refusal> {
        self.run.status.require_open()?;
        Ok(if self.run.status == Status::Paused { vec![Event::Resumed] } else { Vec::new() })
    }

    pub(super) fn step(&self) -> Result<Vec<Event>, Refusal> {
        self.run.status.require_open()?;
        if self.run.agenda.iter().any(|todo| self.is_held(todo)) {
            return Ok(vec![Event::Stepped]);
        }
        // A paused run looks at its waits and at the time only when it is stepped.
        if self.run.status != Status::Paused {
            return Ok(Vec::new());
        }
        let look = |path| {
            self.given.meter.count(1);
            self.arrived(path)
        };
        let arrived = self.run.waits.paths().find_map(look);
        Ok(arrived.map_or_else(|| self.due(), |event| vec![event]))
    }

    pub(super) fn retry(&self) -> Result<Vec<Event>, Refusal> {
        match self.run.status {
            Status::Failed | Status::Canceled => {}
            Status::Completed => return Err(Refusal::NothingToRetry),
            Status::Pending => return Err(Refusal::NotStarted),
            Status::Running | Status::Paused | Status::Canceling => {
                return Err(Refusal::StillOpen { status: self.run.status.word() });
            }
        }
        self.again_by_itself()?;
        Ok(vec![Event::Retried { round: self.run.round + 1 }])
    }

    pub(super) fn rerun(
        &self,
        from: &NodePath,
        shared: Option<&Map<String, Value>>,
    ) -> Result<Vec<Event>, Refusal> {
        if !self.run.status.is_ended() {
            return Err(Refusal::StillOpen { status: self.run.status.word() });
        }
        self.again_by_itself()?;
        if let Some(key) = shared.into_iter().flat_map(Map::keys).find(|key| is_reserved(key)) {
            return Err(Refusal::Reserved(key.clone()));
        }
        let size: Result<usize, Excess> = shared.into_iter().flat_map(Map::values).map(weigh).sum();
        let size = size.map_err(|excess| bad("$.shared", excess.to_string()))?;
        if size > crate::limits::SHARED_BYTES {
            return Err(bad("$.shared", Excess::Large.to_string()));
        }
        match self.run.spot(self.plan, from) {
            Some(spot) if matches!(spot.phase(), Phase::Pending | Phase::Skipped) => {
                return Err(Refusal::NotRunYet(from.clone()));
            }
            Some(_) => {}
            None if self.is_turn(from) => {}
            None => return Err(Refusal::UnknownNode(from.clone())),
        }
        Ok(vec![Event::Rerun { round: self.run.round + 1, from: from.clone(), shared: shared.cloned() }])
    }

    /// Refuses another round of a child run that had a part of its parent's budget: the parent may have spent the
    /// rest of that part.
    fn again_by_itself(&self) -> Result<(), Refusal> {
        match self.run.paying_parent() {
            Some(Parent { run, node, .. }) => {
                Err(Refusal::AgainByParent { parent: *run, node: node.clone() })
            }
            None => Ok(()),
        }
    }

    /// Whether the path is that of a turn of a loop that has begun.
    fn is_turn(&self, path: &NodePath) -> bool {
        let (scope, state) = (&self.plan.root, &self.run.root);
        state.loop_of_turn(scope, path).is_some() && state.chain(scope, path).is_some()
    }
}
