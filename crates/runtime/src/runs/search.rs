//! Lists of runs by a query of the query language: names are looked up once, conditions with an index narrow the list in
//! the store, and parameters, which no row has, are read from the first entries of the journals.

use windlass_engine::counter::Seq;
use windlass_engine::id::{FlowId, RunId, VersionId};
use windlass_store::flow::{FlowRef, VersionRef};
use windlass_store::job::{JobQuery, JobStatus};
use windlass_store::page::{Cursor, PAGE_MAX, Page, Part};
use windlass_store::run::{
    ParamTest, RunCondition, RunQuery, RunRow, RunSearch, RunStatus, RunTest, SearchError, SearchField,
    SearchTerm, VersionName,
};

use crate::RuntimeError;
use crate::part::RuntimePart;
use crate::runs::Runs;

/// Runs whose parameters are read for one page at most: the page ends there with a cursor.
const READ_MAX: usize = 1_000;
/// Runs that are read at once for their parameters.
const CHUNK: usize = 100;
/// Pages that are examined for a number at most.
const COUNTED_PAGES: usize = 5;
/// Runs of one worker at most.
const HELD_MAX: usize = PAGE_MAX;

/// A query with all names looked up.
#[derive(Debug, Clone)]
pub struct RunSelection {
    pub query: RunQuery,
    /// Tests of parameters; `true` = negated.
    params: Vec<(bool, ParamTest)>,
}

impl RunSelection {
    /// The runs of a query that needs no lookup.
    pub fn of(query: RunQuery) -> Self {
        RunSelection { query, params: Vec::new() }
    }

    /// The same with this status instead of those that the query asks for.
    pub fn of_status(&self, status: RunStatus) -> Self {
        let mut selection = self.clone();
        selection.query.statuses = vec![status];
        let is_status = |test: &RunTest| matches!(test.condition, RunCondition::Statuses(_));
        selection.query.tests.retain(|test| !is_status(test));
        selection
    }
}

/// Why no runs could be selected.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// A number of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCount {
    pub n: usize,
    /// There are more, which were not counted.
    pub is_more: bool,
}

/// Finds runs by queries.
#[derive(Clone, Copy)]
pub struct RunFinder<'r> {
    runs: &'r Runs,
}

impl<'r> RunFinder<'r> {
    pub(super) fn of(runs: &'r Runs) -> Self {
        RunFinder { runs }
    }

    /// Reads a query and narrows `base` by it.
    pub async fn select(&self, text: &str, base: RunQuery) -> Result<RunSelection, SelectError> {
        let search = RunSearch::parse(text, self.runs.clock().now())?;
        let flows = self.flows_of(&search).await?;
        let mut selection = RunSelection { query: base, params: Vec::new() };
        for term in search.terms {
            let SearchTerm { position, is_negated, field } = term;
            let condition = match field {
                SearchField::Row(condition) => condition,
                SearchField::Param(test) => {
                    selection.params.push((is_negated, test));
                    continue;
                }
                SearchField::Flow(names) => {
                    let mut found = Vec::new();
                    for (name, number) in names {
                        found.push(self.flow_version(&name, number, position).await?);
                    }
                    RunCondition::Flows(found)
                }
                SearchField::Version(names) => {
                    RunCondition::Versions(self.versions_of(&flows, &names, position).await?)
                }
                SearchField::Worker(workers) => {
                    if !is_negated {
                        let open = RunStatus::ALL.into_iter().filter(|status| status.is_open()).collect();
                        let condition = RunCondition::Statuses(open);
                        selection.query.narrow(RunTest { is_negated: false, condition });
                    }
                    RunCondition::Runs(self.runs_of_workers(workers).await?)
                }
            };
            selection.query.narrow(RunTest { is_negated, condition });
        }
        Ok(selection)
    }

    /// The flows that terms without `-` name: numbers of versions are looked up among theirs.
    async fn flows_of(&self, search: &RunSearch) -> Result<Vec<FlowId>, SelectError> {
        let mut flows = Vec::new();
        for term in search.terms.iter().filter(|term| !term.is_negated) {
            if let SearchField::Flow(names) = &term.field {
                for (name, _) in names {
                    flows.push(self.flow_version(name, None, term.position).await?.0);
                }
            }
        }
        Ok(flows)
    }

    async fn flow_version(
        &self,
        name: &str,
        number: Option<u32>,
        position: usize,
    ) -> Result<(FlowId, Option<VersionId>), SelectError> {
        let (store, project) = (self.runs.store(), self.runs.project());
        let by_id = match name.parse::<FlowId>() {
            Ok(id) => store.flow(project, FlowRef::Id(id)).await.map_err(RuntimeError::from)?,
            Err(_) => None,
        };
        let found = match by_id {
            Some(flow) => Some(flow),
            None => store.flow(project, FlowRef::Name(name.to_owned())).await.map_err(RuntimeError::from)?,
        };
        let shown: String = name.chars().take(80).collect();
        let flow =
            found.ok_or_else(|| SearchError { position, reason: format!("there is no flow `{shown}`") })?.id;
        let Some(number) = number else { return Ok((flow, None)) };
        let version = store.version(project, VersionRef::Number { flow, number }).await;
        let version = version.map_err(RuntimeError::from)?.ok_or_else(|| SearchError {
            position,
            reason: format!("flow `{shown}` has no version {number}"),
        })?;
        Ok((flow, Some(version.id)))
    }

