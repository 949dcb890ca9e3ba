//! Conditions: one type for all three forms. Each is total: it ends, never panics, and reads nothing
//! but the facts it is given.

pub mod cel;
pub mod json;
mod pattern;
pub mod steps;

use std::cell::Cell;

use crate::meter::Meter;
use crate::reference::{Facts, Ref};
use crate::text::{excerpt, json_excerpt};

/// Values that an explanation shows: a line of a log has to stay readable.
const VALUES_MAX: usize = 8;

/// A condition of any form.
#[derive(Debug, Clone)]
pub enum Condition {
    Always,
    /// The operator objects of the graph form.
    Json(json::JsonExpr),
    /// The expressions of the dag form.
    Cel(cel::CelExpr),
    /// The comparison lists of the steps form.
    Steps(steps::Test),
}

impl Condition {
    /// A short text for people: the label of an edge.
    pub fn summary(&self) -> String {
        match self {
            Condition::Always => String::new(),
            Condition::Json(_) => "if".to_owned(),
            Condition::Cel(expression) => expression.text().trim().to_owned(),
            Condition::Steps(test) => test.summary(),
        }
    }

    /// Whether it holds; `Err` is the reason why it could not be evaluated (which counts as false).
    pub fn holds(&self, facts: &dyn Facts, meter: &Meter) -> Result<bool, String> {
        match self {
            Condition::Always => Ok(true),
            Condition::Json(expr) => expr.holds(facts, meter),
            Condition::Cel(expr) => expr.holds(facts, meter),
            Condition::Steps(test) => test.holds(facts, meter),
        }
    }

    /// Why it does not hold, for people: its text, if it has one, and the values that it read.
    pub fn explain(&self, facts: &dyn Facts) -> String {
        let text = match self {
            Condition::Cel(expr) => format!("`{}` is false", excerpt(expr.text())),
            Condition::Always | Condition::Json(_) | Condition::Steps(_) => {
                "its condition is false".to_owned()
            }
        };
        let mut refs = self.refs();
        refs.sort();
        refs.dedup();
        let value = |reference: &&Ref| format!("{reference} = {}", json_excerpt(&reference.resolve(facts)));
        let values: Vec<String> = refs.iter().take(VALUES_MAX).map(value).collect();
        match (values.is_empty(), refs.len() > VALUES_MAX) {
            (true, _) => text,
            (false, false) => format!("{text} with {}", values.join(", ")),
            (false, true) => format!("{text} with {}, …", values.join(", ")),
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

/// The work of one evaluation. It ends with an error at its own bound, whatever the facts; its steps count for the
/// decision around it, too.
struct Effort<'m> {
    meter: &'m Meter,
    n_steps: Cell<usize>,
    most: usize,
}

impl<'m> Effort<'m> {
    fn new(meter: &'m Meter, most: usize) -> Self {
        Effort { meter, n_steps: Cell::new(0), most }
    }

    /// Counts steps that are about to be taken.
    fn spend(&self, steps: usize) -> Result<(), String> {
        self.n_steps.set(self.n_steps.get().saturating_add(steps));
        if self.n_steps.get() > self.most {
            return Err(format!("the evaluation takes more than {} steps: compare less data", self.most));
        }
        // The reason is not read: the whole decision is put back.
        self.meter.spend(steps).map_err(|_| "the evaluation is put off".to_owned())
    }
}

#[cfg(test)]
mod fixture {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// JSON of any shape, biased towards the operators of expressions.
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
    use crate::reference::fixture::TestFacts;
    use serde_json::json;

    #[test]
    fn conditions_of_all_forms_answer_the_same_way() {
        let world = TestFacts(json!({"shared": {"n": 7}}));
        let mut problems = crate::problem::Problems::default();
        let json = json::JsonExpr::parse(&json!({"gt": ["$shared.n", 5]}), "$", &mut problems).unwrap();
        let steps =
            json!([[{"operator": "@internal/cmp/number-gt", "parameters": {"a": "{{$var.n}}", "b": 5}}]]);
        let steps = steps::Test::parse(&steps, "$", &mut problems).unwrap();
        let cel = cel::CelExpr::parse("$var.n > 5").unwrap();
        for condition in [Condition::Json(json), Condition::Cel(cel), Condition::Steps(steps)] {
            assert_eq!(condition.holds(&world, &Meter::default()), Ok(true));
            assert_eq!(condition.refs().len(), 1);
        }
        assert_eq!(Condition::Always.holds(&world, &Meter::default()), Ok(true));
    }
}
