//! Accounts, deposits and the ledger. Amounts are whole minor units: cents, fen.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{ListOrder, Time};

/// An account to be opened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAccount {
    /// The id that runs and jobs name as their `account`.
    pub id: String,
    /// For people; absent = the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An account with its balance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AccountInfo {
    pub id: String,
    pub name: String,
    /// The amount that can be spent.
    pub balance: i64,
    /// The amount that open charges hold; the unused part returns to the balance.
    pub held: i64,
    pub created_at: Time,
}

/// Money to be put into an account.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DepositRequest {
    /// At least 1.
    #[schema(minimum = 1)]
    pub amount: i64,
    /// Names the payment: the same key and amount again puts nothing in again.
    pub key: String,
}

/// The result of a deposit: the account now, and the ledger entry of the deposit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DepositResponse {
    #[serde(flatten)]
    pub account: AccountInfo,
    pub entry: LedgerEntry,
    /// `false`: the same deposit was made before; `entry` is the entry of that time.
    pub created: bool,
}

/// One entry of an account's ledger. Never changed, never deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LedgerEntry {
    /// From 1, without gaps within the account.
    pub seq: u64,
    /// `deposit`, `charge`, `settle` or `refund`.
    pub kind: String,
    /// The change of the balance: negative for a charge, 0 for a settlement without a refund.
    pub amount: i64,
    pub balance_after: i64,
    /// The cost of a call beyond its estimate, which the account does not pay.
    #[serde(default)]
    pub borne_by_platform: i64,
    /// Unique within the account.
    pub key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The id of the task, for jobs outside of runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub at: Time,
}

/// Which part of a ledger is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LedgerListQuery {
    /// Only entries of this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// `newest` first, unless `oldest` is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub order: Option<ListOrder>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1,000; absent = 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

/// The budget of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The most that the estimates of all its calls may sum up to; refunds count as not spent.
    #[schema(minimum = 0)]
    pub budget: i64,
}
