//! Hints for fields that other tools have and this form spells in another way. The reader asks for one when it meets an
//! unknown field; words that differ only by a slip get theirs from `did_you_mean`.

/// A word of another tool, the field that stands here instead, and the hint.
const NEAR_MISSES: [(&[&str], &str, &str); 19] = [
    (RETRY, "retry", "did you mean `retry`? for example `\"retry\": {\"max\": 3, \"delay_ms\": 1000}`"),
    (RETRY, "max_retries", "did you mean `max_retries`? it counts the tries after the first"),
    (RETRY, "max", "did you mean `max`? it counts the tries after the first"),
    (TIMEOUT, "timeout_ms", "did you mean `timeout_ms`? it is in milliseconds"),
    (TIMEOUT, "timeout", "did you mean `timeout`?"),
    (DELAY, "delay_ms", "did you mean `delay_ms`? it is in milliseconds"),
    (DELAY, "wait_ms", "did you mean `wait_ms`? it is in milliseconds"),
    (NEEDS, "position", "nodes name no others: add `{\"source\": …, \"target\": …}` to `edges`"),
    (NEEDS, "kind", "nodes name no others: add `{\"from\": …, \"to\": …}` to `edges`"),
    (NEEDS, "operator", "steps run one after the other: put this one after those that it needs"),
    (&["from", "start", "src"], "source", "did you mean `source`?"),
    (&["to", "end", "dest", "destination"], "target", "did you mean `target`?"),
    (&["source", "src"], "from", "did you mean `from`?"),
    (&["target", "dest", "destination"], "to", "did you mean `to`?"),
    (&["if", "when", "expr", "expression"], "condition", "did you mean `condition`?"),
    (&["kind", "uses", "service", "action", "operator"], "type", "did you mean `type`?"),
    (&["type", "uses", "operator"], "kind", "did you mean `kind`?"),
    (&["type", "kind", "uses", "service"], "operator", "did you mean `operator`?"),
    (&["params", "parameters", "with", "inputs", "settings"], "config", "did you mean `config`?"),
];

const RETRY: &[&str] = &["retries", "retry_count", "max_retry", "attempts", "max_attempts", "tries", "retry"];
const TIMEOUT: &[&str] =
    &["timeout", "timeout_s", "timeout_sec", "timeout_seconds", "timeoutSeconds", "time_limit"];
const DELAY: &[&str] = &["delay", "delay_s", "delay_seconds", "interval", "wait", "backoff_ms"];
const NEEDS: &[&str] = &["needs", "depends_on", "dependsOn", "dependencies", "requires", "after", "next"];

/// The hint for an unknown field of an object whose fields are `known`.
pub(super) fn of_field(key: &str, known: &[&str]) -> Option<String> {
    let fits = |(words, field, _): &&(&[&str], &str, &str)| words.contains(&key) && known.contains(field);
    NEAR_MISSES.iter().find(fits).map(|(_, _, hint)| (*hint).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_names_a_field_that_is_allowed_there() {
        let hint = |key, known: &[&str]| of_field(key, known).unwrap_or_default();
        assert!(hint("retries", &["retry", "timeout_ms"]).contains("`retry`"));
        assert!(hint("retries", &["max_retries"]).contains("`max_retries`"));
        assert!(hint("timeout", &["timeout_ms"]).contains("milliseconds"));
        assert!(hint("needs", &["id", "position"]).contains("`edges`"));
        assert_eq!(hint("from", &["source", "target"]), "did you mean `source`?");
        assert_eq!(hint("to", &["source", "target"]), "did you mean `target`?");
        assert_eq!(of_field("retries", &["title"]), None);
        assert_eq!(of_field("colour", &["retry", "source", "type"]), None);
    }
}
