//! Validation of prices when they are set: a run that meets a wrong one later could only fail.

use serde_json::Value;

use super::{MoneyFault, Price, whole};
use crate::problem::{Problem, Problems};
use crate::reference::{Root, Template};
use crate::text::excerpt;

impl Price {
    /// Everything that is wrong with it, each with its field.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = Problems::default();
        for (path, n) in [("$.unit_price", self.unit_price.0), ("$.min_unit", self.min_unit)] {
            if n < 0 {
                problems.error(path, format!("{n} is negative: give a whole number of at least 0"));
            }
        }
        if self.unit_price.checked_mul(self.min_unit).is_none() {
            problems.error("$.min_unit", "so many units at this price are more than can be counted");
        }
        check(&mut problems, "$.units", &self.units, &[Root::Params, Root::Input]);
        let after = self.actual_units.as_ref().unwrap_or(&Value::Null);
        check(&mut problems, "$.actual_units", after, &[Root::Params, Root::Input, Root::Result]);
        problems.into_list()
    }
}

/// A number of units, or where it is found.
fn check(problems: &mut Problems, path: &str, written: &Value, roots: &[Root]) {
    let words: Vec<&str> = roots.iter().filter_map(spelled).collect();
    let remedy = format!("give a whole number, or a reference that begins with {}", words.join(" or "));
    match written {
        Value::Null => {}
        Value::Number(number) => match whole("units", written) {
            Ok(_) => {}
            Err(MoneyFault::Negative { .. }) => {
                problems.error(path, format!("{number} is negative: {remedy}"));
            }
            Err(MoneyFault::Fractional { .. }) => {
                problems.error(path, format!("{number} has a fraction: {remedy}"));
            }
            Err(MoneyFault::Missing { .. } | MoneyFault::NotANumber { .. } | MoneyFault::Overflow { .. }) => {
                problems.error(path, format!("{number} is more than can be counted: {remedy}"));
            }
        },
        Value::String(text) => match Template::from_dag(written) {
            Ok(Template::Ref(reference)) if roots.contains(&reference.root) => {}
            Ok(Template::Ref(_)) => {
                problems.error(path, format!("`{}` is nothing that a price knows: {remedy}", excerpt(text)));
            }
            Ok(Template::Literal(_) | Template::Text(_) | Template::Array(_) | Template::Object(_)) => {
                problems.error(path, format!("`{}` is no reference: {remedy}", excerpt(text)));
            }
            Err(reason) => problems.error(path, format!("{reason}: {remedy}")),
        },
        Value::Bool(_) => problems.error(path, format!("it is a boolean: {remedy}")),
        Value::Array(_) => problems.error(path, format!("it is an array: {remedy}")),
        Value::Object(_) => problems.error(path, format!("it is an object: {remedy}")),
    }
}

/// How a root that a price may know is written.
fn spelled(root: &Root) -> Option<&'static str> {
    match root {
        Root::Params => Some("`$params`"),
        Root::Input => Some("`$input`"),
        Root::Result => Some("`$result`"),
        Root::Shared | Root::Output(_) | Root::Error(_) | Root::Status(_) | Root::Anywhere => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::money::Amount;

    fn price(units: Value, actual_units: Option<Value>) -> Price {
        Price { unit_price: Amount(3), min_unit: 1, units, actual_units }
    }

    fn wrong(price: &Price) -> Vec<String> {
        price.problems().into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn numbers_and_references_that_a_price_knows_are_fine() {
        for units in [json!(null), json!(0), json!(5.0), json!("$params.a.b[0]"), json!("$input.seconds")] {
            assert!(wrong(&price(units.clone(), Some(units.clone()))).is_empty(), "{units}");
        }
        assert!(wrong(&price(json!(1), Some(json!("$result.usage.tokens")))).is_empty());
    }

    #[test]
    fn prices_that_would_fail_later_are_refused_with_their_place() {
        for units in [
            json!(-1),
            json!(1.5),
            json!(u64::MAX),
            json!(true),
            json!([1]),
            json!({"a": 1}),
            json!("ten"),
            json!("10"),
            json!(""),
            json!("$"),
            json!("$params.a[x]"),
            json!("$result.seconds"),
            json!("$shared.seconds"),
            json!("$var.seconds"),
            json!("$node.a.output"),
            json!("up to $params.a"),
        ] {
            assert_eq!(wrong(&price(units.clone(), None)), ["$.units"], "{units}");
        }
        assert_eq!(wrong(&price(json!(1), Some(json!("$node.a.output")))), ["$.actual_units"]);
        let negative = Price { unit_price: Amount(-1), min_unit: -2, ..price(json!(1), None) };
        assert_eq!(wrong(&negative), ["$.min_unit", "$.unit_price"]);
        let much = Price { unit_price: Amount::MAX, min_unit: 2, ..price(json!(1), None) };
        assert_eq!(wrong(&much), ["$.min_unit"]);
    }
}