    async fn versions_of(
        &self,
        flows: &[FlowId],
        names: &[VersionName],
        position: usize,
    ) -> Result<Vec<VersionId>, SelectError> {
        let mut found = Vec::new();
        for name in names {
            let number = match name {
                VersionName::Id(id) => {
                    found.push(*id);
                    continue;
                }
                VersionName::Number(number) => *number,
            };
            if flows.is_empty() {
                let reason = "the number of a version needs its flow: write `flow:pay version:3`".to_owned();
                return Err(SearchError { position, reason }.into());
            }
            for flow in flows {
                let version = VersionRef::Number { flow: *flow, number };
                let version = self.runs.store().version(self.runs.project(), version).await;
                found.extend(version.map_err(RuntimeError::from)?.map(|version| version.id));
            }
        }
        Ok(found)
    }

    /// Runs with a job that one of these workers holds.
    async fn runs_of_workers(&self, workers: Vec<String>) -> Result<Vec<RunId>, RuntimeError> {
        let mut runs = Vec::new();
        for worker in workers {
            let part = Part { limit: HELD_MAX, ..Part::default() };
            let query = JobQuery {
                statuses: vec![JobStatus::Running],
                worker: Some(worker),
                part,
                ..JobQuery::default()
            };
            let jobs = self.runs.store().jobs(self.runs.project(), query).await?;
            runs.extend(jobs.items.iter().filter_map(|row| row.origin.call.as_ref().map(|call| call.run)));
        }
        runs.sort_unstable();
        runs.dedup();
        Ok(runs)
    }

    /// A page of the selected runs.
    pub async fn selected(&self, selection: &RunSelection, part: Part) -> Result<Page<RunRow>, RuntimeError> {
        let RunSelection { query, params } = selection;
        if params.is_empty() {
            return Ok(self
                .runs
                .store()
                .runs(self.runs.project(), RunQuery { part, ..query.clone() })
                .await?);
        }
        let (size, order) = (part.size(), part.order);
        let (mut items, mut cursor, mut n_read) = (Vec::new(), part.cursor, 0);
        loop {
            let part = Part { cursor, limit: CHUNK, order, ..Part::default() };
            let page =
                self.runs.store().runs(self.runs.project(), RunQuery { part, ..query.clone() }).await?;
            let n_rows = page.items.len();
            for (index, row) in page.items.into_iter().enumerate() {
                n_read += 1;
                if !self.has_params(row.id, params).await? {
                    continue;
                }
                let place = Cursor::after(order, row.origin.created_at, row.id);
                items.push(row);
                if items.len() == size {
                    let is_last = index + 1 == n_rows && page.next.is_none();
                    return Ok(Page { items, next: (!is_last).then_some(place), total: None });
                }
            }
            if page.next.is_none() || n_read >= READ_MAX {
                return Ok(Page { items, next: page.next, total: None });
            }
            cursor = page.next;
        }
    }

    async fn has_params(&self, run: RunId, tests: &[(bool, ParamTest)]) -> Result<bool, RuntimeError> {
        // The first entry holds the start of the run.
        let Some(view) = self.runs.view_at(run, Seq(1)).await? else { return Ok(false) };
        let params = view.state.start.params.to_map().into();
        Ok(tests.iter().all(|(is_negated, test)| test.holds(&params) != *is_negated))
    }

    /// The number of selected runs, up to a limit.
    pub async fn count_selected(
        &self,
        selection: &RunSelection,
        limit: usize,
    ) -> Result<RunCount, RuntimeError> {
        if selection.params.is_empty() {
            let query = selection.query.clone();
            let counted =
                self.runs.store().count_matching(self.runs.project(), query, limit.saturating_add(1)).await?;
            if let Some(n) = counted {
                return Ok(RunCount { n: n.min(limit), is_more: n > limit });
            }
        }
        let (mut n, mut cursor) = (0, None);
        for _ in 0..COUNTED_PAGES {
            let part = Part { cursor, limit: PAGE_MAX, ..Part::default() };
            let page = self.selected(selection, part).await?;
            n += page.items.len();
            if n > limit {
                return Ok(RunCount { n: limit, is_more: true });
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(RunCount { n, is_more: false });
            }
        }
        Ok(RunCount { n, is_more: true })
    }

    /// The first runs whose ids begin with this text; none if no id begins so.
    pub async fn with_prefix(&self, beginning: &str, limit: usize) -> Result<Vec<RunRow>, RuntimeError> {
        let Some(ids) = RunId::range(beginning) else { return Ok(Vec::new()) };
        let part = Part { limit, ..Part::default() };
        let query = RunQuery { ids: Some(ids), part, ..RunQuery::default() };
        Ok(self.runs.store().runs(self.runs.project(), query).await?.items)
    }
}
