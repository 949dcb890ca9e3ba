//! New rounds of a run that are only told: what is read for them.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::plan::Called;
use windlass_engine::run::{Questions, Shelf};
use windlass_store::run::{RunRef, RunStatus};

use crate::{Runtime, RuntimeError};

/// Flows that are read for one plan, those that are called by others included.
const FLOWS_MAX: usize = 200;

impl Runtime {
    /// Answers what a preview asks, as it is now. What is not found stays unknown to it.
    pub async fn shelf(&self, questions: &Questions) -> Result<Shelf, RuntimeError> {
        if questions.is_empty() {
            return Ok(Shelf::default());
        }
        let mut costs = BTreeMap::new();
        for child in &questions.children {
            let row = self.store().run(RunRef::Id(*child)).await?;
            // What one cost that did not get to its end says nothing of what the next one will.
            if let Some(row) = row.filter(|row| row.standing.status == RunStatus::Completed) {
                costs.insert(*child, row.standing.cost.estimated);
            }
        }
        let (mut flows, mut asked) = (BTreeMap::new(), BTreeSet::new());
        let mut open: Vec<Called> = questions.flows.iter().cloned().collect();
        while let Some(called) = open.pop() {
            if asked.len() >= FLOWS_MAX || !asked.insert(called.clone()) {
                continue;
            }
            let Ok((_, version)) = self.called(&called).await? else { continue };
            let plan = match self.plan(version).await {
                Ok(plan) => plan,
                Err(RuntimeError::Definition(_)) => continue,
                Err(error) => return Err(error),
            };
            open.extend(plan.flows());
            flows.insert(called, plan);
        }
        Ok(Shelf { costs, flows, prices: self.price_list().await? })
    }
}
