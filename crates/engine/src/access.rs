//! Access control: roles, permissions and the table of both. The server decides about a request with the permission of
//! its route and the identity of its caller.

pub mod api_key;
pub mod identity;

use serde::{Deserialize, Serialize};

/// The right that a route requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Reads flows, runs, jobs, figures and everything else that is no secret.
    Read,
    /// Starts work and acts on it: start, signal, retry, rerun, cancel, replay, trigger, drain, pause.
    Run,
    /// Decides approvals.
    Decide,
    /// Does the work of a worker: register, claim, extend, finish, report.
    Work,
    /// Changes flows, schedules, prices, services, limits of queues, and opens accounts.
    Author,
    /// Manages keys, deposits, the audit and repairs.
    Admin,
}

impl Permission {
    /// Every permission.
    pub const ALL: [Permission; 6] = [
        Permission::Read,
        Permission::Run,
        Permission::Decide,
        Permission::Work,
        Permission::Author,
        Permission::Admin,
    ];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Permission::Read => "read",
            Permission::Run => "run",
            Permission::Decide => "decide",
            Permission::Work => "work",
            Permission::Author => "author",
            Permission::Admin => "admin",
        }
    }
}

/// A named set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Viewer,
    Operator,
    Worker,
    Author,
    Admin,
}

/// The permissions of each role. A role has nothing that this table does not name.
const TABLE: [(Role, &[Permission]); 5] = [
    (Role::Viewer, &[Permission::Read]),
    (Role::Operator, &[Permission::Read, Permission::Run, Permission::Decide]),
    (Role::Worker, &[Permission::Work]),
    (Role::Author, &[Permission::Read, Permission::Run, Permission::Decide, Permission::Author]),
    (Role::Admin, &Permission::ALL),
];

impl Role {
    /// Every role.
    pub const ALL: [Role; 5] = [Role::Viewer, Role::Operator, Role::Worker, Role::Author, Role::Admin];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Worker => "worker",
            Role::Author => "author",
            Role::Admin => "admin",
        }
    }

    /// The role with this word.
    pub fn from_word(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.word() == word)
    }

    /// Whether the role has the permission.
    pub fn has(self, permission: Permission) -> bool {
        TABLE.iter().any(|(role, permissions)| *role == self && permissions.contains(&permission))
    }

    /// The roles that have the permission.
    pub fn with(permission: Permission) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| role.has(permission))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_has_the_permissions_of_the_table() {
        let granted = |role: Role| {
            let has = Permission::ALL.into_iter().filter(|permission| role.has(*permission));
            has.map(Permission::word).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(granted(Role::Viewer), "read");
        assert_eq!(granted(Role::Operator), "read run decide");
        assert_eq!(granted(Role::Worker), "work");
        assert_eq!(granted(Role::Author), "read run decide author");
        assert_eq!(granted(Role::Admin), "read run decide work author admin");
    }

    #[test]
    fn words_of_roles_read_back_and_equal_their_json() {
        for role in Role::ALL {
            assert_eq!(Role::from_word(role.word()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.word());
        }
        for permission in Permission::ALL {
            assert_eq!(serde_json::to_value(permission).unwrap(), permission.word());
        }
        assert_eq!(Role::from_word("Admin"), None);
        assert_eq!(Role::from_word("root"), None);
    }

    #[test]
    fn a_permission_names_the_roles_that_have_it() {
        assert_eq!(Role::with(Permission::Work).collect::<Vec<_>>(), [Role::Worker, Role::Admin]);
        assert_eq!(Role::with(Permission::Admin).collect::<Vec<_>>(), [Role::Admin]);
    }
}
