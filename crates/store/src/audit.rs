//! Lines of the audit: each names an actor, a change and its subject. They are never changed and never deleted.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::counter::Seq;
use windlass_engine::time::Timestamp;

use crate::page::{LineOrder, Part};

/// One line of the audit: an actor and a change. Never changed, never deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRow {
    pub at: Timestamp,
    pub who: String,
    /// The change, as a verb of the API.
    pub what: String,
    /// The id of the changed thing.
    pub subject: String,
    pub detail: Value,
}

/// Filters of the audit. An absent filter matches everything. Each filter has an index; a second one costs the lines
/// that are looked through until there are enough.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    pub who: Option<String>,
    pub what: Option<String>,
    pub subject: Option<String>,
    pub order: LineOrder,
    /// Lines past this one, in the order that is asked for; 0 = from the beginning.
    pub after: Seq,
    /// 0 = the default of a page; never more than a page.
    pub limit: usize,
}

impl AuditQuery {
    /// The number that lines must be beyond, or below if the newest come first.
    pub(crate) fn edge(&self) -> Seq {
        match self.order {
            LineOrder::Newest if self.after == Seq::ZERO => Seq(u64::MAX),
            LineOrder::Newest | LineOrder::Oldest => self.after,
        }
    }

    /// How many lines the page may have.
    pub(crate) fn size(&self) -> usize {
        Part { limit: self.limit, ..Part::default() }.size()
    }
}
