//! Prices of services.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Time;

/// The price of one call of a service: `unit_price × max(units, min_unit)`, in whole minor units.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPrice {
    #[schema(minimum = 0)]
    pub unit_price: i64,
    /// So many units are paid for at least.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub min_unit: i64,
    /// How many units a call will take: a whole number, or a reference such as `$params.seconds` or `$input.seconds`.
    /// Absent = 1; a reference that leads nowhere = `min_unit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub units: Option<Value>,
    /// How many it took, which may also be in `$result`. Absent, or a reference that leads nowhere = as many as
    /// estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_units: Option<Value>,
}

/// The price of a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PriceInfo {
    pub service: String,
    pub unit_price: i64,
    pub min_unit: i64,
    pub units: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual_units: Option<Value>,
    pub updated_at: Time,
}

/// A price that is no more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PriceDeleted {
    pub service: String,
    pub deleted: bool,
}
