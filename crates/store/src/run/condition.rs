//! Conditions on the row of a run that a query combines: a query narrows the list by those that an index answers, and
//! examines the rows for the others.

use windlass_engine::id::{FlowId, RunId, ScheduleId, VersionId};
use windlass_engine::path::NodePath;
use windlass_engine::retry::FaultKind;
use windlass_engine::time::Timestamp;

use super::{RunQuery, RunRow, RunStatus};

/// A condition, or its opposite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTest {
    pub is_negated: bool,
    pub condition: RunCondition,
}

/// A property of a run's row. A list names alternatives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunCondition {
    Statuses(Vec<RunStatus>),
    /// Flows, and a version of each if that matters.
    Flows(Vec<(FlowId, Option<VersionId>)>),
    Versions(Vec<VersionId>),
    Accounts(Vec<String>),
    /// The node that was entered last is one of these, or inside of one.
    Nodes(Vec<NodePath>),
    Runs(Vec<RunId>),
    ErrorKinds(Vec<FaultKind>),
    ErrorText(String),
    /// A label, with one of these values if they matter.
    Label(String, Option<Vec<String>>),
    Parents(Vec<RunId>),
    Schedules(Vec<ScheduleId>),
    Requests(Vec<String>),
    /// Ids from the first to the last of a range.
    Ids(Vec<(RunId, RunId)>),
    Triggers(Vec<RunTrigger>),
    Since(Timestamp),
    Until(Timestamp),
    /// Longer than so many milliseconds, until this moment if it is still open.
    LongerThan(u64, Timestamp),
    ShorterThan(u64, Timestamp),
    /// In the id, the request id, a label's value or the error, ignoring case.
    Text(String),
}

/// The cause of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunTrigger {
    Api,
    Schedule,
    Parent,
}

impl RunTrigger {
    /// Every cause.
    pub const ALL: [RunTrigger; 3] = [RunTrigger::Api, RunTrigger::Schedule, RunTrigger::Parent];

    /// The word used on the wire.
    pub fn word(self) -> &'static str {
        match self {
            RunTrigger::Api => "api",
            RunTrigger::Schedule => "schedule",
            RunTrigger::Parent => "parent",
        }
    }

    /// The cause of a run.
    pub fn of(row: &RunRow) -> Self {
        match (&row.origin.parent, &row.origin.schedule) {
            (Some(_), _) => RunTrigger::Parent,
            (None, Some(_)) => RunTrigger::Schedule,
            (None, None) => RunTrigger::Api,
        }
    }
}

impl RunTest {
    /// Whether a run has the property, or does not have it if the test is negated.
    pub fn holds(&self, row: &RunRow) -> bool {
        self.condition.holds(row) != self.is_negated
    }
}

impl RunCondition {
    fn holds(&self, row: &RunRow) -> bool {
        let (origin, projection) = (&row.origin, &row.projection);
        let error = projection.error.as_ref().map(|error| &error.fault);
        let lasted = |now: Timestamp| projection.ended_at.unwrap_or(now).since(origin.created_at);
        match self {
            RunCondition::Statuses(statuses) => statuses.contains(&projection.status),
            RunCondition::Flows(flows) => flows.iter().any(|(flow, version)| {
                *flow == origin.flow && version.is_none_or(|version| version == origin.version)
            }),
            RunCondition::Versions(versions) => versions.contains(&origin.version),
            RunCondition::Accounts(accounts) => {
                origin.account.as_ref().is_some_and(|account| accounts.contains(account))
            }
            RunCondition::Nodes(nodes) => {
                projection.node.as_ref().is_some_and(|node| nodes.iter().any(|asked| asked.holds(node)))
            }
            RunCondition::Runs(runs) => runs.contains(&row.id),
            RunCondition::ErrorKinds(kinds) => error.is_some_and(|fault| kinds.contains(&fault.kind)),
            RunCondition::ErrorText(text) => {
                error.is_some_and(|fault| fault.message.to_lowercase().contains(&text.to_lowercase()))
            }
            RunCondition::Label(key, values) => origin
                .labels
                .get(key)
                .is_some_and(|found| values.as_ref().is_none_or(|values| values.contains(found))),
            RunCondition::Parents(parents) => {
                origin.parent.as_ref().is_some_and(|parent| parents.contains(&parent.run))
            }
            RunCondition::Schedules(schedules) => {
                origin.schedule.is_some_and(|schedule| schedules.contains(&schedule))
            }
            RunCondition::Requests(requests) => {
                origin.request.as_ref().is_some_and(|request| requests.contains(&request.id))
            }
            RunCondition::Ids(ranges) => ranges.iter().any(|(first, last)| (first..=last).contains(&&row.id)),
            RunCondition::Triggers(triggers) => triggers.contains(&RunTrigger::of(row)),
            RunCondition::Since(since) => origin.created_at >= *since,
            RunCondition::Until(until) => origin.created_at < *until,
            RunCondition::LongerThan(ms, now) => lasted(*now) > *ms,
            RunCondition::ShorterThan(ms, now) => lasted(*now) < *ms,
            RunCondition::Text(text) => row.says(text),
        }
    }
}

impl RunQuery {
    /// Narrows the query by one more test: by an index where that is possible.
    pub fn narrow(&mut self, test: RunTest) {
        if let Some(rest) = self.narrow_by_index(test) {
            self.tests.push(rest);
        }
    }

    /// Returns the test unless a field of the query expresses it.
    fn narrow_by_index(&mut self, test: RunTest) -> Option<RunTest> {
        fn fill<T: PartialEq>(place: &mut Option<T>, value: T) -> bool {
            let is_free = place.is_none() || place.as_ref() == Some(&value);
            if is_free {
                *place = Some(value);
            }
            is_free
        }
        let taken = match (&test.condition, test.is_negated) {
            (RunCondition::Statuses(statuses), is_negated) if self.statuses.is_empty() => {
                let asked = |status: &RunStatus| statuses.contains(status) != is_negated;
                self.statuses = RunStatus::ALL.into_iter().filter(asked).collect();
                // Without a status left, no run matches: the empty list would mean any.
                !self.statuses.is_empty()
            }
            (_, true) => false,
            (RunCondition::Flows(flows), false) => match flows[..] {
                [(flow, version)] => {
                    fill(&mut self.flow, flow)
                        && version.is_none_or(|version| fill(&mut self.version, version))
                }
                _ => false,
            },
            (RunCondition::Versions(versions), false) => match versions[..] {
                [version] => fill(&mut self.version, version),
                _ => false,
            },
            (RunCondition::Accounts(accounts), false) => match &accounts[..] {
                [account] => fill(&mut self.account, account.clone()),
                _ => false,
            },
            (RunCondition::Parents(parents), false) => match parents[..] {
                [parent] => fill(&mut self.parent, parent),
                _ => false,
            },
            (RunCondition::Schedules(schedules), false) => match schedules[..] {
                [schedule] => fill(&mut self.schedule, schedule),
                _ => false,
            },
            (RunCondition::Ids(ranges), false) => match ranges[..] {
                [range] => fill(&mut self.ids, range),
                _ => false,
            },
            (RunCondition::Since(since), false) => {
                self.since = self.since.max(Some(*since));
                true
            }
            (RunCondition::Until(until), false) => {
                self.until = Some(self.until.map_or(*until, |other| other.min(*until)));
                true
            }
            _ => false,
        };
        (!taken).then_some(test)
    }
}
