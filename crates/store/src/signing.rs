//! Secrets under which calls to push workers are signed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A secret as it was given: `whsec_` and base64. It is written to the store and shown nowhere.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SigningSecret(String);

impl SigningSecret {
    pub fn new(text: impl Into<String>) -> Self {
        SigningSecret(text.into())
    }

    /// The text, for the code that signs.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Some(SigningSecret::new("whsec_abc"))), "Some(SigningSecret)");
    }
}
