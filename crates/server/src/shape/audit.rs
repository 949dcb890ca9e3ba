//! Lines of the audit log.

use serde_json::Value;
use windlass_sdk::contract::{AuditHead, AuditLine};
use windlass_store::audit::{AuditEntry, AuditHead as StoredHead, AuditRow};

use super::time;

/// One line of the audit log; empty details are absent.
pub(crate) fn audit_line(entry: AuditEntry) -> AuditLine {
    let AuditEntry { seq, row, hash } = entry;
    let AuditRow { at, who, what, subject, mut detail } = row;
    let mut text = |name: &str| match detail.get_mut(name).map(Value::take) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (ip, code, reason) = (text("ip"), text("code"), text("reason"));
    let (key, on_behalf_of) = (text("key"), text("on_behalf_of"));
    let [method, path, result] = ["method", "path", "result"].map(|name| text(name).unwrap_or_default());
    let status = detail["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or_default();
    let hash = hash.to_string();
    AuditLine {
        seq: seq.0,
        at: time(at),
        who,
        key,
        on_behalf_of,
        what,
        subject,
        result,
        status,
        code,
        reason,
        method,
        path,
        ip,
        hash,
    }
}

pub(crate) fn audit_head(StoredHead { seq, hash }: StoredHead) -> AuditHead {
    AuditHead { seq: seq.0, hash: hash.to_string() }
}
