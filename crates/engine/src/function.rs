//! The functions that are built in: pure, so that the engine may call them wherever it decides.

use serde_json::{Map, Value, json};

use crate::number::Num;
use crate::params::Params;
use crate::text::{a_type, plain};

/// The result of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionOutcome {
    Done(Value),
    /// Not yet: call it again with `memo` after `recheck_ms`.
    Suspended {
        memo: Value,
        recheck_ms: u64,
    },
    Failed {
        message: String,
        retryable: bool,
    },
}

/// Parameters of a function, by name.
pub trait FunctionParams {
    fn get(&self, name: &str) -> Option<&Value>;
}

impl FunctionParams for Params {
    fn get(&self, name: &str) -> Option<&Value> {
        Params::get(self, name)
    }
}

impl FunctionParams for Map<String, Value> {
    fn get(&self, name: &str) -> Option<&Value> {
        Map::get(self, name)
    }
}

/// The names that [`call`] knows.
pub const NAMES: [&str; 10] =
    ["mul", "upper", "lower", "sum", "route", "log_result", "echo", "sleep", "fail", "transform"];

/// Calls a built-in function; `None` if there is none of that name. `memo` is the memo of its suspension.
pub fn call(
    name: &str,
    input: &Value,
    params: &dyn FunctionParams,
    memo: Option<&Value>,
) -> Option<FunctionOutcome> {
    let outcome = match name {
        "mul" => multiply(input, params),
        "upper" => text_of("upper", input, params).map(|text| text.to_uppercase().into()),
        "lower" => text_of("lower", input, params).map(|text| text.to_lowercase().into()),
        "sum" => sum(input),
        "route" => route(params),
        "log_result" | "echo" => Ok(input.clone()),
        "sleep" => return Some(sleep(input, params, memo)),
        "fail" => return Some(fail(params)),
        "transform" => transform(input, params),
        _ => return None,
    };
    Some(match outcome {
        Ok(value) => FunctionOutcome::Done(value),
        Err(message) => mistake(message),
    })
}

/// A failure that comes again however often it is tried.
fn mistake(message: String) -> FunctionOutcome {
    FunctionOutcome::Failed { message, retryable: false }
}

fn multiply(input: &Value, params: &dyn FunctionParams) -> Result<Value, String> {
    let Value::Number(number) = input else {
        return Err(format!("mul needs a number as its input, not {}", a_type(input)));
    };
    let factor = match params.get("mul").or_else(|| params.get("by")) {
        Some(Value::Number(factor)) => factor,
        Some(other) => return Err(format!("mul needs a number in params.mul, not {}", a_type(other))),
        None => return Err("mul needs a number in params.mul (or params.by)".to_owned()),
    };
    let product = match (Num::of(number), Num::of(factor)) {
        // Two 64-bit numbers, signed or not, have a product of less than 2^128, which may exceed 2^127.
        (Num::Int(a), Num::Int(b)) => a.checked_mul(b).map_or(Num::Float(a as f64 * b as f64), Num::Int),
        (a, b) => Num::Float(a.to_float() * b.to_float()),
    };
    product.to_json().ok_or_else(|| "the product is too large for a number".to_owned())
}

fn sum(input: &Value) -> Result<Value, String> {
    let Value::Array(items) = input else {
        return Err(format!("sum needs an array of numbers as its input, not {}", a_type(input)));
    };
    let mut total = Num::Int(0);
    for (index, item) in items.iter().enumerate() {
        let Value::Number(number) = item else {
            return Err(format!("sum needs numbers, but item {index} of its input is {}", a_type(item)));
        };
        total = match (total, Num::of(number)) {
            (Num::Int(a), Num::Int(b)) => a.checked_add(b).map_or(Num::Float(a as f64 + b as f64), Num::Int),
            (a, b) => Num::Float(a.to_float() + b.to_float()),
        };
    }
    total.to_json().ok_or_else(|| "the sum is too large for a number".to_owned())
}

/// The input; without one, `params.text`.
fn text_of<'a>(name: &str, input: &'a Value, params: &'a dyn FunctionParams) -> Result<&'a str, String> {
    let input = if input.is_null() { params.get("text").unwrap_or(input) } else { input };
    input.as_str().ok_or_else(|| format!("{name} needs a string as its input, not {}", a_type(input)))
}

fn route(params: &dyn FunctionParams) -> Result<Value, String> {
    match params.get("action") {
        Some(action @ Value::String(_)) => Ok(json!({ "action": action })),
        Some(other) => Err(format!("route needs a string in params.action, not {}", a_type(other))),
        None => Err("route needs a string in params.action".to_owned()),
    }
}

fn sleep(input: &Value, params: &dyn FunctionParams, memo: Option<&Value>) -> FunctionOutcome {
    if memo.is_some() {
        return FunctionOutcome::Done(input.clone());
    }
    match params.get("ms").map(|ms| (ms.as_u64(), ms)) {
        Some((Some(recheck_ms), _)) => {
            FunctionOutcome::Suspended { memo: json!({ "slept_ms": recheck_ms }), recheck_ms }
        }
        Some((None, Value::Number(ms))) => {
            mistake(format!("sleep needs a whole number from 0 in params.ms, not {ms}"))
        }
        Some((None, other)) => mistake(format!("sleep needs a number in params.ms, not {}", a_type(other))),
        None => mistake("sleep needs a number in params.ms".to_owned()),
    }
}

fn fail(params: &dyn FunctionParams) -> FunctionOutcome {
    let message = params.get("message").map(plain).filter(|text| !text.is_empty());
    let retryable = params.get("retryable").and_then(Value::as_bool).unwrap_or(true);
    FunctionOutcome::Failed {
        message: message.map_or("failed as asked".to_owned(), |text| text.into_owned()),
        retryable,
    }
}

