//! A run as this surface shows it.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use windlass_engine::id::{FlowId, VersionId};
use windlass_engine::recovery::DEAD_MS;
use windlass_engine::run::{Cause, Run};
use windlass_runtime::runs::RunView;
use windlass_store::flow::{FlowRef, VersionRef};
use windlass_store::run::{Owner, RunProjection, RunRow, RunStatus};
use windlass_store::server::ServerRow;

use crate::scheduler::era::Noun;
use crate::scheduler::failure::Failure;
use crate::scheduler::worker::seconds;
use crate::scheduler::{Surface, id, shared};

/// Attempts to come that are listed: a wide fan may wait for as many as it has branches.
const RETRIES_SHOWN: usize = 100;

/// Renders tasks; lookups that several tasks share are made once.
pub(super) struct Renderer<'s> {
    surface: &'s Surface,
    flows: HashMap<FlowId, String>,
    versions: HashMap<VersionId, u32>,
    servers: Option<Vec<ServerRow>>,
}

/// Facts that only the journal of a run has.
struct JournalFacts {
    params: Value,
    shared: Value,
    current: String,
    retries: Value,
}

impl<'s> Renderer<'s> {
    pub(super) fn new(surface: &'s Surface) -> Self {
        Renderer { surface, flows: HashMap::new(), versions: HashMap::new(), servers: None }
    }

    pub(super) async fn task(&mut self, view: &RunView) -> Result<Value, Failure> {
        let RunView { row, plan, state } = view;
        let depth = JournalFacts {
            params: json!(state.start.params),
            shared: shared::render(plan, state),
            current: shared::current(&plan.root, &state.root).unwrap_or_default().to_owned(),
            retries: retry_state(view),
        };
        self.render(row, depth).await
    }

    /// A task of which only the row can be read: the facts of the journal are empty.
    pub(super) async fn row(&mut self, row: &RunRow) -> Result<Value, Failure> {
        let shared = row.projection.shared.as_deref().cloned();
        let depth = JournalFacts {
            params: json!({}),
            shared: shared.unwrap_or_else(|| json!({})),
            current: row.projection.node.iter().flat_map(|node| node.segments().next()).collect(),
            retries: json!({}),
        };
        self.render(row, depth).await
    }

    async fn render(&mut self, row: &RunRow, depth: JournalFacts) -> Result<Value, Failure> {
        let RunRow { origin, projection, .. } = row;
        let (lease_owner, lease_expiry) = self.lease(projection.owner).await?;
        let request = origin.request.as_ref().map(|request| request.id.clone());
        let fields = [
            ("id", id::task(row.id).into()),
            ("flow_version_id", id::version(origin.version).into()),
            ("flow_id", id::flow(origin.flow).into()),
            ("flow_name", self.flow_name(origin.flow).await?.into()),
            ("flow_version", self.version_number(origin.version).await?.into()),
            ("status", status_word(projection).into()),
            ("params_json", depth.params.to_string().into()),
            ("shared_json", depth.shared.to_string().into()),
            ("current_node_key", depth.current.into()),
            ("last_action", projection.action.clone().unwrap_or_default().into()),
            ("step_count", projection.step_count.into()),
            ("retry_state_json", depth.retries.to_string().into()),
            ("lease_owner", lease_owner.into()),
            ("lease_expiry", lease_expiry.into()),
            ("request_id", request.unwrap_or_default().into()),
            ("created_at", seconds(origin.created_at).into()),
            ("updated_at", seconds(projection.updated_at).into()),
        ];
        let fields = fields.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value));
        Ok(self.surface.era.object(Noun::Task, fields.collect()))
    }

    async fn flow_name(&mut self, flow: FlowId) -> Result<String, Failure> {
        if let Some(name) = self.flows.get(&flow) {
            return Ok(name.clone());
        }
        let row =
            self.surface.runtime.store().flow(self.surface.runtime.project(), FlowRef::Id(flow)).await?;
        let name = row.map(|row| row.name).unwrap_or_default();
        self.flows.insert(flow, name.clone());
        Ok(name)
    }

    async fn version_number(&mut self, version: VersionId) -> Result<u32, Failure> {
        if let Some(number) = self.versions.get(&version) {
            return Ok(*number);
        }
        let row = self
            .surface
            .runtime
            .store()
            .version(self.surface.runtime.project(), VersionRef::Id(version))
            .await?;
        let number = row.map(|row| row.number).unwrap_or_default();
        self.versions.insert(version, number);
        Ok(number)
    }

    /// The server that makes the calls of a run, and the end of its lease.
    async fn lease(&mut self, owner: Option<Owner>) -> Result<(String, i64), Failure> {
        let Some(owner) = owner else { return Ok((String::new(), 0)) };
        let servers = match &mut self.servers {
            Some(servers) => servers,
            none => none.insert(self.surface.runtime.store().servers().await?),
        };
        let found = servers.iter().find(|server| server.owner == owner);
        let name = found.map_or_else(|| owner.server.to_string(), |server| server.name.clone());
        Ok((name, found.map_or(0, |server| seconds(server.beat_at.after(DEAD_MS)))))
    }
}

