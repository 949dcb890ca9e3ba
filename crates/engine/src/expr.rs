//! Conditions: one type for what the three forms write. Each is total: it ends, never panics, and reads nothing
//! but the facts it is given.

pub mod cel;
pub mod json;
mod pattern;
pub mod steps;

use crate::reference::{Facts, Ref};

/// A condition of any form.
#[derive(Debug, Clone)]
pub enum Condition {
    Always,
    /// The operator objects of the graph form.
    Json(json::Expr),
    /// The expressions of the dag form.
    Cel(cel::Expr),
    /// The comparison lists of the steps form.
    Steps(steps::Test),
}

impl Condition {
    /// Whether it holds; `Err` is the reason why it could not be evaluated (which counts as false).
    pub fn holds(&self, facts: &dyn Facts) -> Result<bool, String> {
        match self {
            Condition::Always => Ok(true),
            Condition::Json(expr) => Ok(expr.holds(facts)),
            Condition::Cel(expr) => expr.holds(facts),
            Condition::Steps(test) => test.holds(facts),
        }
    }

    /// The references it reads.
    pub fn refs(&self) -> Vec<&Ref> {
        match self {
            Condition::Always => Vec::new(),
            Condition::Json(expr) => expr.refs(),
            Condition::Cel(expr) => expr.refs(),
            Condition::Steps(test) => test.refs(),
        }
    }
}

#[cfg(test)]
mod fixture {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// JSON of any shape, with a taste for what expressions are made of.
    pub(super) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[0-9.+-]{0,4}".prop_map(Value::from),
            "\\PC{0,6}".prop_map(Value::from),
            prop::sample::select(vec!["$params.n", "$shared", "$node.a.output", "$x", "{{__a.b}}", "{{"])
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let key = prop::sample::select(vec![
                "and",
                "or",
                "not",
                "eq",
                "in",
                "exists",
                "operator",
                "parameters",
                "a",
                "b",
            ]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..3).prop_map(|fields| json!(fields)),
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::fixture::World;
    use serde_json::json;

    #[test]
    fn conditions_of_all_forms_answer_the_same_way() {
        let world = World(json!({"shared": {"n": 7}}));
        let mut problems = crate::problem::Problems::default();
        let json = json::Expr::parse(&json!({"gt": ["$shared.n", 5]}), "$", &mut problems).unwrap();
        let steps =
            json!([[{"operator": "@internal/cmp/number-gt", "parameters": {"a": "{{$var.n}}", "b": 5}}]]);
        let steps = steps::Test::parse(&steps, "$", &mut problems).unwrap();
        let cel = cel::Expr::parse("$var.n > 5").unwrap();
        for condition in [Condition::Json(json), Condition::Cel(cel), Condition::Steps(steps)] {
            assert_eq!(condition.holds(&world), Ok(true));
            assert_eq!(condition.refs().len(), 1);
        }
        assert_eq!(Condition::Always.holds(&world), Ok(true));
    }
}
