//! API keys.

use windlass_engine::access::Role;
use windlass_sdk::contract::{KeyInfo, KeyRole};
use windlass_store::api_key::ApiKeyRow;

use super::time;

/// A key, without its hash.
pub(crate) fn key(row: ApiKeyRow) -> KeyInfo {
    let ApiKeyRow { id, name, role, may_script, scope, created_at, created_by, term, used_at, .. } = row;
    // The scope of an admin is everything, which is not a restriction to show.
    let scope = if role == Role::Worker { scope } else { Default::default() };
    KeyInfo {
        id: id.to_string(),
        name,
        role: key_role(role),
        scripts: may_script,
        services: scope.services.into_iter().collect(),
        queues: scope.queues.into_iter().collect(),
        created_at: time(created_at),
        created_by,
        expires_at: term.expires_at.map(time),
        revoked_at: term.revoked_at.map(time),
        used_at: used_at.map(time),
    }
}

fn key_role(role: Role) -> KeyRole {
    match role {
        Role::Viewer => KeyRole::Viewer,
        Role::Operator => KeyRole::Operator,
        Role::Worker => KeyRole::Worker,
        Role::Author => KeyRole::Author,
        Role::Admin => KeyRole::Admin,
    }
}

/// The role of a request.
pub(crate) fn role(role: KeyRole) -> Role {
    match role {
        KeyRole::Viewer => Role::Viewer,
        KeyRole::Operator => Role::Operator,
        KeyRole::Worker => Role::Worker,
        KeyRole::Author => Role::Author,
        KeyRole::Admin => Role::Admin,
    }
}
