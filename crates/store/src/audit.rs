//! Lines of the audit: each names an actor, a change and its subject. They are never changed and never deleted.
//!
//! The lines of a project are a hash chain: each line has the SHA-256 of the hash before it, its number and its content.
//! A changed, missing or moved line breaks the chain, and the head of the chain is stored beside the lines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_engine::counter::Seq;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::column::json;
use crate::error::StoreError;
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

/// A stored line: its number, from 1 without gaps, and its hash.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditEntry {
    pub seq: Seq,
    pub row: AuditRow,
    pub hash: AuditHash,
}

/// The hash of a line of the audit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuditHash([u8; 32]);

impl AuditHash {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The hash that a store has kept.
    pub(crate) fn read(bytes: &[u8]) -> Result<AuditHash, StoreError> {
        let bytes = <[u8; 32]>::try_from(bytes);
        bytes
            .map(AuditHash)
            .map_err(|_| StoreError::Corrupt("a hash of the audit has not 32 bytes".to_owned()))
    }
}

impl fmt::Display for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for AuditHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditHash({self})")
    }
}

impl FromStr for AuditHash {
    type Err = ();

    fn from_str(text: &str) -> Result<AuditHash, ()> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(());
        }
        let mut bytes = [0; 32];
        for (place, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(drop)?;
        }
        Ok(AuditHash(bytes))
    }
}

/// The last line of a project's audit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditHead {
    pub seq: Seq,
    pub hash: AuditHash,
}

impl AuditHead {
    /// The head of an audit without lines.
    pub const EMPTY: AuditHead = AuditHead { seq: Seq::ZERO, hash: AuditHash([0; 32]) };

    /// The head once this content is the next line.
    pub fn next(self, content: &AuditContent) -> AuditHead {
        let seq = Seq(self.seq.0 + 1);
        let hash = Sha256::new().chain_update(self.hash.0).chain_update(seq.0.to_be_bytes());
        AuditHead { seq, hash: AuditHash(hash.chain_update(&content.0).finalize().into()) }
    }
}

/// The bytes of a line that its hash covers: each field after its length in bytes.
#[derive(Debug, Clone)]
pub struct AuditContent(Vec<u8>);

impl AuditContent {
    pub fn of(project: &Project, row: &AuditRow) -> AuditContent {
        let AuditRow { at, who, what, subject, detail } = row;
        let (at, detail) = (at.0.to_string(), json(detail));
        let mut bytes = Vec::new();
        for field in [project.as_str(), &at, who, what, subject, &detail] {
            bytes.extend_from_slice(&(field.len() as u64).to_be_bytes());
            bytes.extend_from_slice(field.as_bytes());
        }
        AuditContent(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(subject: &str, detail: Value) -> AuditRow {
        let (who, what) = ("me".to_owned(), "run.cancel".to_owned());
        AuditRow { at: Timestamp(1), who, what, subject: subject.to_owned(), detail }
    }

    #[test]
    fn every_field_and_the_lines_before_change_the_hash() {
        let head = |project: &Project, row: &AuditRow| AuditHead::EMPTY.next(&AuditContent::of(project, row));
        let first = row("r1", json!({"n": 1}));
        let was = head(&Project::DEFAULT, &first);
        let others = [
            row("r2", json!({"n": 1})),
            row("r1", json!({"n": 2})),
            AuditRow { at: Timestamp(2), ..first.clone() },
            AuditRow { who: "m".to_owned(), what: "erun.cancel".to_owned(), ..first.clone() },
        ];
        for other in &others {
            assert_ne!(head(&Project::DEFAULT, other).hash, was.hash, "{other:?}");
        }
        assert_ne!(head(&Project::new("other").unwrap(), &first).hash, was.hash);
        assert_ne!(was.next(&AuditContent::of(&Project::DEFAULT, &first)).hash, was.hash);
        // The formula of docs/audit.md.
        let shown = "a53fd7534c53ef0aada3d3148ab48502f62027cca540a80935bd02387d986e29";
        assert_eq!((was.seq, was.hash.to_string().as_str()), (Seq(1), shown));
        assert_eq!(shown.parse(), Ok(was.hash));
        assert_eq!("e".repeat(63).parse::<AuditHash>(), Err(()));
    }
}
