//! The cost of calls. Amounts are whole minor units (cents, fen): there is no fraction anywhere.
//!
//! A definition may set the cost of a node (`Cost`), a service may have a price (`Price`); the node wins.
//! Postings to accounts are in `ledger`.

mod amount;
mod bill;
mod key;
pub mod ledger;
mod price;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::reference::{Facts, Template};

pub use amount::Amount;
pub use bill::{Bill, Reserve};
pub use key::{charge_key, job_charge_key, job_of_key, node_of_key, place_of_key};
pub use ledger::{Account, AccountLedger, LedgerFault, Movement, MovementKind, Posted, Settlement, settle};

/// The cost of a call in its definition.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    pub estimate: Template,
    /// The real cost, from its result; absent = the estimate.
    pub actual: Option<Template>,
}

/// The price of a service: an amount per unit, for at least so many units.
///
/// Kept as written, so that a run can carry the prices it started with in its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub unit_price: Amount,
    pub min_unit: i64,
    /// How many units a call will take, from its params or input; missing = `min_unit`.
    #[serde(default)]
    pub units: Value,
    /// How many it took, from its result; absent or missing = as many as estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_units: Option<Value>,
}

/// Why no amount could be computed; `what` names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoneyFault {
    #[error("`{what}` is missing: it must resolve to a whole number of minor units")]
    Missing { what: &'static str },
    #[error("`{what}` is {found}: it must be a whole number of at least 0")]
    NotANumber { what: &'static str, found: &'static str },
    #[error("`{what}` is {value}: amounts and units have no fractions, round it where it is computed")]
    Fractional { what: &'static str, value: String },
    #[error("`{what}` is {value}: it must be at least 0")]
    Negative { what: &'static str, value: String },
    #[error("`{what}` is too large to be an amount")]
    Overflow { what: &'static str },
}

/// The estimated cost of a call; `None` when it is free.
pub fn estimate(
    cost: Option<&Cost>,
    price: Option<&Price>,
    facts: &dyn Facts,
) -> Result<Option<Amount>, MoneyFault> {
    let asked = asked(cost, price).map(|asked| charged(cost, price, &asked.resolve(facts)));
    asked.transpose()
}

/// The base of a charge: the amount itself, or the units; `None` when the call is free.
pub(crate) fn asked<'c>(cost: Option<&'c Cost>, price: Option<&Price>) -> Option<Cow<'c, Template>> {
    match cost {
        Some(cost) => Some(Cow::Borrowed(&cost.estimate)),
        None => price.map(|price| Cow::Owned(units_of(&price.units))),
    }
}

/// The charge of a call with this base.
pub(crate) fn charged(
    cost: Option<&Cost>,
    price: Option<&Price>,
    asked: &Value,
) -> Result<Amount, MoneyFault> {
    const WHAT: &str = "cost.estimate";
    match (cost, price) {
        (None, Some(price)) => price.amount("price.units", asked),
        // A reference that leads nowhere must not make a call free.
        (Some(_), _) | (None, None) => {
            whole(WHAT, asked)?.map(Amount).ok_or(MoneyFault::Missing { what: WHAT })
        }
    }
}

/// The charge of a call if it is the same for all inputs; `None` when it depends on them, or the call is free.
pub(crate) fn fixed(cost: Option<&Cost>, price: Option<&Price>) -> Option<Amount> {
    match (cost, price) {
        (Some(Cost { estimate: Template::Literal(amount), .. }), _) => {
            whole("cost.estimate", amount).ok()?.map(Amount)
        }
        (None, Some(price)) if !price.units.is_string() => price.amount("price.units", &price.units).ok(),
        (Some(_), _) | (None, _) => None,
    }
}

/// Whether the cost of a call always equals its charge.
pub(crate) fn is_settled_as_charged(cost: Option<&Cost>, price: Option<&Price>) -> bool {
    match cost {
        Some(cost) => cost.actual.is_none(),
        None => price.is_none_or(|price| price.actual_units.is_none()),
    }
}

/// The real cost of a call, from facts that include its result; the estimate where they say nothing.
pub fn actual(
    cost: Option<&Cost>,
    price: Option<&Price>,
    facts: &dyn Facts,
    estimate: Amount,
) -> Result<Amount, MoneyFault> {
    if let Some(cost) = cost {
        let Some(actual) = &cost.actual else { return Ok(estimate) };
        return Ok(whole("cost.actual", &actual.resolve(facts))?.map_or(estimate, Amount));
    }
    let Some((price, units)) = price.and_then(|price| Some((price, price.actual_units.as_ref()?))) else {
        return Ok(estimate);
    };
    match units_of(units).resolve(facts) {
        Value::Null => Ok(estimate),
        units => price.amount("price.actual_units", &units),
    }
}

impl Price {
    /// `unit_price × max(units, min_unit)`.
    fn amount(&self, what: &'static str, units: &Value) -> Result<Amount, MoneyFault> {
        for (what, n) in [("price.unit_price", self.unit_price.0), ("price.min_unit", self.min_unit)] {
            if n < 0 {
                return Err(MoneyFault::Negative { what, value: n.to_string() });
            }
        }
        let units = whole(what, units)?.unwrap_or(0).max(self.min_unit);
        self.unit_price.checked_mul(units).ok_or(MoneyFault::Overflow { what })
    }
}

/// The whole number in `value`, also when it is written as text or as `3.0`; `None` for null.
fn whole(what: &'static str, value: &Value) -> Result<Option<i64>, MoneyFault> {
    let text = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_owned(),
        Value::Bool(_) => return Err(MoneyFault::NotANumber { what, found: "a boolean" }),
        Value::Array(_) => return Err(MoneyFault::NotANumber { what, found: "an array" }),
        Value::Object(_) => return Err(MoneyFault::NotANumber { what, found: "an object" }),
    };
    if let Ok(n) = text.parse::<i64>() {
        return if n < 0 { Err(MoneyFault::Negative { what, value: text }) } else { Ok(Some(n)) };
    }
    let float: f64 = text.parse().map_err(|_| MoneyFault::NotANumber { what, found: "not a number" })?;
    // Floats are exact up to here; above it, an amount would be rounded silently.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if float.is_nan() {
        Err(MoneyFault::NotANumber { what, found: "not a number" })
    } else if float < 0.0 {
        Err(MoneyFault::Negative { what, value: text.chars().take(40).collect() })
    } else if float > EXACT {
        Err(MoneyFault::Overflow { what })
    } else if float.fract() != 0.0 {
        Err(MoneyFault::Fractional { what, value: text.chars().take(40).collect() })
    } else {
        #[allow(clippy::cast_possible_truncation)]
        Ok(Some(float as i64))
    }
}

