//! Plans of runs, and the one published version that all runs belong to.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::event::Start;
use windlass_engine::id::{FlowId, RunId, VersionId};
use windlass_engine::input::Input;
use windlass_engine::plan::{Form, Plan};
use windlass_engine::project::Project;
use windlass_store::flow::{FlowChoice, FlowDraft, Publication, VersionDraft, VersionStatus};
use windlass_store::outbox::Child;
use windlass_store::run::{Origin, Request};

use super::SimWorld;

/// The time limit of push, local and script attempts in simulated runs.
pub(crate) const CALL_TIMEOUT_MS: u64 = 30_000;

impl SimWorld {
    pub(crate) fn plan_of(&self, run: RunId) -> Option<Arc<Plan>> {
        self.plans.get(&run).cloned()
    }

    /// Sets the plan of a run that is about to be created.
    pub(crate) fn set_plan(&mut self, run: RunId, plan: Arc<Plan>) {
        self.plans.insert(run, plan);
    }

    /// Publishes one version for all runs; each run executes its own generated plan.
    pub(super) fn publish(&mut self) {
        let flow = FlowDraft {
            id: FlowId::new(Uuid::from_u128(1)),
            name: "simulated".to_owned(),
            description: String::new(),
            labels: BTreeMap::new(),
            is_template: false,
            allow_same_name: false,
        };
        let version = VersionDraft {
            id: VersionId::new(Uuid::from_u128(1)),
            number: None,
            definition: String::new(),
            plan: None,
            form: Form::Graph,
            lenient: false,
            status: VersionStatus::Published,
            note: String::new(),
        };
        let publication =
            Publication { flow: FlowChoice::Create(flow), version: Some(version), now: self.now };
        self.store.memory.publish_now(&Project::DEFAULT, publication).expect("an empty store takes a flow");
    }

    pub(crate) fn origin(&self, request: Option<String>, start: &Start) -> Origin {
        Origin {
            flow: FlowId::new(Uuid::from_u128(1)),
            version: VersionId::new(Uuid::from_u128(1)),
            request: request.map(|id| Request { id, digest: "same".to_owned() }),
            labels: BTreeMap::new(),
            account: start.account.clone(),
            parent: start.parent.clone(),
            schedule: None,
            created_at: self.now,
        }
    }

    pub(super) fn child_start(&self, child: &Child) -> (Input, Origin) {
        let start = Start { call_timeout_ms: CALL_TIMEOUT_MS, ..child.start() };
        let origin = self.origin(None, &start);
        (Input::Start(Box::new(start)), origin)
    }
}
