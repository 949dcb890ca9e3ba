//! What calls would be asked that the run has not come to, as far as it can be told.

use super::forecast::as_params;
use super::room::Room;
use super::told::{Sight, Told};
use crate::plan::Prep;
use crate::reference::{Ref, Root, Template};
use crate::run::Run;
use crate::run::decide::estimated;
use crate::run::facts::View;
use crate::run::view::Spot;

/// The params that a child run made here would be given.
pub(super) fn params_of(run: &Run, spot: &Spot<'_, '_>, room: &Room) -> Told {
    let input = || input_of(run, spot, room);
    let params = || Told::literals(&spot.params().merged(), room);
    match spot.node.prep {
        Prep::Params(_) => input(),
        Prep::Key(_) | Prep::Map(_) => as_params(&input()).over(&params()),
        Prep::Scope => params(),
    }
}

/// What a call would be charged; `None` when nobody asks anything, or it cannot be told. What was asked before is
/// taken to be asked again.
pub(super) fn foreseen(run: &Run, spot: &Spot<'_, '_>, room: &Room) -> Option<i64> {
    let call = spot.call()?;
    let (cost, price) = (call.cost.as_ref(), run.start.prices.get(spot.service().unwrap_or_default()));
    if let Some(amount) = crate::money::fixed(cost, price) {
        return Some(amount);
    }
    if spot.branch.is_some() || spot.state.visit > 0 {
        return is_bearable(run, spot, room).then(|| estimated(run, spot)).flatten();
    }
    let asked = crate::money::asked(cost, price)?;
    let view = spot.view(run, &spot.level().state.input);
    if !room.holds_all(&asked.refs(), &view) {
        return None;
    }
    let input = input_of(run, spot, room);
    let params = matches!(spot.node.prep, Prep::Params(_)).then(|| input.clone());
    let asked = Told::of(&asked, &Unasked { view, params, input }, room);
    crate::money::charged(cost, price, asked.value()?).ok()
}

fn input_of(run: &Run, spot: &Spot<'_, '_>, room: &Room) -> Told {
    if !is_bearable(run, spot, room) {
        return Told::Unknown;
    }
    if spot.branch.is_some() {
        return Told::shared(spot.input(run));
    }
    let scope = &spot.level().state.input;
    Told::prepared(&spot.node.prep, &Told::shared(scope.clone()), &spot.view(run, scope), room)
}

/// Whether what goes into it is small enough to be made: it is weighed as it is where the call is granted.
fn is_bearable(run: &Run, spot: &Spot<'_, '_>, room: &Room) -> bool {
    let (prep, base) = match &spot.branch {
        Some(arm) if arm.slot.input.is_some() => return true,
        Some(arm) => (&arm.branch.prep, &spot.state.input),
        None => (&spot.node.prep, &spot.level().state.input),
    };
    let mut refs: Vec<&Ref> = prep.templates().flat_map(Template::refs).collect();
    if let Prep::Key(reference) = prep {
        refs.push(reference);
    }
    room.holds_all(&refs, &spot.view(run, base))
}

/// A call that was not entered, as prices see it.
struct Unasked<'a> {
    view: View<'a>,
    /// The params of a call whose whole configuration is prepared.
    params: Option<Told>,
    input: Told,
}

impl Sight for Unasked<'_> {
    fn read(&self, reference: &Ref) -> Told {
        match (&reference.root, &self.params) {
            (Root::Params, Some(params)) => params.at(&reference.path),
            (Root::Input, _) => self.input.at(&reference.path),
            (_, _) => self.view.read(reference),
        }
    }
}
