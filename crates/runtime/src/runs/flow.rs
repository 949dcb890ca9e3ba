//! Publication of flows, and the cache of compiled plans.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value;
use uuid::Uuid;
use windlass_engine::definition::{Compiled, Strictness, compile, plan_bytes};
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
/// Plans kept at once, and the bytes that they take, as an upper estimate.
const PLANS_MAX: usize = 1_000;
const PLAN_BYTES_MAX: usize = 128 << 20;

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
    compiled: RwLock<CompiledPlans>,
}

#[derive(Default)]
struct CompiledPlans {
    plans: HashMap<VersionId, Arc<Plan>>,
    /// The bytes of all plans, as an upper estimate.
    n_bytes: usize,
}

impl Plans {
    fn find(&self, version: VersionId) -> Option<Arc<Plan>> {
        self.compiled.read().unwrap_or_else(PoisonError::into_inner).plans.get(&version).cloned()
    }

    /// Keeps the plan of a definition with so many bytes of text.
    fn keep(&self, version: VersionId, plan: &Arc<Plan>, text_bytes: usize) {
        let n_bytes = plan_bytes(text_bytes);
        let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        if compiled.plans.len() >= PLANS_MAX || compiled.n_bytes.saturating_add(n_bytes) > PLAN_BYTES_MAX {
            // Runs in memory hold their own; the others are compiled again.
            *compiled = CompiledPlans::default();
        }
        if compiled.plans.insert(version, plan.clone()).is_none() {
            compiled.n_bytes = compiled.n_bytes.saturating_add(n_bytes);
        }
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
        let (mut draft, mut warnings, mut plan, mut text_bytes) = (None, Vec::new(), None, 0);
        if let Some(version) = version {
            let (compiled, definition) = compiled(version.definition, version.strictness).await;
            let (Some(made), Some(form)) = (compiled.plan, compiled.form) else {
                return Err(PublishError::Problems(compiled.problems));
            };
            (plan, warnings, text_bytes) = (Some(made), compiled.problems, definition.len());
            draft = Some(VersionDraft {
                id: VersionId::new(Uuid::now_v7()),
                number: version.number,
                definition,
                plan: plan.clone(),
                form,
                lenient: version.strictness == Strictness::Lenient,
                status: version.status,
                note: version.note,
            });
        }
        let publication = Publication { flow, version: draft, now: self.clock().now() };
        let published = self.store().publish(self.project(), publication).await?;
        if let Some((plan, (version, _))) = plan.as_ref().zip(published.version) {
            self.state().plans.keep(version, plan, text_bytes);
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
        let (compiled, definition) = compiled(row.definition, Strictness::Lenient).await;
        let plan = compiled.plan.ok_or(RuntimeError::Definition(compiled.problems))?;
        self.state().plans.keep(version, &plan, definition.len());
        Ok(plan)
    }
}

/// Compiles a definition, without its values, and gives its text back; a long one on a blocking thread.
async fn compiled(definition: String, strictness: Strictness) -> (Compiled, String) {
    let is_short = definition.len() < LONG;
    let compile = move || {
        // The plan has all that is needed of the values; this thread built them, and frees them at once.
        let compiled = Compiled { definition: Value::Null, ..compile(&definition, strictness) };
        (compiled, definition)
    };
    if is_short {
        return compile();
    }
    let aside = tokio::task::spawn_blocking(compile);
    aside.await.expect("compiling never panics, and the server does not stop while it is asked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_dense_definitions_do_not_fill_the_memory() {
        const FLOW: &str = r#"{"start": "a", "nodes": {"a": {"service": "s"}}}"#;
        let plan = compile(FLOW, Strictness::Strict).plan.unwrap();
        let plans = Plans::default();
        let version = |n: u128| VersionId::new(Uuid::from_u128(n));
        let kept = |versions: std::ops::Range<u128>, text_bytes: usize| {
            versions.for_each(|n| plans.keep(version(n), &plan, text_bytes));
            plans.compiled.read().unwrap().plans.len()
        };
        assert_eq!(kept(0..100, FLOW.len()), 100);
        assert!(kept(100..200, 4 << 20) <= 8);
        assert!(plans.find(version(199)).is_some() && plans.find(version(0)).is_none());
    }
}
