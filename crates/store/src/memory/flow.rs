//! Publishing flows and finding them.

use std::collections::BTreeMap;

use windlass_engine::id::FlowId;

use super::state::ProjectTables;
use crate::error::{Refusal, StoreError};
use crate::flow::{
    FlowChoice, FlowDraft, FlowQuery, FlowRow, Publication, Published, VersionDraft, VersionRef, VersionRow,
    VersionStatus,
};
use crate::page::{Order, Page, cut};

impl ProjectTables {
    pub(super) fn publish(&mut self, publication: Publication) -> Result<Published, StoreError> {
        let Publication { flow, version, now } = publication;
        let (flow, draft) = match flow {
            FlowChoice::Existing(id) => (id, None),
            FlowChoice::Create(draft) => (draft.id, (!self.flows.contains_key(&draft.id)).then_some(draft)),
        };
        if let Some(draft) = &draft {
            check_name(&self.flows, draft)?;
        } else if !self.flows.contains_key(&flow) {
            return Err(Refusal::UnknownFlow(flow).into());
        }
        let known = version.as_ref().and_then(|version| self.versions.get(&version.id));
        if let Some(known) = known {
            if known.flow != flow {
                return Err(Refusal::Malformed("the version is of another flow").into());
            }
            return Ok(Published { flow, version: Some((known.id, known.number)), created: false });
        }
        let number = version.as_ref().map(|version| self.number(flow, version)).transpose()?;
        let created = draft.is_some() || version.is_some();
        if let Some(FlowDraft { id, name, description, labels, is_template, allow_same_name: _ }) = draft {
            let (created_at, updated_at, latest) = (now, now, 0);
            let row = FlowRow { id, name, description, labels, is_template, latest, created_at, updated_at };
            self.flows.insert(id, row);
        }
        if let (Some(version), Some(number)) = (&version, number) {
            let VersionDraft { id, number: _, definition, plan: _, form, lenient, status, note } =
                version.clone();
            let row =
                VersionRow { id, flow, number, definition, form, lenient, status, note, created_at: now };
            self.versions.insert(id, row);
            let row = self.flows.get_mut(&flow).expect("the flow was found or inserted above");
            row.latest = row.latest.max(number);
            row.updated_at = row.updated_at.max(now);
        }
        Ok(Published { flow, version: version.map(|version| version.id).zip(number), created })
    }

    fn number(&self, flow: FlowId, version: &VersionDraft) -> Result<u32, Refusal> {
        let latest = self.flows.get(&flow).map_or(0, |row| row.latest);
        let number = version.number.unwrap_or_else(|| latest.saturating_add(1));
        let is_taken = self.versions.values().any(|row| row.flow == flow && row.number == number);
        if is_taken { Err(Refusal::NumberTaken { flow, number }) } else { Ok(number) }
    }

    pub(super) fn flows(&self, query: FlowQuery) -> Result<Page<FlowRow>, StoreError> {
        let matches = self.flows.values().filter(|row| row.matches(&query)).cloned().collect();
        let order = query.part.order;
        Ok(cut(&query.part, matches, |row: &FlowRow| match order {
            Order::Newest | Order::Oldest => (row.created_at, row.id),
            Order::LatestChange => (row.updated_at, row.id),
        })?)
    }

    pub(super) fn version(&self, version: VersionRef) -> Result<Option<VersionRow>, StoreError> {
        let mut rows = self.versions.values();
        Ok(match version {
            VersionRef::Id(id) => self.versions.get(&id).cloned(),
            VersionRef::Number { flow, number } => {
                rows.find(|row| row.flow == flow && row.number == number).cloned()
            }
            VersionRef::Latest { flow } => rows
                .filter(|row| row.flow == flow && row.status == VersionStatus::Published)
                .max_by_key(|row| row.number)
                .cloned(),
        })
    }

    pub(super) fn versions(&self, flow: FlowId) -> Result<Vec<VersionRow>, StoreError> {
        let mut rows: Vec<VersionRow> = self.versions.values().filter(|r| r.flow == flow).cloned().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.number));
        Ok(rows)
    }
}

fn check_name(flows: &BTreeMap<FlowId, FlowRow>, draft: &FlowDraft) -> Result<(), Refusal> {
    let taken = flows.values().find(|row| row.name == draft.name);
    match taken {
        Some(row) if !draft.allow_same_name => {
            Err(Refusal::NameTaken { name: draft.name.clone(), existing: row.id })
        }
        Some(_) | None => Ok(()),
    }
}
