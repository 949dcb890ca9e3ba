//! Flows: publishing, reading, comparing, checking.

use super::{Client, Repeat, with_query};
use crate::contract::{
    Definition, DiffQuery, ExampleInfo, ExampleNames, ExamplesLoaded, ExpandResponse, FlowDetail, FlowDiff,
    FlowGraph, FlowInfo, FlowRequest, FlowStatsInfo, FlowsQuery, GraphQuery, GraphSvgQuery,
    InstantiateRequest, List, PublishResponse, Validation, Version, VersionRequest, VersionSummary,
};
use crate::error::ClientError;

/// Flows of one server, from [`Client::flows`].
#[derive(Debug, Clone, Copy)]
pub struct FlowsApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Publishes and reads flows.
    pub fn flows(&self) -> FlowsApi<'_> {
        FlowsApi { client: self }
    }
}

impl FlowsApi<'_> {
    /// Makes a flow with its first version.
    pub async fn create(self, flow: &FlowRequest) -> Result<PublishResponse, ClientError> {
        self.client.post(self.client.native(&["flows"]), flow, Repeat::Never).await
    }

    /// Publishes the next version of a flow, named by its name or its id.
    pub async fn publish(self, flow: &str, version: &VersionRequest) -> Result<PublishResponse, ClientError> {
        self.client.post(self.client.native(&["flows", flow, "versions"]), version, Repeat::Never).await
    }

    /// The example flows of the server's program.
    pub async fn examples(self) -> Result<List<ExampleInfo>, ClientError> {
        self.client.get(self.client.native(&["examples"])).await
    }

    /// Publishes example flows; flows that are there already are kept.
    pub async fn load_examples(self, names: &ExampleNames) -> Result<ExamplesLoaded, ClientError> {
        self.client.post(self.client.native(&["examples"]), names, Repeat::Harmless).await
    }

    /// Makes a flow of a template, with values as the defaults of its variables.
    pub async fn instantiate(
        self,
        template: &str,
        flow: &InstantiateRequest,
    ) -> Result<PublishResponse, ClientError> {
        self.client.post(self.client.native(&["flows", template, "instantiate"]), flow, Repeat::Never).await
    }

    /// Flows, newest first.
    pub async fn list(self, query: &FlowsQuery) -> Result<List<FlowInfo>, ClientError> {
        self.client.get(with_query(self.client.native(&["flows"]), query)).await
    }

    /// A flow with the version that is started when none is named.
    pub async fn show(self, flow: &str) -> Result<FlowDetail, ClientError> {
        self.client.get(self.client.native(&["flows", flow])).await
    }

    /// All versions of a flow, newest first.
    pub async fn versions(self, flow: &str) -> Result<List<VersionSummary>, ClientError> {
        self.client.get(self.client.native(&["flows", flow, "versions"])).await
    }

    /// One version of a flow.
    pub async fn version(self, flow: &str, number: u32) -> Result<Version, ClientError> {
        self.client.get(self.client.native(&["flows", flow, "versions", &number.to_string()])).await
    }

    /// How two versions of a flow differ.
    pub async fn diff(self, flow: &str, query: &DiffQuery) -> Result<FlowDiff, ClientError> {
        self.client.get(with_query(self.client.native(&["flows", flow, "diff"]), query)).await
    }

    /// A flow as a graph, laid out.
    pub async fn graph(self, flow: &str, query: &GraphQuery) -> Result<FlowGraph, ClientError> {
        self.client.get(with_query(self.client.native(&["flows", flow, "graph"]), query)).await
    }

    /// A flow as an SVG, optionally with the states of a run.
    pub async fn graph_svg(self, flow: &str, query: &GraphSvgQuery) -> Result<String, ClientError> {
        self.client.text(with_query(self.client.native(&["flows", flow, "graph.svg"]), query)).await
    }

    /// The problems of a definition.
    pub async fn validate(self, definition: &Definition) -> Result<Validation, ClientError> {
        self.client.post(self.client.native(&["flows", "validate"]), definition, Repeat::Harmless).await
    }

    /// The tasks that the steps of a definition become.
    pub async fn expand(self, definition: &Definition) -> Result<ExpandResponse, ClientError> {
        self.client.post(self.client.native(&["flows", "expand"]), definition, Repeat::Harmless).await
    }

    /// How a flow went since the server started.
    pub async fn stats(self, flow: &str) -> Result<FlowStatsInfo, ClientError> {
        self.client.get(self.client.native(&["flows", flow, "stats"])).await
    }
}
