//! What calls would be asked that the run has not come to, as far as it can be told.

use super::forecast::as_params;
use super::told::{Sight, Told};
use crate::plan::Prep;
use crate::reference::{Ref, Root};
use crate::run::Run;
use crate::run::facts::View;
use crate::run::view::Spot;

impl Spot<'_, '_> {
    /// Whether what the call is asked was known: it was entered, or is a branch of a fan that was.
    pub(super) fn was_asked(&self) -> bool {
        self.branch.is_some() || self.state.visit > 0
    }
}

/// The params that a child run made here would be given.
pub(super) fn params_of(run: &Run, spot: &Spot<'_, '_>) -> Told {
    let input = || input_of(run, spot);
    let params = || Told::literal(&spot.params().merged());
    match spot.node.prep {
        Prep::Params(_) => input(),
        Prep::Key(_) | Prep::Map(_) => as_params(&input()).over(&params()),
        Prep::Scope => params(),
    }
}

/// What a call would be charged that was never entered; `None` when nobody asks anything, or it cannot be told.
pub(super) fn foreseen(run: &Run, spot: &Spot<'_, '_>) -> Option<i64> {
    let call = spot.call()?;
    let (cost, price) = (call.cost.as_ref(), run.start.prices.get(&call.service));
    let input = input_of(run, spot);
    let params = matches!(spot.node.prep, Prep::Params(_)).then(|| input.clone());
    let view = spot.view(run, &spot.level().state.input);
    let asked = Told::of(&*crate::money::asked(cost, price)?, &Unasked { view, params, input });
    crate::money::charged(cost, price, asked.value()?).ok()
}

fn input_of(run: &Run, spot: &Spot<'_, '_>) -> Told {
    if spot.branch.is_some() {
        return Told::Known(spot.input(run));
    }
    let scope = &spot.level().state.input;
    Told::prepared(&spot.node.prep, &Told::Known(scope.clone()), &spot.view(run, scope))
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
