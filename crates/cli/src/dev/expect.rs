//! Comparison of the outcome of an example with the expected one.

use serde_json::Value;

use super::example::ExpectedOutcome;
use super::play::ExampleOutcome;

/// All differences from the expected outcome.
pub(super) fn differences(expect: &ExpectedOutcome, ending: &ExampleOutcome) -> Vec<String> {
    let mut found = ending.failures.clone();
    let status = expect.status.as_deref().unwrap_or("completed");
    if ending.status != status {
        found.push(format!("it is {} and should be {status}", ending.status));
    }
    if let Some(result) = &expect.result {
        compare("the result", Some(&ending.result), result, &mut found);
    }
    if let Some(part) = &expect.error
        && !ending.error.as_ref().is_some_and(|error| error.contains(part))
    {
        let error = ending.error.as_deref().unwrap_or("there is none");
        found.push(format!("the error should contain `{part}`: {error}"));
    }
    for (key, value) in &expect.shared {
        compare(&format!("shared `{key}`"), ending.shared.get(key), value, &mut found);
    }
    for (node, state) in &expect.nodes {
        let now = ending.nodes.get(node).map_or("nowhere", |node| node.status.as_str());
        if now != state {
            found.push(format!("node `{node}` is {now} and should be {state}"));
        }
    }
    for (node, value) in &expect.outputs {
        let now = ending.nodes.get(node).and_then(|node| node.output.as_ref());
        compare(&format!("the output of `{node}`"), now, value, &mut found);
    }
    found
}

fn compare(what: &str, now: Option<&Value>, wanted: &Value, found: &mut Vec<String>) {
    match now {
        Some(now) if now == wanted => {}
        Some(now) => found.push(format!("{what} is {now} and should be {wanted}")),
        None => found.push(format!("{what} is missing and should be {wanted}")),
    }
}
