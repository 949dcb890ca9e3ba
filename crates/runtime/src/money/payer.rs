//! The account of a run: the one that its start names, or else the owner of its flow.

use windlass_engine::id::VersionId;
use windlass_engine::problem::{Problem, Severity};

use crate::RuntimeError;
use crate::money::Money;
use crate::part::RuntimePart;

impl Money {
    /// The account that pays for a run of this version.
    pub(crate) async fn payer(
        &self,
        named: Option<String>,
        version: VersionId,
    ) -> Result<Option<String>, RuntimeError> {
        match named {
            Some(account) => Ok(Some(account)),
            None => Ok(self.runs().plan(version).await?.payer.owner().map(str::to_owned)),
        }
    }

    /// Why a run without an account is not started, if the project wants one for every run.
    pub(crate) fn missing_payer(&self, account: Option<&str>) -> Option<Problem> {
        let is_missing = self.settings().require_account && account.is_none();
        is_missing.then(|| Problem {
            path: "$.account".to_owned(),
            reason: "is required by this project and was not given".to_owned(),
            hint: Some("name the account that pays for the run".to_owned()),
            severity: Severity::Error,
        })
    }
}
