//! The account that pays for the runs of a flow, and whether they need one.

use serde_json::Value;

use super::reader::{Fields, Reader};
use crate::plan::Payer;

/// The account in the spelling of other systems.
const ACCOUNT_ID: &str = "account_id";

/// Reads `account` and `require_account`; only the outermost flow has them, because a run has one account.
pub(super) fn read(fields: &mut Fields<'_>, depth: usize, reader: &mut Reader) -> Payer {
    let own = name("account", fields, reader);
    let id = name(ACCOUNT_ID, fields, reader);
    if own.is_some() && id.is_some() {
        reader.error(fields.at(ACCOUNT_ID), "the account is given twice: leave this one out");
    }
    let owner = own.or(id);
    let is_required = fields.flag("require_account", reader).unwrap_or(false);
    for (field, is_given) in [("account", owner.is_some()), ("require_account", is_required)] {
        if depth > 1 && is_given {
            reader.error(fields.at(field), "has no effect inside another flow: a run has one account");
        }
    }
    match owner {
        Some(_) if is_required => {
            let reason = "has no effect beside an account: a run that names none has that of the flow";
            reader.error(fields.at("require_account"), reason);
            Payer::StarterOrNone
        }
        Some(owner) => Payer::StarterOr(owner),
        None if is_required => Payer::Starter,
        None => Payer::StarterOrNone,
    }
}

/// The name of an account; other systems number theirs.
fn name(field: &'static str, fields: &mut Fields<'_>, reader: &mut Reader) -> Option<String> {
    match fields.value(field)? {
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        _ => fields.name(field, reader).map(str::to_owned),
    }
}
