//! Flows: publishing them, and the plans they become.

use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_engine::definition::Strictness;
use windlass_engine::id::{FlowId, VersionId};
use windlass_engine::plan::Plan;
use windlass_engine::problem::Problem;
use windlass_store::StoreError;
use windlass_store::flow::{Published, VersionStatus};

use crate::{Runtime, RuntimeError};

/// A flow to be made.
#[derive(Debug, Clone, Default)]
pub struct NewFlow {
    pub name: String,
    pub description: String,
    pub labels: BTreeMap<String, String>,
    pub is_template: bool,
    /// Makes another flow of a taken name instead of refusing it.
    pub allow_same_name: bool,
}

/// A version to be published.
#[derive(Debug, Clone)]
pub struct NewVersion {
    /// JSON or YAML.
    pub definition: String,
    pub strictness: Strictness,
    /// `None` = the next one.
    pub number: Option<u32>,
    pub status: VersionStatus,
    pub note: String,
}

/// What was published, and what might surprise its author.
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

impl Runtime {
    /// Makes a flow, with its first version if there is one.
    pub async fn publish_flow(
        &self,
        flow: NewFlow,
        version: Option<NewVersion>,
    ) -> Result<Publishing, PublishError> {
        let _ = (flow, version);
        unimplemented!()
    }

    /// Publishes another version of a flow.
    pub async fn publish_version(
        &self,
        flow: FlowId,
        version: NewVersion,
    ) -> Result<Publishing, PublishError> {
        let _ = (flow, version);
        unimplemented!()
    }

    /// The plan of a version, compiled once.
    pub async fn plan(&self, version: VersionId) -> Result<Arc<Plan>, RuntimeError> {
        let _ = version;
        unimplemented!()
    }
}
