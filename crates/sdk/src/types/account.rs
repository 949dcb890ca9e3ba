//! Accounts, what is put into them, and what happened to them. Amounts are whole minor units: cents, fen.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{LineOrder, Time};

/// An account to be opened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    /// What runs and tasks name as their `account`.
    pub id: String,
    /// For people; absent = the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An account and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Account {
    pub id: String,
    pub name: String,
    /// What can be spent.
    pub balance: i64,
    /// What open charges have taken; what is not used of it comes back.
    pub held: i64,
    pub created_at: Time,
}

/// Money to be put into an account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Deposit {
    /// At least 1.
    #[schema(minimum = 1)]
    pub amount: i64,
    /// Names the payment: the same key and amount again puts nothing in again.
    pub key: String,
}

/// What became of a deposit: the account as it is now, and what the deposit did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Deposited {
    #[serde(flatten)]
    pub account: Account,
    pub entry: LedgerEntry,
    /// `false`: the same deposit was made before, and this is what it did then.
    pub created: bool,
}

/// What happened to an account. Never changed, never deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerEntry {
    /// From 1, without gaps within the account.
    pub seq: u64,
    /// `deposit`, `charge`, `settle` or `refund`.
    pub kind: String,
    /// What it did to the balance: negative for a charge, 0 for a settlement that gave nothing back.
    pub amount: i64,
    pub balance_after: i64,
    /// What a call cost beyond its estimate, which the account does not pay.
    #[serde(default)]
    pub borne_by_platform: i64,
    /// Unique within the account.
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The id of the task, for what was asked for outside of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub at: Time,
}

/// Which part of a ledger is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LedgerQuery {
    /// What happened because of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// `newest` first, unless `oldest` is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub order: Option<LineOrder>,
    /// What the page before answered as `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1,000; absent = 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// What a run may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What the estimates of all its calls together may reach; what came back counts as not spent.
    #[schema(minimum = 0)]
    pub budget: i64,
}