/// Functions of the standard worker: changes the case of text, multiplies numbers.
fn transform(input: &Value, params: &dyn FunctionParams) -> Result<Value, String> {
    match input {
        Value::Number(_) => multiply(input, params).map_err(|reason| format!("transform: {reason}")),
        Value::String(text) => match params.get("op").and_then(Value::as_str) {
            Some("upper") => Ok(text.to_uppercase().into()),
            Some("lower") => Ok(text.to_lowercase().into()),
            Some(other) => Err(format!(
                "transform knows no op `{}`: upper and lower are known",
                crate::text::excerpt(other)
            )),
            None => Err("transform of a string needs params.op: upper or lower".to_owned()),
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            Err(format!("transform needs a string or a number as its input, not {}", a_type(input)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn run(name: &str, input: Value, params: Value) -> FunctionOutcome {
        call(name, &input, params.as_object().unwrap(), None).unwrap()
    }

    #[track_caller]
    fn check(name: &str, input: Value, params: Value, expected: Value) {
        assert_eq!(run(name, input, params), FunctionOutcome::Done(expected), "{name}");
    }

    #[track_caller]
    fn refused(name: &str, input: Value, params: Value, part: &str) {
        match run(name, input, params) {
            FunctionOutcome::Failed { message, retryable: false } => {
                assert!(message.contains(part), "{message}")
            }
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn text_comes_from_the_params_where_there_is_no_input() {
        check("upper", Value::Null, json!({"text": "loud"}), json!("LOUD"));
        check("lower", Value::Null, json!({"text": "CALM"}), json!("calm"));
        check("upper", json!("input"), json!({"text": "params"}), json!("INPUT"));
        refused("upper", Value::Null, json!({}), "not null");
        refused("upper", Value::Null, json!({"text": 3}), "not a number");
    }

    #[test]
    fn numbers_are_multiplied_and_integers_stay_integers() {
        check("mul", json!(6), json!({"mul": 7}), json!(42));
        check("mul", json!(6), json!({"by": 0.5}), json!(3.0));
        check("mul", json!(i64::MAX), json!({"mul": 2}), json!(18_446_744_073_709_551_614_u64));
        check("mul", json!(u64::MAX), json!({"mul": u64::MAX}), json!(u64::MAX as f64 * u64::MAX as f64));
        refused("mul", json!("6"), json!({"mul": 7}), "not a string");
        refused("mul", json!(6), json!({}), "params.mul");
        refused("mul", json!(1e308), json!({"mul": 1e308}), "too large");
    }

    #[test]
    fn sums_name_what_is_no_number() {
        check("sum", json!([1, 2, 3]), json!({}), json!(6));
        check("sum", json!([]), json!({}), json!(0));
        check("sum", json!([1, 0.5]), json!({}), json!(1.5));
        check("sum", json!([u64::MAX, u64::MAX]), json!({}), json!(u64::MAX as f64 * 2.0));
        refused("sum", json!([1, "x"]), json!({}), "item 1 of its input is a string");
        refused("sum", json!({"a": 1}), json!({}), "not an object");
    }

    #[test]
    fn text_changes_case() {
        check("upper", json!("größe"), json!({}), json!("GRÖSSE"));
        check("lower", json!("ABC"), json!({}), json!("abc"));
        check("transform", json!("ab"), json!({"op": "upper"}), json!("AB"));
        check("transform", json!(4), json!({"mul": 3}), json!(12));
        refused("upper", json!(null), json!({}), "not null");
        refused("transform", json!("a"), json!({"op": "title"}), "no op `title`");
        refused("transform", json!([]), json!({}), "not an array");
    }

    #[test]
    fn a_sleeper_wakes_when_asked_again() {
        let FunctionOutcome::Suspended { memo, recheck_ms: 250 } =
            run("sleep", json!("in"), json!({"ms": 250}))
        else {
            panic!("it did not sleep");
        };
        let again = call("sleep", &json!("in"), json!({"ms": 250}).as_object().unwrap(), Some(&memo));
        assert_eq!(again, Some(FunctionOutcome::Done(json!("in"))));
        refused("sleep", json!(1), json!({"ms": -1}), "whole number from 0");
        refused("sleep", json!(1), json!({}), "params.ms");
    }

    #[test]
    fn the_others_do_what_they_are_told() {
        check("echo", json!([1]), json!({}), json!([1]));
        check("log_result", json!("x"), json!({}), json!("x"));
        check("route", json!(null), json!({"action": "left"}), json!({"action": "left"}));
        refused("route", json!(null), json!({"action": 1}), "not a number");
        let failed =
            |message: &str, retryable| FunctionOutcome::Failed { message: message.to_owned(), retryable };
        assert_eq!(run("fail", json!(1), json!({"message": "no"})), failed("no", true));
        assert_eq!(run("fail", json!(1), json!({"retryable": false})), failed("failed as asked", false));
        assert_eq!(call("unknown", &json!(1), &Params::default(), None), None);
        assert!(NAMES.iter().all(|name| call(name, &json!(1), &Params::default(), None).is_some()));
    }

    proptest! {
        #[test]
        fn sums_of_integers_are_exact(items in prop::collection::vec(-1_000_000_000_i64..1_000_000_000, 0..50)) {
            let total: i64 = items.iter().sum();
            prop_assert_eq!(run("sum", json!(items), json!({})), FunctionOutcome::Done(json!(total)));
        }
    }
}
