//! Estimated charges of single calls. The walk asks for one call at a time; a call that cannot be estimated without
//! running other nodes has no estimate.

use std::borrow::Cow;

use serde_json::Value;

use super::budget::EstimateBudget;
use crate::counter::Visit;
use crate::money::Amount;
use crate::plan::Prep;
use crate::reference::{Ref, Root, Seg, Template, dig};
use crate::run::Run;
use crate::run::decide::estimated;
use crate::run::view::NodeRef;

/// The charge of a call; `None` = free or unknown. A call that was made before is estimated with the same input.
pub(super) fn estimate(run: &Run, spot: &NodeRef<'_, '_>, budget: &mut EstimateBudget) -> Option<Amount> {
    let call = spot.call()?;
    let (cost, price) = (call.cost.as_ref(), run.start.prices.get(spot.service().unwrap_or_default()));
    if let Some(amount) = crate::money::fixed(cost, price) {
        return Some(amount);
    }
    if spot.branch.is_some() || spot.state.visit > Visit::ZERO {
        return takes_input(run, spot, budget).then(|| estimated(run, spot)).flatten();
    }
    let asked = crate::money::asked(cost, price)?;
    let Template::Ref(reference) = &*asked else { return None };
    let value = param(run, spot, reference, budget)?;
    crate::money::charged(cost, price, &value).ok()
}

/// Whether the input of the call fits into the budget. The run weighs it in the same way when it grants the call.
fn takes_input(run: &Run, spot: &NodeRef<'_, '_>, budget: &mut EstimateBudget) -> bool {
    let (prep, base) = match &spot.branch {
        Some(arm) if arm.slot.input.is_some() => return true,
        Some(arm) => (&arm.branch.prep, &spot.state.input),
        None => (&spot.node.prep, &spot.level.state.input),
    };
    let mut refs: Vec<&Ref> = prep.templates().flat_map(Template::refs).collect();
    if let Prep::Key(reference) = prep {
        refs.push(reference);
    }
    budget.take(&refs, &spot.view(run, base))
}

/// A param of a call that was never made; `None` where it depends on nodes that have not run.
fn param(run: &Run, spot: &NodeRef<'_, '_>, reference: &Ref, budget: &mut EstimateBudget) -> Option<Value> {
    if reference.root != Root::Params {
        return None;
    }
    let template = match &spot.node.prep {
        Prep::Params(template) => template,
        Prep::Scope | Prep::Key(_) | Prep::Map(_) => {
            let view = spot.view(run, &Value::Null);
            return budget.take(&[reference], &view).then(|| reference.resolve(&view).into_owned());
        }
    };
    let value = literal_at(template, &reference.path)?;
    Some(value.into_owned())
}

/// The value at `path` of a template, if that part of the template is literal.
fn literal_at<'t>(mut template: &'t Template, path: &[Seg]) -> Option<Cow<'t, Value>> {
    let mut path = path.iter();
    loop {
        match template {
            Template::Literal(value) => {
                let value = dig(value, path.as_slice());
                return Some(value.map_or(Cow::Owned(Value::Null), Cow::Borrowed));
            }
            Template::Object(fields) => match path.next()? {
                Seg::Key(key) => match fields.get(key) {
                    Some(field) => template = field,
                    None => return Some(Cow::Owned(Value::Null)),
                },
                Seg::Index(_) => return None,
            },
            Template::Ref(_) | Template::Text(_) | Template::Array(_) => return None,
        }
    }
}
