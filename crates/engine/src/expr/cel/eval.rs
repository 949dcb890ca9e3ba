//! Evaluation: a walk over the tree with a budget of steps, so that it ends soon for any facts.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::tree::{Against, CelMacro, CelNode, Op, TextTest};
use super::value::{arithmetic, convert, order, pick, text_of};
use crate::expr::Effort;
use crate::expr::pattern::{PATTERN_STEPS, Pattern};
use crate::meter::{BYTES_PER_STEP, Meter, steps_of};
use crate::number::Num;
use crate::reference::{Seg, descend};
use crate::text::a_type;

/// Steps of one evaluation: nodes visited, items and characters looked at. About ten milliseconds' worth.
const STEPS_MAX: usize = 100_000;

pub(super) type Result<T> = std::result::Result<T, String>;

/// Evaluates a tree; `values` are those of its references.
pub(super) fn evaluate<'a>(
    root: &'a CelNode,
    values: &'a [Cow<'a, Value>],
    meter: &'a Meter,
) -> Result<Value> {
    let mut walk = CelEvaluator { values, locals: Vec::new(), effort: Effort::new(meter, STEPS_MAX) };
    walk.value(root).map(Cow::into_owned)
}

struct CelEvaluator<'a> {
    values: &'a [Cow<'a, Value>],
    /// The variables of the loops around, outermost first.
    locals: Vec<Value>,
    effort: Effort<'a>,
}

impl<'a> CelEvaluator<'a> {
    fn spend(&self, steps: usize) -> Result<()> {
        self.effort.spend(steps)
    }

    fn value(&mut self, node: &'a CelNode) -> Result<Cow<'a, Value>> {
        self.spend(1)?;
        Ok(match node {
            CelNode::Literal(value) => Cow::Borrowed(value),
            CelNode::Ref(index) => {
                self.values.get(*index).map_or(Cow::Owned(Value::Null), |v| Cow::Borrowed(v.as_ref()))
            }
            CelNode::Local(distance) => {
                let local = self.locals.iter().rev().nth(*distance).cloned();
                self.pay_for(local.unwrap_or_default())?
            }
            CelNode::Field(of, key) => self.field(of, key)?,
            CelNode::Index(of, index) => {
                let (of, index) = (self.value(of)?, self.value(index)?);
                pick(of, &index)?
            }
            CelNode::List(items) => {
                let items = items.iter().map(|item| self.owned(item)).collect::<Result<_>>()?;
                Cow::Owned(Value::Array(items))
            }
            CelNode::Map(entries) => self.map(entries)?,
            CelNode::Not(of) => Cow::Owned(Value::Bool(!self.truth(of)?)),
            CelNode::Negate(of) => {
                let of = self.value(of)?;
                arithmetic(Op::Sub, &Value::from(0), &of)?
            }
            CelNode::And(parts) => self.decide(parts, false)?,
            CelNode::Or(parts) => self.decide(parts, true)?,
            CelNode::If(test, then, other) => {
                let branch = if self.truth(test)? { then } else { other };
                self.value(branch)?
            }
            CelNode::Binary(op, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.binary(*op, a, &b)?
            }
            CelNode::Present(of) => Cow::Owned(Value::Bool(!self.value(of)?.is_null())),
            CelNode::Convert(conversion, of) => {
                let of = self.value(of)?;
                // A text is counted or read to its end, all else is not looked into.
                self.spend(of.as_str().map_or(0, |text| text.len() / BYTES_PER_STEP))?;
                convert(*conversion, of)?
            }
            CelNode::Text(test, text, part) => {
                let (text, part) = (self.value(text)?, self.value(part)?);
                Cow::Owned(Value::Bool(self.text_test(*test, &text, &part)?))
            }
            CelNode::Matches(text, pattern) => Cow::Owned(Value::Bool(self.matches(text, pattern)?)),
            CelNode::Loop(kind, list, body) => self.loop_over(*kind, list, body)?,
        })
    }

    /// A copy, paid for by its size.
    fn owned(&mut self, node: &'a CelNode) -> Result<Value> {
        let value = self.value(node)?;
        self.pay_for(value.into_owned()).map(Cow::into_owned)
    }

    fn pay_for(&mut self, value: Value) -> Result<Cow<'a, Value>> {
        self.spend(steps_of(&value))?;
        Ok(Cow::Owned(value))
    }

    fn truth(&mut self, node: &'a CelNode) -> Result<bool> {
        match self.value(node)?.as_ref() {
            Value::Bool(truth) => Ok(*truth),
            other => Err(format!("true or false is expected, not {}", a_type(other))),
        }
    }

