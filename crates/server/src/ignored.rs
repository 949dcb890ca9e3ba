//! Fields of bodies that a surface ignores: each is named in a `Warning` header of the response.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;

use crate::warning::{WARNINGS_MAX, append_warning};

/// Characters of a name that are repeated.
const NAME_CHARS: usize = 80;

tokio::task_local! {
    static NOTED: IgnoredFields;
}

/// The unknown fields of one request, on the surface that ignores them.
#[derive(Clone, Default)]
pub(crate) struct IgnoredFields {
    names: Arc<Mutex<Vec<String>>>,
}

impl IgnoredFields {
    /// Those of the request that is being handled; `None` on surfaces that refuse unknown fields.
    pub(crate) fn current() -> Option<IgnoredFields> {
        NOTED.try_with(Clone::clone).ok()
    }

    /// Handles a request that may have some.
    pub(crate) async fn noted_in<F: Future>(&self, handling: F) -> F::Output {
        NOTED.scope(self.clone(), handling).await
    }

    /// The same for a part of the work on another thread.
    pub(crate) fn noted_by<T>(noted: Option<IgnoredFields>, work: impl FnOnce() -> T) -> T {
        match noted {
            Some(noted) => NOTED.sync_scope(noted, work),
            None => work(),
        }
    }

    /// Notes a field by its place, such as `$.task.prio`.
    pub(crate) fn note(&self, place: &str) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() < WARNINGS_MAX {
            names.push(place.trim_start_matches('$').trim_start_matches('.').to_owned());
        }
    }

    /// Names the fields in the headers of the response.
    pub(crate) fn warn(&self, headers: &mut HeaderMap) {
        for name in self.names.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let name: String = name.chars().take(NAME_CHARS).collect();
            append_warning(headers, &format!("unknown field {name}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::header::WARNING;

    use super::*;

    #[test]
    fn each_field_gets_a_header_of_its_own_and_a_strange_name_is_no_header_of_its_own() {
        let ignored = IgnoredFields::default();
        ["$.retries", "$.task.prio", "$[3].x", "$.a\"\r\nEvil: 1"]
            .into_iter()
            .for_each(|place| ignored.note(place));
        (0..1_000).for_each(|n| ignored.note(&format!("$.n{n}")));
        let mut headers = HeaderMap::new();
        ignored.warn(&mut headers);
        let told: Vec<&str> = headers.get_all(WARNING).iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(
            told[..4],
            [
                "299 windlass \"unknown field retries\"",
                "299 windlass \"unknown field task.prio\"",
                "299 windlass \"unknown field [3].x\"",
                "299 windlass \"unknown field a???Evil: 1\"",
            ]
        );
        assert_eq!(told.len(), WARNINGS_MAX);
    }

    #[tokio::test]
    async fn fields_are_noted_within_a_request_only() {
        assert!(IgnoredFields::current().is_none());
        let ignored = IgnoredFields::default();
        ignored.noted_in(async { IgnoredFields::current().unwrap().note("$.a") }).await;
        let noted = Some(ignored.clone());
        IgnoredFields::noted_by(noted, || IgnoredFields::current().unwrap().note("$.b"));
        assert_eq!(*ignored.names.lock().unwrap(), ["a", "b"]);
    }
}
