//! Publication of flows, and the cache of compiled plans.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use uuid::Uuid;
use windlass_engine::definition::{Compiled, Strictness, compile};
use windlass_engine::id::{FlowId, VersionId};
use windlass_engine::plan::{Called, Plan};
use windlass_engine::problem::Problem;
use windlass_store::StoreError;
use windlass_store::flow::{
    FlowChoice, FlowDraft, FlowRef, Publication, Published, VersionDraft, VersionRef, VersionStatus,
};

use crate::RuntimeError;
use crate::part::RuntimePart;
use crate::runs::{Runs, VersionChoiceError};

/// Bytes from which on a definition is compiled aside.
const LONG: usize = 32 << 10;
/// Plans kept at once.
const PLANS_MAX: usize = 1_000;

/// A flow to be made.
#[derive(Debug, Clone, Default)]
pub struct FlowSpec {
    pub name: String,
    pub description: String,
    pub labels: BTreeMap<String, String>,
    pub is_template: bool,
    /// Makes another flow of a taken name instead of refusing it.
    pub allow_same_name: bool,
}

/// A version to be published.
#[derive(Debug, Clone)]
pub struct VersionSpec {
    /// JSON or YAML.
    pub definition: String,
    pub strictness: Strictness,
    /// `None` = the next one.
    pub number: Option<u32>,
    pub status: VersionStatus,
    pub note: String,
}

/// The published flow and version, and warnings for its author.
#[derive(Debug, Clone)]
pub struct Publishing {
    pub published: Published,
    pub warnings: Vec<Problem>,
}

/// Why nothing was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Everything that is wrong with the definition.
    #[error("the definition has {} problems", .0.len())]
    Problems(Vec<Problem>),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a call of a flow has no version to start.
#[derive(Debug)]
pub(super) enum CalledFlowError {
    /// There is no such flow, or no such version that may start; the text says which.
    Unknown(String),
    Runtime(RuntimeError),
}

impl From<StoreError> for CalledFlowError {
    fn from(error: StoreError) -> Self {
        CalledFlowError::Runtime(error.into())
    }
}

impl From<VersionChoiceError> for CalledFlowError {
    fn from(error: VersionChoiceError) -> Self {
        match error {
            VersionChoiceError::NonePublished { .. }
            | VersionChoiceError::Unknown { .. }
            | VersionChoiceError::NotPublished { .. } => CalledFlowError::Unknown(error.to_string()),
            VersionChoiceError::Runtime(error) => CalledFlowError::Runtime(error),
        }
    }
}

/// Plans that were compiled, the latest ones kept.
#[derive(Default)]
pub(crate) struct Plans {
    compiled: RwLock<HashMap<VersionId, Arc<Plan>>>,
}

impl Plans {
    fn find(&self, version: VersionId) -> Option<Arc<Plan>> {
        self.compiled.read().unwrap_or_else(PoisonError::into_inner).get(&version).cloned()
    }

    fn keep(&self, version: VersionId, plan: &Arc<Plan>) {
        let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        if compiled.len() >= PLANS_MAX {
            // Runs in memory hold their own; the others are compiled again.
            compiled.clear();
        }
        compiled.insert(version, plan.clone());
    }
}

impl Runs {
    /// Makes a flow, with its first version if there is one.
    pub async fn publish_flow(
        &self,
        flow: FlowSpec,
        version: Option<VersionSpec>,
    ) -> Result<Publishing, PublishError> {
        let FlowSpec { name, description, labels, is_template, allow_same_name } = flow;
        let id = FlowId::new(Uuid::now_v7());
        let draft = FlowDraft { id, name, description, labels, is_template, allow_same_name };
        self.publish(FlowChoice::Create(draft), version).await
    }

    /// Publishes another version of a flow.
    pub async fn publish_version(
        &self,
        flow: FlowId,
        version: VersionSpec,
    ) -> Result<Publishing, PublishError> {
        self.publish(FlowChoice::Existing(flow), Some(version)).await
    }

    async fn publish(
        &self,
        flow: FlowChoice,
        version: Option<VersionSpec>,
    ) -> Result<Publishing, PublishError> {
        let (mut draft, mut warnings, mut plan) = (None, Vec::new(), None);
        if let Some(version) = version {
            let (compiled, definition) = compiled(version.definition, version.strictness).await;
            let (Some(made), Some(form)) = (compiled.plan, compiled.form) else {
                return Err(PublishError::Problems(compiled.problems));
            };
            (plan, warnings) = (Some(made), compiled.problems);
            draft = Some(VersionDraft {
                id: VersionId::new(Uuid::now_v7()),
                number: version.number,
                definition,
                form,
                lenient: version.strictness == Strictness::Lenient,
                status: version.status,
                note: version.note,
            });
        }
        let publication = Publication { flow, version: draft, now: self.clock().now() };
        let published = self.store().publish(self.project(), publication).await?;
        if let Some((plan, (version, _))) = plan.as_ref().zip(published.version) {
            self.state().plans.keep(version, plan);
        }
        Ok(Publishing { published, warnings })
    }

    /// The version that a call of a flow takes now, chosen as for any start, or why there is none.
    pub(super) async fn called(&self, called: &Called) -> Result<(FlowId, VersionId), CalledFlowError> {
        let Called { flow: name, version } = called;
        let flow = match name.parse() {
            Ok(id) => FlowRef::Id(id),
            Err(_) => FlowRef::Name(name.clone()),
        };
        let Some(flow) = self.store().flow(self.project(), flow).await? else {
            return Err(CalledFlowError::Unknown(format!("there is no flow `{name}`: publish it first")));
        };
        let found = self.choose_version(&flow, *version).await?;
        Ok((flow.id, found.id))
    }

    /// The plan of a version, compiled once.
    pub async fn plan(&self, version: VersionId) -> Result<Arc<Plan>, RuntimeError> {
        if let Some(plan) = self.state().plans.find(version) {
            return Ok(plan);
        }
        let Some(row) = self.store().version(self.project(), VersionRef::Id(version)).await? else {
            return Err(StoreError::Refused(windlass_store::Refusal::UnknownVersion(version)).into());
        };
        // A published definition is read leniently: a later release may know more problems.
        let (compiled, _) = compiled(row.definition, Strictness::Lenient).await;
        let plan = compiled.plan.ok_or(RuntimeError::Definition(compiled.problems))?;
        self.state().plans.keep(version, &plan);
        Ok(plan)
    }
}

/// Compiles a definition, and gives its text back; a long one on a blocking thread.
async fn compiled(definition: String, strictness: Strictness) -> (Compiled, String) {
    let is_short = definition.len() < LONG;
    let compile = move || (compile(&definition, strictness), definition);
    if is_short {
        return compile();
    }
    let aside = tokio::task::spawn_blocking(compile);
    aside.await.expect("compiling never panics, and the server does not stop while it is asked")
}
