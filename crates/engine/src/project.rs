//! The name of a project: the tenant that flows, runs, jobs, queues, workers and accounts belong to. Every verb of the
//! store takes one, and rows of one project are never seen from another.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of the project that is used where no other is named.
const DEFAULT_NAME: &str = "default";

/// The length of the longest name, in bytes.
pub const PROJECT_NAME_MAX: usize = 64;

/// A project's name: 1 to 64 lowercase letters, digits, `_` and `-`. Cloning it is cheap.
// `None` stands for the default name, so that the default is a constant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Project(Option<Arc<str>>);

/// The text is not a name of a project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a project name: use 1 to 64 lowercase letters, digits, `_` and `-`")]
pub struct ProjectError(String);

impl Project {
    /// The project that everything belongs to unless another one is named.
    pub const DEFAULT: Project = Project(None);

    /// Reads a name.
    pub fn new(name: &str) -> Result<Self, ProjectError> {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        if name.is_empty() || name.len() > PROJECT_NAME_MAX || !name.bytes().all(is_allowed) {
            return Err(ProjectError(name.chars().take(80).collect()));
        }
        Ok(Project((name != DEFAULT_NAME).then(|| name.into())))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(DEFAULT_NAME)
    }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Project {
    type Err = ProjectError;

    fn from_str(name: &str) -> Result<Self, ProjectError> {
        Project::new(name)
    }
}

impl TryFrom<String> for Project {
    type Error = ProjectError;

    fn try_from(name: String) -> Result<Self, ProjectError> {
        Project::new(&name)
    }
}

impl From<Project> for String {
    fn from(project: Project) -> String {
        project.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_lowercase_letters_digits_underscores_and_hyphens_only() {
        for name in ["a", "default", "acme-2_b", &"x".repeat(64)] {
            assert_eq!(Project::new(name).unwrap().as_str(), name);
        }
        for name in ["", "A", "a:b", "a{b", "a}b", "a b", "ä", &"x".repeat(65)] {
            assert!(Project::new(name).is_err(), "{name}");
        }
    }

    #[test]
    fn the_default_is_the_same_however_it_was_made() {
        assert_eq!(Project::new("default").unwrap(), Project::DEFAULT);
        assert_eq!(Project::default(), Project::DEFAULT);
        assert_eq!(serde_json::to_string(&Project::DEFAULT).unwrap(), "\"default\"");
        assert!(serde_json::from_str::<Project>("\"a:b\"").is_err());
    }
}