    /// `&&` and `||`: a part that decides wins over one that cannot be evaluated, whichever comes first.
    fn decide(&mut self, parts: &'a [CelNode], decisive: bool) -> Result<Cow<'a, Value>> {
        let mut fault = None;
        for part in parts {
            match self.truth(part) {
                Ok(truth) if truth == decisive => return Ok(Cow::Owned(Value::Bool(decisive))),
                Ok(_) => {}
                Err(reason) => fault = fault.or(Some(reason)),
            }
        }
        fault.map_or(Ok(Cow::Owned(Value::Bool(!decisive))), Err)
    }

    fn field(&mut self, of: &'a CelNode, key: &str) -> Result<Cow<'a, Value>> {
        // A field of a loop's variable is by far the most common, and must not copy the whole item.
        if let CelNode::Local(distance) = of {
            let local = self.locals.iter().rev().nth(*distance);
            let field = local.and_then(|item| item.get(key)).cloned().unwrap_or_default();
            return self.pay_for(field);
        }
        let of = self.value(of)?;
        let path = [Seg::Key(key.to_owned())];
        Ok(descend(of, &path).unwrap_or(Cow::Owned(Value::Null)))
    }

    fn map(&mut self, entries: &'a [(CelNode, CelNode)]) -> Result<Cow<'a, Value>> {
        let mut map = Map::new();
        for (key, value) in entries {
            let Value::String(key) = self.owned(key)? else {
                return Err("the keys of an object are texts".to_owned());
            };
            let value = self.owned(value)?;
            map.insert(key, value);
        }
        Ok(Cow::Owned(Value::Object(map)))
    }

    fn binary(&mut self, op: Op, a: Cow<'a, Value>, b: &Value) -> Result<Cow<'a, Value>> {
        let ordered = |found: Result<Ordering>, wanted: fn(Ordering) -> bool| found.map(wanted);
        if let (Op::Lt | Op::Le | Op::Gt | Op::Ge, Value::String(a), Value::String(b)) = (op, a.as_ref(), b) {
            self.spend(a.len().min(b.len()) / BYTES_PER_STEP)?;
        }
        let truth = match op {
            Op::Eq => self.same(&a, b)?,
            Op::Ne => !self.same(&a, b)?,
            Op::Lt => ordered(order(&a, b), Ordering::is_lt)?,
            Op::Le => ordered(order(&a, b), Ordering::is_le)?,
            Op::Gt => ordered(order(&a, b), Ordering::is_gt)?,
            Op::Ge => ordered(order(&a, b), Ordering::is_ge)?,
            Op::In => self.is_in(&a, b)?,
            Op::Add => return self.add(a, b),
            Op::Sub | Op::Mul | Op::Div | Op::Rem => return arithmetic(op, &a, b),
        };
        Ok(Cow::Owned(Value::Bool(truth)))
    }

    /// Equality as JSON has it, except that `1` and `1.0` are one number.
    fn same(&mut self, a: &Value, b: &Value) -> Result<bool> {
        self.spend(1)?;
        Ok(match (a, b) {
            (Value::Number(a), Value::Number(b)) => Num::of(a).compare(Num::of(b)) == Some(Ordering::Equal),
            (Value::String(a), Value::String(b)) => {
                self.spend(if a.len() == b.len() { a.len() / BYTES_PER_STEP } else { 0 })?;
                a == b
            }
            (Value::Array(a), Value::Array(b)) => {
                let mut equal = a.len() == b.len();
                let mut pairs = a.iter().zip(b);
                while let (true, Some((a, b))) = (equal, pairs.next()) {
                    equal = self.same(a, b)?;
                }
                equal
            }
            (Value::Object(a), Value::Object(b)) => {
                let mut equal = a.len() == b.len();
                let mut fields = a.iter();
                while let (true, Some((key, a))) = (equal, fields.next()) {
                    equal = match b.get(key) {
                        Some(b) => self.same(a, b)?,
                        None => false,
                    };
                }
                equal
            }
            _ => a == b,
        })
    }

    fn is_in(&mut self, item: &Value, collection: &Value) -> Result<bool> {
        match collection {
            Value::Array(items) => {
                for candidate in items {
                    if self.same(item, candidate)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Value::Object(fields) => Ok(item.as_str().is_some_and(|key| fields.contains_key(key))),
            // A missing value contains nothing.
            Value::Null => Ok(false),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Err(format!("`in` needs a list or an object, not {}", a_type(collection)))
            }
        }
    }

    fn add(&mut self, a: Cow<'a, Value>, b: &Value) -> Result<Cow<'a, Value>> {
        let sum = match (a.as_ref(), b) {
            (Value::String(a), Value::String(b)) => {
                self.spend(a.len().saturating_add(b.len()) / BYTES_PER_STEP)?;
                Value::String([a.as_str(), b.as_str()].concat())
            }
            (Value::Array(_), Value::Array(more)) => {
                self.spend(steps_of(&a).saturating_add(steps_of(b)))?;
                let mut items = a.into_owned();
                if let Some(items) = items.as_array_mut() {
                    items.extend_from_slice(more);
                }
                items
            }
            _ => return arithmetic(Op::Add, &a, b),
        };
        Ok(Cow::Owned(sum))
    }

    fn text_test(&mut self, test: TextTest, text: &Value, part: &Value) -> Result<bool> {
        if let (TextTest::Contains, Value::Array(_)) = (test, text) {
            return self.is_in(part, text);
        }
        let name = match test {
            TextTest::Contains => "contains",
            TextTest::StartsWith => "startsWith",
            TextTest::EndsWith => "endsWith",
        };
        let (text, part) = (text_of(name, text)?, text_of(name, part)?);
        self.spend(text.len() / BYTES_PER_STEP)?;
        Ok(match test {
            TextTest::Contains => text.contains(part),
            TextTest::StartsWith => text.starts_with(part),
            TextTest::EndsWith => text.ends_with(part),
        })
    }

    fn matches(&mut self, text: &'a CelNode, against: &'a Against) -> Result<bool> {
        let text = self.value(text)?;
        let text = text_of("matches", &text)?;
        let computed;
        let pattern = match against {
            Against::Known(pattern) => pattern,
            Against::Computed(node) => {
                let pattern = self.value(node)?;
                self.spend(PATTERN_STEPS)?;
                computed = Pattern::compile(text_of("matches", &pattern)?)?;
                &computed
            }
        };
        self.spend(pattern.steps(text))?;
        pattern.is_match(text)
    }

    fn loop_over(&mut self, kind: CelMacro, list: &'a CelNode, body: &'a CelNode) -> Result<Cow<'a, Value>> {
        let list = self.value(list)?;
        let items: Vec<Value> = match list.as_ref() {
            Value::Array(items) => {
                self.spend(steps_of(&list))?;
                items.clone()
            }
            Value::Object(fields) => {
                self.spend(fields.len())?;
                fields.keys().map(|key| Value::String(key.clone())).collect()
            }
            other => return Err(format!("a loop needs a list or an object, not {}", a_type(other))),
        };
        let mut found = Found::default();
        for item in items {
            self.spend(1)?;
            self.locals.push(item);
            let outcome = match kind {
                CelMacro::Map => self.owned(body).map(|made| found.kept.push(made)),
                CelMacro::All | CelMacro::Exists | CelMacro::ExistsOne | CelMacro::Filter => {
                    self.truth(body).map(|truth| found.count(truth))
                }
            };
            let item = self.locals.pop();
            match outcome {
                Err(reason) => found.fault = found.fault.or(Some(reason)),
                Ok(()) if kind == CelMacro::Filter && found.last => found.kept.extend(item),
                Ok(()) => {}
            }
            let decided = match kind {
                CelMacro::All => found.n_false > 0,
                CelMacro::Exists => found.n_true > 0,
                CelMacro::ExistsOne | CelMacro::Filter | CelMacro::Map => found.fault.is_some(),
            };
            if decided {
                break;
            }
        }
        found.result(kind).map(Cow::Owned)
    }
}

/// The accumulated result of a loop.
#[derive(Default)]
struct Found {
    n_true: usize,
    n_false: usize,
    last: bool,
    kept: Vec<Value>,
    fault: Option<String>,
}

impl Found {
    fn count(&mut self, truth: bool) {
        self.last = truth;
        self.n_true += usize::from(truth);
        self.n_false += usize::from(!truth);
    }

    fn result(self, kind: CelMacro) -> Result<Value> {
        let fault = self.fault.map_or(Ok(()), Err);
        match kind {
            CelMacro::All if self.n_false > 0 => Ok(Value::Bool(false)),
            CelMacro::Exists if self.n_true > 0 => Ok(Value::Bool(true)),
            CelMacro::All => fault.map(|()| Value::Bool(true)),
            CelMacro::Exists => fault.map(|()| Value::Bool(false)),
            CelMacro::ExistsOne => fault.map(|()| Value::Bool(self.n_true == 1)),
            CelMacro::Filter | CelMacro::Map => fault.map(|()| Value::Array(self.kept)),
        }
    }
}