/// The value of a price's field: a number, or a reference such as `$params.seconds`.
fn units_of(written: &Value) -> Template {
    Template::from_dag(written).unwrap_or(Template::Literal(Value::Null))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::reference::Root;

    /// One value under every root.
    struct One(Value);

    impl Facts for One {
        fn root(&self, _: &Root) -> Option<Cow<'_, Value>> {
            Some(Cow::Borrowed(&self.0))
        }

        fn field(&self, _: &Root, key: &str) -> Option<Cow<'_, Value>> {
            self.0.get(key).map(Cow::Borrowed)
        }
    }

    fn at(path: &str) -> Template {
        Template::from_dag(&json!(format!("$params.{path}"))).unwrap()
    }

    fn per_second() -> Price {
        Price {
            unit_price: Amount(7),
            min_unit: 5,
            units: json!("$params.seconds"),
            actual_units: Some(json!("$params.used.seconds")),
        }
    }

    fn priced(facts: Value) -> Result<Option<Amount>, MoneyFault> {
        estimate(None, Some(&per_second()), &One(facts))
    }

    #[test]
    fn units_are_counted_from_the_least_that_is_sold() {
        assert_eq!(priced(json!({"seconds": 10})), Ok(Some(Amount(70))));
        assert_eq!(priced(json!({"seconds": "10"})), Ok(Some(Amount(70))));
        assert_eq!(priced(json!({"seconds": 10.0})), Ok(Some(Amount(70))));
        assert_eq!(priced(json!({"seconds": 2})), Ok(Some(Amount(35))));
        assert_eq!(priced(json!({"seconds": null})), Ok(Some(Amount(35))));
        assert_eq!(priced(json!({})), Ok(Some(Amount(35))));
    }

    #[test]
    fn malformed_amounts_are_refused_by_name() {
        let what = "price.units";
        let fraction = MoneyFault::Fractional { what, value: "2.5".to_owned() };
        assert_eq!(priced(json!({"seconds": 2.5})), Err(fraction));
        assert_eq!(
            priced(json!({"seconds": -1})),
            Err(MoneyFault::Negative { what, value: "-1".to_owned() })
        );
        assert_eq!(priced(json!({"seconds": i64::MAX})), Err(MoneyFault::Overflow { what }));
        assert_eq!(priced(json!({"seconds": u64::MAX})), Err(MoneyFault::Overflow { what }));
        assert_eq!(priced(json!({"seconds": 1e300})), Err(MoneyFault::Overflow { what }));
        assert_eq!(priced(json!({"seconds": [1]})), Err(MoneyFault::NotANumber { what, found: "an array" }));
        for text in ["ten", "", "NaN", "0x10"] {
            assert!(matches!(priced(json!({"seconds": text})), Err(MoneyFault::NotANumber { .. })), "{text}");
        }
        let price = Price { unit_price: Amount(-1), ..per_second() };
        assert!(
            estimate(None, Some(&price), &One(json!({}))).unwrap_err().to_string().contains("unit_price")
        );
    }

    #[test]
    fn the_node_wins_over_the_service() {
        let cost = Cost { estimate: Template::Literal(json!(30)), actual: Some(at("cost")) };
        let facts = One(json!({"seconds": 10, "used": {"seconds": 8}, "cost": 21}));
        assert_eq!(estimate(Some(&cost), Some(&per_second()), &facts), Ok(Some(Amount(30))));
        assert_eq!(actual(Some(&cost), Some(&per_second()), &facts, Amount(30)), Ok(Amount(21)));
        assert_eq!(estimate(None, Some(&per_second()), &facts), Ok(Some(Amount(70))));
        assert_eq!(actual(None, Some(&per_second()), &facts, Amount(70)), Ok(Amount(56)));
        assert_eq!(estimate(None, None, &facts), Ok(None));
    }

    #[test]
    fn a_missing_actual_is_the_estimate_but_a_missing_estimate_is_a_fault() {
        let facts = One(json!({}));
        let cost = Cost { estimate: at("nowhere"), actual: Some(at("nowhere")) };
        assert_eq!(estimate(Some(&cost), None, &facts), Err(MoneyFault::Missing { what: "cost.estimate" }));
        assert_eq!(actual(Some(&cost), None, &facts, Amount(30)), Ok(Amount(30)));
        assert_eq!(actual(None, Some(&per_second()), &facts, Amount(30)), Ok(Amount(30)));
        assert_eq!(actual(None, None, &facts, Amount(30)), Ok(Amount(30)));
    }

    proptest! {
        #[test]
        fn an_amount_is_never_negative(unit_price in any::<i64>(), min_unit in any::<i64>(), units in any::<f64>()) {
            let price = Price { unit_price: Amount(unit_price), min_unit, units: json!(units), actual_units: None };
            if let Ok(Some(amount)) = estimate(None, Some(&price), &One(Value::Null)) {
                prop_assert!(amount >= Amount::ZERO);
            }
        }
    }
}
