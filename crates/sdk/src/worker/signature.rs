//! The check of calls that a server signs, in the form of Standard Webhooks.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::HeaderMap;
use sha2::Sha256;

use crate::error::{ClientError, UNSENDABLE};

/// The beginning of every secret.
const PREFIX: &str = "whsec_";
/// Bytes of a secret.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;
/// How far the clocks of server and worker may differ, and how old a call may be.
const TOLERANCE: Duration = Duration::from_secs(300);

/// The secrets under which calls are accepted; without any, every call is.
#[derive(Clone, Default)]
pub(super) struct SignatureCheck {
    keys: Vec<Hmac<Sha256>>,
}

impl fmt::Debug for SignatureCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignatureCheck({} secrets)", self.keys.len())
    }
}

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureError {
    #[error("the call is not signed: set the secret of this worker at the server")]
    Missing,
    #[error("the call is older or newer than five minutes: compare the clocks of server and worker")]
    Untimely,
    #[error("the signature is not the one of this call: compare the secrets of server and worker")]
    Wrong,
}

impl SignatureCheck {
    /// Accepts calls under this secret too.
    pub(super) fn accept(&mut self, secret: &str) -> Result<(), ClientError> {
        let key = secret.trim().strip_prefix(PREFIX).and_then(|encoded| STANDARD.decode(encoded).ok());
        let key = key.filter(|key| SECRET_BYTES.contains(&key.len())).ok_or_else(|| {
            let why = format!("the secret of calls is not `{PREFIX}` and 24 to 64 bytes as base64");
            ClientError::local(UNSENDABLE, why)
        })?;
        self.keys.push(Hmac::new_from_slice(&key).expect("HMAC takes a key of any length"));
        Ok(())
    }

    /// Checks a call that arrives now.
    pub(super) fn check(&self, headers: &HeaderMap, body: &[u8]) -> Result<(), SignatureError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.check_at(headers, body, now)
    }

    fn check_at(&self, headers: &HeaderMap, body: &[u8], now: Duration) -> Result<(), SignatureError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let (Some(id), Some(sent), Some(signatures)) =
            (header("webhook-id"), header("webhook-timestamp"), header("webhook-signature"))
        else {
            return Err(SignatureError::Missing);
        };
        let sent_at = sent.parse().map(Duration::from_secs).map_err(|_| SignatureError::Untimely)?;
        if now.abs_diff(sent_at) > TOLERANCE {
            return Err(SignatureError::Untimely);
        }
        // Several signatures stand side by side while a secret is replaced.
        let given = signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,"));
        let given: Vec<Vec<u8>> = given.filter_map(|encoded| STANDARD.decode(encoded).ok()).collect();
        let is_signed = self.keys.iter().any(|key| {
            let mut mac = key.clone();
            for part in [id.as_bytes(), b".", sent.as_bytes(), b".", body] {
                mac.update(part);
            }
            // The comparison takes the same time wherever the first difference is.
            given.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
        });
        if is_signed { Ok(()) } else { Err(SignatureError::Wrong) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The test vector of Standard Webhooks.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER_SECRET: &str = "whsec_c2VjcmV0LW9mLWEtcm90YXRlZC1lbmRwb2ludA==";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    const SENT: u64 = 1_614_265_330;

    fn headers(signature: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek".parse().unwrap());
        headers.insert("webhook-timestamp", SENT.to_string().parse().unwrap());
        headers.insert("webhook-signature", signature.parse().unwrap());
        headers
    }

    fn check(secrets: &[&str]) -> SignatureCheck {
        let mut check = SignatureCheck::default();
        secrets.iter().for_each(|secret| check.accept(secret).unwrap());
        check
    }

    fn verdict(secrets: &[&str], headers: &HeaderMap, body: &[u8]) -> Result<(), SignatureError> {
        check(secrets).check_at(headers, body, Duration::from_secs(SENT + 10))
    }

    #[test]
    fn a_call_that_is_signed_as_the_specification_says_is_accepted() {
        assert_eq!(verdict(&[SECRET], &headers(SIGNATURE), BODY), Ok(()));
        assert_eq!(verdict(&[OTHER_SECRET, SECRET], &headers(SIGNATURE), BODY), Ok(()));
        let several = format!("v1,AAAA v2,{} {SIGNATURE}", "x".repeat(9));
        assert_eq!(verdict(&[SECRET], &headers(&several), BODY), Ok(()));
        assert_eq!(verdict(&[], &HeaderMap::new(), BODY), Ok(()), "a worker without a secret");
    }

    #[test]
    fn strangers_changed_calls_and_old_calls_are_refused() {
        assert_eq!(verdict(&[SECRET], &HeaderMap::new(), BODY), Err(SignatureError::Missing));
        assert_eq!(verdict(&[OTHER_SECRET], &headers(SIGNATURE), BODY), Err(SignatureError::Wrong));
        assert_eq!(verdict(&[SECRET], &headers(SIGNATURE), b"{}"), Err(SignatureError::Wrong));
        for signature in ["v1,", "", "v2,g0hM9SsE", "v1,not base64", &SIGNATURE[..20]] {
            assert_eq!(
                verdict(&[SECRET], &headers(signature), BODY),
                Err(SignatureError::Wrong),
                "{signature}"
            );
        }
        let mut renamed = headers(SIGNATURE);
        renamed.insert("webhook-id", "msg_other".parse().unwrap());
        assert_eq!(verdict(&[SECRET], &renamed, BODY), Err(SignatureError::Wrong));
        for now in [SENT - 301, SENT + 301] {
            let late = check(&[SECRET]).check_at(&headers(SIGNATURE), BODY, Duration::from_secs(now));
            assert_eq!(late, Err(SignatureError::Untimely), "{now}");
        }
    }

    #[test]
    fn a_secret_in_another_form_is_refused() {
        for wrong in ["", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] {
            assert!(SignatureCheck::default().accept(wrong).is_err(), "{wrong}");
        }
    }
}
