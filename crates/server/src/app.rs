//! The state that all handlers share, and lookups in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use windlass_engine::counter::Seq;
use windlass_engine::id::{FlowId, RunId, VersionId};
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;
use windlass_runtime::Runtime;
use windlass_runtime::runs::RunView;
use windlass_store::Store;
use windlass_store::flow::{FlowRef, FlowRow, VersionRef};
use windlass_store::run::{RunRef, RunRow, Since};

use crate::ExampleFlow;
use crate::live::EventHub;
use crate::problem::{ApiError, ApiResult, Code};

/// Versions whose names are remembered; all are forgotten when there are more, and asked for again.
const LABELS_MAX: usize = 10_000;
/// Entries of a journal read at once.
pub(crate) const ENTRIES: usize = 1_000;

/// The state that all handlers share. Cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) runtime: Runtime,
    /// Canceled when the server stops listening: streams end then.
    pub(crate) closing: CancellationToken,
    pub(crate) hub: EventHub,
    pub(crate) examples: Arc<[ExampleFlow]>,
    labels: Arc<Mutex<HashMap<VersionId, Arc<VersionLabel>>>>,
}

/// The name of a flow and the number of a version. Never changes.
#[derive(Debug)]
pub(crate) struct VersionLabel {
    pub(crate) flow: String,
    pub(crate) number: u32,
}

impl App {
    pub(crate) fn new(runtime: Runtime, closing: CancellationToken, examples: &[ExampleFlow]) -> Self {
        App { runtime, closing, hub: EventHub::default(), examples: examples.into(), labels: Arc::default() }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        self.runtime.store()
    }

    pub(crate) fn project(&self) -> &Project {
        self.runtime.project()
    }

    /// The flow of this name or id.
    pub(crate) async fn flow(&self, text: &str) -> ApiResult<FlowRow> {
        if let Ok(id) = text.parse::<FlowId>()
            && let Some(flow) = self.store().flow(self.project(), FlowRef::Id(id)).await?
        {
            return Ok(flow);
        }
        let flow = self.store().flow(self.project(), FlowRef::Name(text.to_owned())).await?;
        flow.ok_or_else(|| {
            let shown: String = text.chars().take(80).collect();
            ApiError::new(Code::UnknownFlow, format!("there is no flow `{shown}`: publish it first"))
        })
    }

    /// The row of a run.
    pub(crate) async fn row(&self, run: RunId) -> ApiResult<RunRow> {
        let row = self.store().run(self.project(), RunRef::Id(run)).await?;
        row.ok_or_else(|| unknown_run(&run.to_string()))
    }

    /// A run as it is stored now.
    pub(crate) async fn view(&self, run: RunId) -> ApiResult<RunView> {
        self.runtime.runs().view(run).await?.ok_or_else(|| unknown_run(&run.to_string()))
    }

    /// The label of the version of a run.
    pub(crate) async fn label(&self, flow: FlowId, version: VersionId) -> ApiResult<Arc<VersionLabel>> {
        let known = self.labels.lock().unwrap_or_else(PoisonError::into_inner).get(&version).cloned();
        if let Some(label) = known {
            return Ok(label);
        }
        let row = self.store().version(self.project(), VersionRef::Id(version)).await?;
        let name = self.store().flow(self.project(), FlowRef::Id(flow)).await?;
        let label = Arc::new(VersionLabel {
            flow: name.map_or_else(|| flow.to_string(), |flow| flow.name),
            number: row.map_or(0, |row| row.number),
        });
        let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
        if labels.len() >= LABELS_MAX {
            labels.clear();
        }
        labels.insert(version, label.clone());
        Ok(label)
    }

    /// Reads the whole journal of a run, a part at a time.
    pub(crate) async fn each_entry(&self, run: RunId, mut take: impl FnMut(Seq, &Entry)) -> ApiResult<()> {
        let mut after = Seq::ZERO;
        loop {
            let part = self.store().journal(self.project(), run, Since::Entry(after), ENTRIES).await?;
            for (seq, entry) in &part.entries {
                take(*seq, entry);
                after = *seq;
            }
            if part.entries.len() < ENTRIES {
                return Ok(());
            }
        }
    }
}

/// The run that the path names.
pub(crate) fn run_id(text: &str) -> ApiResult<RunId> {
    text.parse().map_err(|_| unknown_run(text))
}

fn unknown_run(text: &str) -> ApiError {
    let shown: String = text.chars().take(80).collect();
    ApiError::new(Code::UnknownRun, format!("there is no run `{shown}`: list runs with GET /api/v1/runs"))
}
