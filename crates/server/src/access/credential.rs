//! The credential of a request: `Authorization: Bearer`, and Basic where clients of other systems can set a URL only.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

/// The text that a request presents as its key.
pub(super) struct Credential(String);

impl Credential {
    /// The credential; `None` = there is none, more than one, or one that cannot be read.
    pub(super) fn of(headers: &HeaderMap, takes_basic: bool) -> Option<Self> {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (only, None) = (given.next()?, given.next()) else { return None };
        let (scheme, text) = only.to_str().ok()?.split_once(' ')?;
        let text = text.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Credential(text.to_owned()));
        }
        (takes_basic && scheme.eq_ignore_ascii_case("basic")).then(|| basic(text))?
    }

    pub(super) fn key(&self) -> &str {
        &self.0
    }
}

/// The key in `user:password`: the password, or the user where there is no password.
fn basic(text: &str) -> Option<Credential> {
    let pair = String::from_utf8(base64(text)?).ok()?;
    let (user, password) = pair.split_once(':')?;
    Some(Credential(if password.starts_with("wl_") { password } else { user }.to_owned()))
}

/// Decodes base64 with its padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let bare = text.trim_end_matches('=').as_bytes();
    let is_padded = text.len().is_multiple_of(4) && text.len() - bare.len() <= 2;
    let (mut bytes, mut bits, mut n_bits) = (Vec::with_capacity(text.len()), 0_u32, 0_u32);
    for byte in bare {
        bits = (bits << 6 | u32::from(digit(*byte)?)) & 0xfff;
        n_bits += 6;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push(u8::try_from(bits >> n_bits & 0xff).unwrap_or_default());
        }
    }
    is_padded.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(values: &[&str], takes_basic: bool) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        Credential::of(&headers, takes_basic).map(|credential| credential.key().to_owned())
    }

    #[test]
    fn a_bearer_token_is_read_on_every_surface() {
        for takes_basic in [false, true] {
            assert_eq!(read(&["Bearer wl_a"], takes_basic).as_deref(), Some("wl_a"));
            assert_eq!(read(&["bearer  wl_a "], takes_basic).as_deref(), Some("wl_a"));
            for bad in [&[][..], &["Bearer a", "Bearer b"], &["wl_a"], &["Digest a"], &["Bearer é"]] {
                assert_eq!(read(bad, takes_basic), None, "{bad:?}");
            }
        }
    }

    #[test]
    fn basic_counts_on_compatible_surfaces_only() {
        // `wl_a:`, `:wl_b`, `user:wl_b`, `wl_a:x`
        for (text, key) in
            [("d2xfYTo=", "wl_a"), ("OndsX2I=", "wl_b"), ("dXNlcjp3bF9i", "wl_b"), ("d2xfYTp4", "wl_a")]
        {
            assert_eq!(read(&[&format!("Basic {text}")], true).as_deref(), Some(key), "{text}");
            assert_eq!(read(&[&format!("Basic {text}")], false), None);
        }
        for bad in ["", "=", "====", "d2xfYQ==", "d2xfYTo", "d2x_YTo=", "/////w==", "d2xfYTo=="] {
            assert_eq!(read(&[&format!("Basic {bad}")], true), None, "{bad}");
        }
    }
}
