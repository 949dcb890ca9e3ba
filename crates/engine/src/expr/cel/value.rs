//! Operations of evaluation on single values: order, arithmetic, conversion, weight.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::Value;

use super::eval::Result;
use super::tree::{Conversion, Op};
use crate::number::Num;
use crate::reference::{Seg, descend};
use crate::text::{a_type, excerpt};

pub(super) fn pick<'a>(of: Cow<'a, Value>, index: &Value) -> Result<Cow<'a, Value>> {
    let seg = match (of.as_ref(), index) {
        (Value::Null, _) => return Ok(of),
        (Value::Array(_), Value::Number(number)) => match number.as_u64().map(usize::try_from) {
            Some(Ok(index)) => Seg::Index(index),
            Some(Err(_)) | None => return Ok(Cow::Owned(Value::Null)),
        },
        (Value::Object(_), Value::String(key)) => Seg::Key(key.clone()),
        (of, index) => return Err(format!("{} has no place for {} in `[…]`", a_type(of), a_type(index))),
    };
    Ok(descend(of, &[seg]).unwrap_or(Cow::Owned(Value::Null)))
}

pub(super) fn order(a: &Value, b: &Value) -> Result<Ordering> {
    let found = match (a, b) {
        (Value::Number(a), Value::Number(b)) => Num::of(a).compare(Num::of(b)),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        _ => None,
    };
    found.ok_or_else(|| format!("{} and {} have no order", a_type(a), a_type(b)))
}

pub(super) fn arithmetic<'a>(op: Op, a: &Value, b: &Value) -> Result<Cow<'a, Value>> {
    let (Value::Number(a), Value::Number(b)) = (a, b) else {
        return Err(format!("{} and {} cannot be calculated with", a_type(a), a_type(b)));
    };
    let result = match (Num::of(a), Num::of(b)) {
        (Num::Int(_), Num::Int(0)) if matches!(op, Op::Div | Op::Rem) => {
            return Err("a number is divided by zero".to_owned());
        }
        (Num::Int(a), Num::Int(b)) => whole(op, a, b).and_then(|n| match i64::try_from(n) {
            Ok(n) => Some(Value::from(n)),
            Err(_) => u64::try_from(n).ok().map(Value::from),
        }),
        (a, b) => Num::Float(fraction(op, a.to_float(), b.to_float())).to_json(),
    };
    result.map(Cow::Owned).ok_or_else(|| "the result is too large for a number".to_owned())
}

fn whole(op: Op, a: i128, b: i128) -> Option<i128> {
    match op {
        Op::Add => a.checked_add(b),
        Op::Sub => a.checked_sub(b),
        Op::Mul => a.checked_mul(b),
        Op::Div => a.checked_div(b),
        Op::Rem => a.checked_rem(b),
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::In => None,
    }
}

fn fraction(op: Op, a: f64, b: f64) -> f64 {
    match op {
        Op::Add => a + b,
        Op::Sub => a - b,
        Op::Mul => a * b,
        Op::Div => a / b,
        Op::Rem => a % b,
        Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge | Op::In => f64::NAN,
    }
}

pub(super) fn convert(conversion: Conversion, of: Cow<'_, Value>) -> Result<Cow<'_, Value>> {
    let refuse = |name: &str| Err(format!("`{name}` cannot be made of {}", a_type(&of)));
    let made = match (conversion, of.as_ref()) {
        (Conversion::Size, Value::String(text)) => text.chars().count().into(),
        (Conversion::Size, Value::Array(items)) => items.len().into(),
        (Conversion::Size, Value::Object(fields)) => fields.len().into(),
        (Conversion::Size, _) => return refuse("size"),
        (Conversion::Int, value) => match Num::lenient(value) {
            Some(whole @ Num::Int(_)) => {
                return whole.to_json().map(Cow::Owned).map_or_else(|| refuse("int"), Ok);
            }
            // 2^63: beyond it a float has no integer of 64 bits.
            Some(Num::Float(f)) if f.abs() < 9_223_372_036_854_775_808.0 => Value::from(f.trunc() as i64),
            Some(Num::Float(_)) | None => return refuse("int"),
        },
        (Conversion::Double, value) => {
            match Num::lenient(value).and_then(|n| Num::Float(n.to_float()).to_json()) {
                Some(float) => float,
                None => return refuse("double"),
            }
        }
        (Conversion::String, Value::String(_)) => return Ok(of),
        (Conversion::String, Value::Number(_) | Value::Bool(_)) => Value::String(of.to_string()),
        (Conversion::String, _) => return refuse("string"),
        (Conversion::Bool, Value::Bool(_)) => return Ok(of),
        (Conversion::Bool, Value::String(text)) => match text.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            other => return Err(format!("`bool` cannot be made of `{}`", excerpt(other))),
        },
        (Conversion::Bool, _) => return refuse("bool"),
        (Conversion::Type, value) => match value {
            Value::Null => "null_type".into(),
            Value::Bool(_) => "bool".into(),
            Value::Number(number) if number.is_f64() => "double".into(),
            Value::Number(_) => "int".into(),
            Value::String(_) => "string".into(),
            Value::Array(_) => "list".into(),
            Value::Object(_) => "map".into(),
        },
    };
    Ok(Cow::Owned(made))
}

pub(super) fn text_of<'v>(name: &str, value: &'v Value) -> Result<&'v str> {
    value.as_str().ok_or_else(|| format!("`{name}` needs text, not {}", a_type(value)))
}
