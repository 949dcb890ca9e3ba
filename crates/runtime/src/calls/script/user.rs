//! The user that scripts run as, if the server is root.

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

/// Where the system lists its users; users from elsewhere are given as numbers.
const USERS: &str = "/etc/passwd";

/// A user and its main group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptUser {
    pub uid: u32,
    pub gid: u32,
}

impl ScriptUser {
    /// Reads a name or `UID:GID`.
    pub fn parse(text: &str) -> Result<Self, String> {
        ScriptUser::find(text, &std::fs::read_to_string(USERS).unwrap_or_default())
    }

    fn find(text: &str, users: &str) -> Result<Self, String> {
        let numbers =
            |uid: &str, gid: &str| Some(ScriptUser { uid: uid.parse().ok()?, gid: gid.parse().ok()? });
        let listed = users.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            let _password = fields.next()?;
            let (uid, gid) = (fields.next()?, fields.next()?);
            if name == text { numbers(uid, gid) } else { None }
        });
        let given = || text.split_once(':').and_then(|(uid, gid)| numbers(uid, gid));
        let Some(user) = listed.or_else(given) else {
            return Err(format!("`{text}` is not a user of {USERS}: write the name of one, or UID:GID"));
        };
        if user.uid == 0 || user.gid == 0 {
            return Err(format!("`{text}` is root or in its group: name a user with fewer rights"));
        }
        Ok(user)
    }

    /// Why this process cannot start scripts as another user; `None` = it can.
    pub fn refusal() -> Option<&'static str> {
        let is_able = runs_as_root() && cfg!(target_os = "linux");
        (!is_able).then_some(
            "script_user: only root can run scripts as another user, on linux: start the server as root or leave the setting out",
        )
    }
}

/// Whether the limit on processes does not hold for scripts of this process: the system exempts root.
pub fn runs_as_root() -> bool {
    geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_named_or_numbered_and_never_root() {
        let users = "root:x:0:0:root:/r:/bin/sh\nann:x:1000:1001::/h:/bin/sh\nbroken\n";
        assert_eq!(ScriptUser::find("ann", users), Ok(ScriptUser { uid: 1000, gid: 1001 }));
        assert_eq!(ScriptUser::find("7:8", users), Ok(ScriptUser { uid: 7, gid: 8 }));
        for wrong in ["root", "0:5", "5:0", "bob", "7", "7:x", ""] {
            assert!(ScriptUser::find(wrong, users).is_err(), "{wrong}");
        }
    }
}
