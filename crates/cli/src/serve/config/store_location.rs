//! The location of a store, as `--store` names it.

use std::fmt;
use std::path::PathBuf;

use windlass_store::StoreError;

/// The location of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StoreLocation {
    File(PathBuf),
    /// Deleted at the end.
    Temporary,
    Database(DatabaseUrl),
}

/// The URL of a database. It is shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DatabaseUrl(pub(crate) String);

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&windlass_store::postgres::shown(&self.0).unwrap_or_else(|_| "postgres".to_owned()))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::File(path) => write!(f, "sqlite:{}", path.display()),
            StoreLocation::Temporary => f.write_str("sqlite, in a temporary directory"),
            StoreLocation::Database(address) => address.fmt(f),
        }
    }
}

impl StoreLocation {
    /// Reads `sqlite:PATH` or `postgres://…`.
    pub(crate) fn parse(text: &str) -> Result<StoreLocation, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            let refused = |error: StoreError| match error {
                StoreError::Unavailable(reason) => reason.to_string(),
                other => other.to_string(),
            };
            windlass_store::postgres::shown(text).map_err(refused)?;
            return Ok(StoreLocation::Database(DatabaseUrl(text.to_owned())));
        }
        match text.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => {
                let path = path.strip_prefix("//").unwrap_or(path);
                Ok(StoreLocation::File(PathBuf::from(path)))
            }
            Some(_) | None => Err(format!(
                "`{text}` is no store: write sqlite:PATH, such as sqlite:windlass.db, or postgres://USER@HOST/DATABASE"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_a_file_or_a_database() {
        assert!(StoreLocation::parse("windlass.db").is_err() && StoreLocation::parse("sqlite:").is_err());
        assert_eq!(StoreLocation::parse("sqlite://a/b.db"), Ok(StoreLocation::File("a/b.db".into())));
    }

    #[test]
    fn the_url_of_a_database_is_shown_without_its_password() {
        let location = StoreLocation::parse("postgres://me:secret@db.example/work").unwrap();
        assert_eq!(location.to_string(), "postgres://db.example:5432/work");
        assert!(!format!("{location:?}").contains("secret"));
    }
}
