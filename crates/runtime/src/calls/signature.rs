//! Signatures of calls to push workers, in the form of Standard Webhooks: HMAC-SHA-256 of `id.timestamp.body`, under a
//! secret that server and worker share. A worker can so refuse calls of strangers, changed bodies and old calls.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;
use windlass_engine::time::Timestamp;
use windlass_store::signing::SigningSecret;

/// The beginning of every secret.
const PREFIX: &str = "whsec_";
/// Bytes of a secret: fewer could be guessed.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// Checks a secret that a client gives.
pub fn read_secret(text: &str) -> Result<SigningSecret, String> {
    key_of(text).map(|_| SigningSecret::new(text))
}

fn key_of(text: &str) -> Result<Vec<u8>, String> {
    // The text itself is not repeated: it is a secret.
    let wrong = || {
        let (least, most) = (SECRET_BYTES.start(), SECRET_BYTES.end());
        format!(
            "the secret is not `{PREFIX}` and {least} to {most} bytes as base64: make one with `openssl rand -base64 32`"
        )
    };
    let key = text.strip_prefix(PREFIX).and_then(|encoded| STANDARD.decode(encoded).ok());
    key.filter(|key| SECRET_BYTES.contains(&key.len())).ok_or_else(wrong)
}

/// The headers that prove a call. A stored secret is a valid one: it was checked when it came.
pub(super) fn sign(
    secret: &SigningSecret,
    id: &str,
    now: Timestamp,
    body: &[u8],
) -> Result<HeaderMap, String> {
    let (key, seconds) = (key_of(secret.expose())?, now.0.div_euclid(1_000).to_string());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("HMAC takes a key of any length");
    for part in [id.as_bytes(), b".", seconds.as_bytes(), b".", body] {
        mac.update(part);
    }
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let headers = [("webhook-id", id), ("webhook-timestamp", &seconds), ("webhook-signature", &signature)];
    let named = headers.into_iter().map(|(name, value)| {
        let value = HeaderValue::from_str(value).expect("ids, digits and base64 fit into a header");
        (HeaderName::from_static(name), value)
    });
    Ok(named.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_signed_as_the_specification_says() {
        // The test vector of Standard Webhooks.
        let secret = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let now = Timestamp(1_614_265_330_999);
        let headers = sign(&secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", now, br#"{"test": 2432232314}"#).unwrap();
        assert_eq!(headers["webhook-id"], "msg_p5jXN8AQM9LWM0D4loKWxJek");
        assert_eq!(headers["webhook-timestamp"], "1614265330");
        assert_eq!(headers["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_in_another_form_is_refused_and_not_repeated() {
        for wrong in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_no base64"] {
            let reason = read_secret(wrong).unwrap_err();
            assert!(reason.contains("openssl rand") && !reason.contains("no base64"), "{reason}");
        }
        assert!(read_secret(&format!("whsec_{}", STANDARD.encode([7; 65]))).is_err());
    }
}
