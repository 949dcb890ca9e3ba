//! Flows: publishing, reading, comparing, checking.

use super::{Client, Repeat, with_query};
use crate::contract::{
    Definition, DiffQuery, ExpandResponse, FlowDetail, FlowDiff, FlowInfo, FlowRequest, FlowsQuery,
    InstantiateRequest, List, PublishResponse, Validation, Version, VersionRequest, VersionSummary,
};
use crate::error::ClientError;

impl Client {
    /// Makes a flow with its first version.
    pub async fn create_flow(&self, flow: &FlowRequest) -> Result<PublishResponse, ClientError> {
        self.post(self.native(&["flows"]), flow, Repeat::Never).await
    }

    /// Publishes the next version of a flow, named by its name or its id.
    pub async fn publish_version(
        &self,
        flow: &str,
        version: &VersionRequest,
    ) -> Result<PublishResponse, ClientError> {
        self.post(self.native(&["flows", flow, "versions"]), version, Repeat::Never).await
    }

    /// Makes a flow of a template, with values as the defaults of its variables.
    pub async fn instantiate(
        &self,
        template: &str,
        flow: &InstantiateRequest,
    ) -> Result<PublishResponse, ClientError> {
        self.post(self.native(&["flows", template, "instantiate"]), flow, Repeat::Never).await
    }

    /// Flows, newest first.
    pub async fn flows(&self, query: &FlowsQuery) -> Result<List<FlowInfo>, ClientError> {
        self.get(with_query(self.native(&["flows"]), query)).await
    }

    /// A flow with the version that is started when none is named.
    pub async fn flow(&self, flow: &str) -> Result<FlowDetail, ClientError> {
        self.get(self.native(&["flows", flow])).await
    }

    /// All versions of a flow, newest first.
    pub async fn versions(&self, flow: &str) -> Result<List<VersionSummary>, ClientError> {
        self.get(self.native(&["flows", flow, "versions"])).await
    }

    /// One version of a flow.
    pub async fn version(&self, flow: &str, number: u32) -> Result<Version, ClientError> {
        self.get(self.native(&["flows", flow, "versions", &number.to_string()])).await
    }

    /// How two versions of a flow differ.
    pub async fn diff(&self, flow: &str, query: &DiffQuery) -> Result<FlowDiff, ClientError> {
        self.get(with_query(self.native(&["flows", flow, "diff"]), query)).await
    }

    /// The problems of a definition.
    pub async fn validate(&self, definition: &Definition) -> Result<Validation, ClientError> {
        self.post(self.native(&["flows", "validate"]), definition, Repeat::Harmless).await
    }

    /// The tasks that the steps of a definition become.
    pub async fn expand(&self, definition: &Definition) -> Result<ExpandResponse, ClientError> {
        self.post(self.native(&["flows", "expand"]), definition, Repeat::Harmless).await
    }
}