/// The status of a run in the words of this surface; `query_of` asks for the same.
pub(super) fn status_word(projection: &RunProjection) -> &'static str {
    match projection.status {
        RunStatus::Pending => "pending",
        // It has not entered its first node yet.
        RunStatus::Waiting if projection.step_count == 0 => "pending",
        // Only a job or a child run works on it.
        RunStatus::Running if projection.owner.is_none() => "waiting_queue",
        RunStatus::Running | RunStatus::Waiting | RunStatus::Paused => "running",
        RunStatus::Completed => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Canceling => "canceling",
        RunStatus::Canceled => "canceled",
    }
}

/// The next retry: the number of the attempt, and its time.
fn retry_state(view: &RunView) -> Value {
    let run: &Run = &view.state;
    let waiting = run.why(&view.plan).into_iter().filter_map(|reason| match reason.cause {
        Cause::Retry { at, after } => {
            let attempt = run.node_attempt(&view.plan, &reason.node).unwrap_or(0).saturating_add(1);
            let state = json!({"attempt": attempt, "next_try_at": at.0, "error": after.unwrap_or_default()});
            Some((reason.node.to_string(), state))
        }
        Cause::Start
        | Cause::Resume
        | Cause::Step
        | Cause::Turn
        | Cause::Nothing { .. }
        | Cause::CancelConfirmation { .. }
        | Cause::Answer { .. }
        | Cause::Report { .. }
        | Cause::Timer { .. }
        | Cause::Signal { .. }
        | Cause::Approval { .. }
        | Cause::Balance { .. }
        | Cause::Budget { .. } => None,
    });
    Value::Object(waiting.take(RETRIES_SHOWN).collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use windlass_engine::run::Totals;
    use windlass_engine::time::Timestamp;

    use super::*;
    use windlass_engine::counter::Epoch;

    fn projection(status: RunStatus, step_count: u64, is_owned: bool) -> RunProjection {
        let server = format!("srv_{:032x}", 1).parse().unwrap();
        RunProjection {
            status,
            round: 1,
            node: None,
            action: None,
            step_count,
            wake_at: None,
            owner: is_owned.then_some(Owner { server, epoch: Epoch(1) }),
            cost: Totals::default(),
            needs: None,
            error: None,
            shared: None,
            result: None,
            updated_at: Timestamp(0),
            ended_at: None,
        }
    }

    #[test]
    fn a_status_is_what_the_list_is_asked_for() {
        for (status, step_count, is_owned, word) in [
            (RunStatus::Waiting, 0, false, "pending"),
            (RunStatus::Waiting, 1, false, "running"),
            (RunStatus::Running, 1, true, "running"),
            (RunStatus::Running, 1, false, "waiting_queue"),
            (RunStatus::Paused, 1, false, "running"),
            (RunStatus::Canceling, 1, false, "canceling"),
            (RunStatus::Failed, 1, false, "failed"),
        ] {
            let projection = projection(status, step_count, is_owned);
            assert_eq!(status_word(&projection), word, "{status:?}");
            for asked in super::super::STATUSES {
                let query = super::super::query_of(asked).unwrap();
                let is_status = query.statuses.contains(&status);
                let is_owned = status != RunStatus::Running || query.is_owned.is_none_or(|is| is == is_owned);
                let entered = step_count > 0;
                let has = status != RunStatus::Waiting || query.has_entered.is_none_or(|has| has == entered);
                assert_eq!(is_status && is_owned && has, asked == word, "{status:?} asked as {asked}");
            }
        }
    }
}
