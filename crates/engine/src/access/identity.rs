//! Identities: the caller that a key proves, with its role, its rights and the scope of its work.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::api_key::ApiKeyId;
use super::{Permission, Role};
use crate::project::Project;
use crate::time::Timestamp;

/// The scope that names everything.
pub const ANY: &str = "*";

/// The services and queues whose work an identity may do. An empty set allows none, `*` allows all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkScope {
    #[serde(default)]
    pub services: BTreeSet<String>,
    #[serde(default)]
    pub queues: BTreeSet<String>,
}

impl WorkScope {
    /// The scope of roles that are not limited to some services and queues.
    pub fn everything() -> Self {
        let any = || BTreeSet::from([ANY.to_owned()]);
        WorkScope { services: any(), queues: any() }
    }

    pub fn is_empty(&self) -> bool {
        self.services.is_empty() && self.queues.is_empty()
    }

    pub fn has_service(&self, service: &str) -> bool {
        self.services.contains(ANY) || self.services.contains(service)
    }

    pub fn has_queue(&self, queue: &str) -> bool {
        self.queues.contains(ANY) || self.queues.contains(queue)
    }

    /// Whether no service and no queue is outside.
    pub fn is_everything(&self) -> bool {
        self.services.contains(ANY) && self.queues.contains(ANY)
    }
}

/// A caller that has proved who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The name in the audit.
    pub name: String,
    /// The key that proved it.
    pub key: Option<ApiKeyId>,
    pub role: Role,
    /// The right to publish definitions with scripts.
    pub may_script: bool,
    pub scope: WorkScope,
    pub project: Project,
}

impl Identity {
    pub fn has(&self, permission: Permission) -> bool {
        self.role.has(permission)
    }
}

/// The times that end a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeyTerm {
    pub expires_at: Option<Timestamp>,
    pub revoked_at: Option<Timestamp>,
}

/// Why a presented key proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyFault {
    /// It is missing, malformed, unknown, wrong or revoked: callers are not told which.
    Unproven,
    /// The secret is right and its time is over.
    Expired,
}

impl KeyTerm {
    /// Checks a key whose secret was compared with the stored one.
    pub fn check(self, is_secret_right: bool, now: Timestamp) -> Result<(), KeyFault> {
        if !is_secret_right || self.revoked_at.is_some() {
            return Err(KeyFault::Unproven);
        }
        match self.expires_at {
            Some(at) if at <= now => Err(KeyFault::Expired),
            Some(_) | None => Ok(()),
        }
    }
}

/// The rights that a new key is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRights {
    pub role: Role,
    pub may_script: bool,
    pub scope: WorkScope,
}

impl KeyRights {
    /// Rights of a role without a scope and without scripts.
    pub fn of(role: Role) -> Self {
        KeyRights { role, may_script: false, scope: WorkScope::default() }
    }

    /// The rights as they are stored, or the wrong field with its remedy. Only workers have a scope, and need one.
    pub fn checked(self) -> Result<KeyRights, (&'static str, String)> {
        let role = self.role.word();
        if self.may_script && !self.role.has(Permission::Author) {
            let reason =
                format!("the role `{role}` publishes nothing: leave it out, or take the role author");
            return Err(("scripts", reason));
        }
        match (self.role, self.scope.is_empty()) {
            (Role::Worker, true) => {
                let reason = "a key of a worker needs its services or queues: name them, or `*` for all";
                Err(("services", reason.to_owned()))
            }
            (Role::Worker, false) => Ok(self),
            (Role::Admin, true) => Ok(KeyRights { scope: WorkScope::everything(), ..self }),
            (Role::Viewer | Role::Operator | Role::Author, true) => Ok(self),
            (_, false) => {
                let field = if self.scope.services.is_empty() { "queues" } else { "services" };
                let reason =
                    format!("it has no effect for the role `{role}`: leave it out, or take the role worker");
                Err((field, reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_without_effect_is_refused() {
        let services = || WorkScope { services: BTreeSet::from(["tts".to_owned()]), ..WorkScope::default() };
        let queues = || WorkScope { queues: BTreeSet::from(["q".to_owned()]), ..WorkScope::default() };
        for role in Role::ALL {
            let field = |rights: KeyRights| rights.checked().map_or_else(|(field, _)| field, |_| "");
            let scoped = |scope| KeyRights { scope, ..KeyRights::of(role) };
            let is_worker = role == Role::Worker;
            assert_eq!(field(KeyRights::of(role)), if is_worker { "services" } else { "" });
            assert_eq!(field(scoped(services())), if is_worker { "" } else { "services" });
            assert_eq!(field(scoped(queues())), if is_worker { "" } else { "queues" });
            let scripts = KeyRights { may_script: true, ..KeyRights::of(role) };
            let may = matches!(role, Role::Author | Role::Admin);
            assert_eq!(field(scripts), if may { "" } else { "scripts" });
        }
        assert!(KeyRights::of(Role::Admin).checked().unwrap().scope.is_everything());
        assert!(KeyRights::of(Role::Author).checked().unwrap().scope.is_empty());
    }

    #[test]
    fn a_scope_allows_what_it_names() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let scope = WorkScope { services: names(&["tts"]), queues: names(&["*"]) };
        assert!(scope.has_service("tts") && !scope.has_service("*") && !scope.has_service("ttsx"));
        assert!(scope.has_queue("mail") && !scope.is_everything() && !scope.is_empty());
        let none = WorkScope::default();
        assert!(none.is_empty() && !none.has_service("tts") && !none.has_queue(""));
        assert!(WorkScope::everything().is_everything());
    }

    #[test]
    fn only_the_owner_of_a_key_learns_that_it_expired() {
        let now = Timestamp(10);
        let term = |expires_at, revoked_at| KeyTerm {
            expires_at: Option::map(expires_at, Timestamp),
            revoked_at: Option::map(revoked_at, Timestamp),
        };
        assert_eq!(term(None, None).check(true, now), Ok(()));
        assert_eq!(term(Some(11), None).check(true, now), Ok(()));
        assert_eq!(term(Some(10), None).check(true, now), Err(KeyFault::Expired));
        assert_eq!(term(Some(10), None).check(false, now), Err(KeyFault::Unproven));
        assert_eq!(term(None, Some(99)).check(true, now), Err(KeyFault::Unproven));
        assert_eq!(term(Some(1), Some(9)).check(true, now), Err(KeyFault::Unproven));
    }
}
