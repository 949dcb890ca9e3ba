//! Estimate inputs of dry runs, read from the store.

use std::collections::BTreeMap;

use windlass_engine::id::RunId;
use windlass_engine::run::EstimateInputs;
use windlass_store::run::{RunRef, RunStatus};

use crate::RuntimeError;
use crate::part::RuntimePart;
use crate::runs::Runs;

impl Runs {
    /// Reads the costs of these child runs. Only completed runs count: the cost of a run that failed early says nothing
    /// about the next one.
    pub async fn estimate_inputs(&self, children: &[RunId]) -> Result<EstimateInputs, RuntimeError> {
        let mut child_costs = BTreeMap::new();
        for child in children {
            let row = self.store().run(self.project(), RunRef::Id(*child)).await?;
            if let Some(row) = row.filter(|row| row.projection.status == RunStatus::Completed) {
                child_costs.insert(*child, row.projection.cost.estimated);
            }
        }
        Ok(EstimateInputs { child_costs })
    }
}
