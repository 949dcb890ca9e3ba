//! Numbers as definitions compare them: integers exactly, also beyond the range of floats.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// A JSON number: whole ones exactly.
#[derive(Debug, Clone, Copy)]
pub enum Num {
    Int(i128),
    Float(f64),
}

impl Num {
    /// Reads a JSON number.
    pub fn of(number: &Number) -> Num {
        let whole = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
        // Without arbitrary precision every JSON number is one of the three.
        whole.map_or_else(|| Num::Float(number.as_f64().unwrap_or(f64::NAN)), Num::Int)
    }

    /// Reads decimal text such as `-12` or `3.50`. Exponents are not numbers here: two identifiers such as `0e1` and
    /// `0e2` must not be equal. Neither are integers too long to be compared exactly.
    pub fn parse(text: &str) -> Option<Num> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if text.len() > 48 || !all_digits(whole) || !all_digits(fraction) {
            return None;
        }
        match digits.contains('.') {
            false => text.parse().ok().map(Num::Int),
            true => text.parse().ok().map(Num::Float),
        }
    }

    /// Reads a number, or a string that is one.
    pub fn lenient(value: &Value) -> Option<Num> {
        match value {
            Value::Number(number) => Some(Num::of(number)),
            Value::String(text) => Num::parse(text),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// A length of time in milliseconds, from a number or a string that is one, in units of `unit_ms`; a fraction is
    /// rounded up, because nothing may happen early. `None` if it is negative or too long for a time.
    pub fn duration_ms(value: &Value, unit_ms: u32) -> Option<u64> {
        match Num::lenient(value)? {
            Num::Int(n) => u64::try_from(n).ok()?.checked_mul(u64::from(unit_ms)),
            Num::Float(f) => {
                let ms = (f * f64::from(unit_ms)).ceil();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked to be in range"
                )]
                (f >= 0.0 && ms <= 9e15).then_some(ms as u64)
            }
        }
    }

    /// Orders two numbers by value, not by notation.
    pub fn compare(self, other: Num) -> Option<Ordering> {
        match (self, other) {
            (Num::Int(a), Num::Int(b)) => Some(a.cmp(&b)),
            (Num::Float(a), Num::Float(b)) => a.partial_cmp(&b),
            (Num::Int(a), Num::Float(b)) => whole_with_float(a, b),
            (Num::Float(a), Num::Int(b)) => whole_with_float(b, a).map(Ordering::reverse),
        }
    }

    /// Writes the number as JSON: whole where it fits 64 bits, else a float; `None` if it is not finite.
    pub fn to_json(self) -> Option<Value> {
        let float = match self {
            Num::Int(n) => {
                let whole = i64::try_from(n).map(Value::from).or_else(|_| u64::try_from(n).map(Value::from));
                match whole {
                    Ok(value) => return Some(value),
                    Err(_) => n as f64,
                }
            }
            Num::Float(f) => f,
        };
        Number::from_f64(float).map(Value::Number)
    }

    pub fn to_float(self) -> f64 {
        match self {
            Num::Int(n) => n as f64,
            Num::Float(f) => f,
        }
    }
}

fn whole_with_float(a: i128, b: f64) -> Option<Ordering> {
    // 2^127: beyond it every float is larger than every integer here.
    const EDGE: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0;
    if b.is_nan() {
        return None;
    }
    if b >= EDGE {
        return Some(Ordering::Less);
    }
    if b < -EDGE {
        return Some(Ordering::Greater);
    }
    match a.cmp(&(b.trunc() as i128)) {
        Ordering::Equal => 0.0.partial_cmp(&b.fract()),
        unequal => Some(unequal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(a: &str, b: &str) -> Option<Ordering> {
        Num::parse(a).unwrap().compare(Num::parse(b).unwrap())
    }

    #[test]
    fn integers_beyond_floats_are_told_apart() {
        assert_eq!(order("9007199254740993", "9007199254740992"), Some(Ordering::Greater));
        assert_eq!(order("9007199254740993", "9007199254740992.0"), Some(Ordering::Greater));
        assert_eq!(order("18446744073709551615", "18446744073709551614"), Some(Ordering::Greater));
        assert_eq!(order("7", "7.0"), Some(Ordering::Equal));
        assert_eq!(order("-7", "-7.5"), Some(Ordering::Greater));
        assert_eq!(Num::Int(i128::MAX).compare(Num::Float(f64::INFINITY)), Some(Ordering::Less));
        assert_eq!(Num::Int(i128::MIN).compare(Num::Float(f64::NEG_INFINITY)), Some(Ordering::Greater));
        assert_eq!(Num::Int(0).compare(Num::Float(f64::NAN)), None);
    }

    #[test]
    fn only_plain_decimals_are_numeric_text() {
        for text in ["", "-", ".5", "5.", "1e3", "0x1", "inf", "NaN", " 1", "1_000", "1.2.3", "+-1"] {
            assert!(Num::parse(text).is_none(), "{text}");
        }
        assert!(Num::parse(&"9".repeat(45)).is_none());
        assert!(Num::parse("+1").is_some());
    }

    proptest! {
        #[test]
        fn order_is_the_same_from_both_sides(a: i64, b: f64) {
            let (a, b) = (Num::Int(a.into()), Num::Float(b));
            prop_assert_eq!(a.compare(b), b.compare(a).map(Ordering::reverse));
        }

        #[test]
        fn a_whole_float_equals_its_integer(n in -(1i64 << 53)..(1i64 << 53)) {
            prop_assert_eq!(Num::Int(n.into()).compare(Num::Float(n as f64)), Some(Ordering::Equal));
            prop_assert_eq!(Num::Int(n.into()).compare(Num::Float(n as f64 + 0.5)).is_some(), true);
        }
    }
}
