//! The text of an API key: `wl_<kind>_<8 id>_<32 secret><6 crc>`, in base62.
//!
//! The kind tells scanners of secrets and people which key they look at; the id is public and finds the row; the
//! checksum refuses mistyped and invented texts before a store is asked. Random bytes come from the caller.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Role;

/// Characters of an id: enough for 10^14 keys.
const ID_CHARS: usize = 8;
/// Characters of a secret: 190 random bits.
const SECRET_CHARS: usize = 32;
/// Characters of the checksum: 62^6 is more than 2^32.
const CRC_CHARS: usize = 6;
/// Random bytes of a new key: two for each character of id and secret, so that all characters are equally likely but for
/// one part in a thousand.
pub const RANDOM_BYTES: usize = 2 * (ID_CHARS + SECRET_CHARS);

const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The public part of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ApiKeyId([u8; ID_CHARS]);

/// The text is no id of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a key: it has 8 letters and digits, such as those of `windlass key list`")]
pub struct ApiKeyIdError(String);

impl ApiKeyId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("an id has only letters and digits")
    }
}

impl FromStr for ApiKeyId {
    type Err = ApiKeyIdError;

    fn from_str(text: &str) -> Result<Self, ApiKeyIdError> {
        let wrong = || ApiKeyIdError(text.chars().take(80).collect());
        let bytes: [u8; ID_CHARS] = text.as_bytes().try_into().map_err(|_| wrong())?;
        if is_base62(&bytes) { Ok(ApiKeyId(bytes)) } else { Err(wrong()) }
    }
}

impl TryFrom<String> for ApiKeyId {
    type Error = ApiKeyIdError;

    fn try_from(text: String) -> Result<Self, ApiKeyIdError> {
        text.parse()
    }
}

impl From<ApiKeyId> for String {
    fn from(id: ApiKeyId) -> String {
        id.as_str().to_owned()
    }
}

impl fmt::Display for ApiKeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A key as its owner presents it. The text is a secret: `Debug` shows the id only.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    id: ApiKeyId,
    text: String,
}

impl ApiKey {
    /// A new key of a role from random bytes.
    pub fn new(role: Role, random: &[u8; RANDOM_BYTES]) -> Self {
        let digit = |pair: &[u8]| {
            let number = pair.iter().fold(0, |number, byte| number * 256 + usize::from(*byte));
            DIGITS[number % DIGITS.len()]
        };
        let digits: Vec<u8> = random.chunks(2).map(digit).collect();
        let (id, secret) = digits.split_at(ID_CHARS);
        let id = ApiKeyId(std::array::from_fn(|at| id[at]));
        let secret = String::from_utf8_lossy(secret);
        let body = format!("wl_{}_{id}_{secret}", kind(role));
        ApiKey { id, text: format!("{body}{}", checksum(&body)) }
    }

    /// Reads a presented key; `None` if the text cannot be one. A text that reads well proves nothing yet.
    pub fn read(text: &str) -> Option<Self> {
        let (kind, rest) = text.strip_prefix("wl_")?.split_once('_')?;
        let (id, rest) = rest.split_once('_')?;
        let is_well_formed = matches!(kind, "a" | "u" | "w")
            && rest.len() == SECRET_CHARS + CRC_CHARS
            && is_base62(rest.as_bytes());
        let id = id.parse().ok().filter(|_| is_well_formed)?;
        let (body, crc) = text.split_at(text.len() - CRC_CHARS);
        (checksum(body) == crc).then(|| ApiKey { id, text: text.to_owned() })
    }

    /// The public part.
    pub fn id(&self) -> ApiKeyId {
        self.id
    }

    /// The whole text. Only its owner and the hash see it.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}…)", self.id)
    }
}

/// The letter of a role's keys.
fn kind(role: Role) -> char {
    match role {
        Role::Admin => 'a',
        Role::Viewer | Role::Operator | Role::Author => 'u',
        Role::Worker => 'w',
    }
}

fn is_base62(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_alphanumeric)
}

/// The CRC-32 of a text in base62.
fn checksum(text: &str) -> String {
    let mut rest = usize::try_from(crc32(text.as_bytes())).unwrap_or_default();
    let mut digits = [b'0'; CRC_CHARS];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[rest % DIGITS.len()];
        rest /= DIGITS.len();
    }
    String::from_utf8_lossy(&digits).into_owned()
}

/// CRC-32 as zlib and Ethernet compute it. Keys have 50 bytes, so a table would gain nothing.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let shift = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), |crc, _| shift(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(role: Role, seed: u8) -> ApiKey {
        let mut random = [0; RANDOM_BYTES];
        random.iter_mut().zip(0_u8..).for_each(|(byte, at)| *byte = at.wrapping_mul(37).wrapping_add(seed));
        ApiKey::new(role, &random)
    }

    #[test]
    fn a_key_reads_back() {
        for (role, kind) in [
            (Role::Admin, "wl_a_"),
            (Role::Worker, "wl_w_"),
            (Role::Viewer, "wl_u_"),
            (Role::Operator, "wl_u_"),
            (Role::Author, "wl_u_"),
        ] {
            let key = key(role, 5);
            assert!(key.reveal().starts_with(kind), "{}", key.reveal());
            assert_eq!(key.reveal().len(), 5 + 8 + 1 + 32 + 6);
            let read = ApiKey::read(key.reveal()).unwrap();
            assert_eq!((read.id(), read.reveal()), (key.id(), key.reveal()));
            assert_eq!(key.id().as_str().parse(), Ok(key.id()));
        }
        assert_ne!(key(Role::Admin, 1).reveal(), key(Role::Admin, 2).reveal());
    }

    #[test]
    fn every_changed_character_is_noticed() {
        let key = key(Role::Operator, 9);
        for at in 0..key.reveal().len() {
            for with in ["0", "z", "_", "é", ""] {
                let mut text = key.reveal().to_owned();
                text.replace_range(at..=at, with);
                let is_same = text == key.reveal();
                assert_eq!(ApiKey::read(&text).is_some(), is_same, "{text}");
            }
        }
        for text in ["", "wl_", "wl_a__", "Bearer", "wl_a_12345678_", &"wl_".repeat(10_000)] {
            assert_eq!(ApiKey::read(text), None, "{text}");
        }
    }

    #[test]
    fn the_checksum_is_the_common_crc() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(checksum("").len(), CRC_CHARS);
    }

    #[test]
    fn no_log_shows_a_secret() {
        let key = key(Role::Admin, 3);
        let shown = format!("{key:?}");
        assert!(shown.contains(key.id().as_str()), "{shown}");
        assert!(!key.reveal().contains(&shown) && shown.len() < 30, "{shown}");
    }

    #[test]
    fn ids_have_eight_letters_and_digits() {
        for text in ["", "1234567", "123456789", "1234567_", "12345 78", "1234é67"] {
            assert!(text.parse::<ApiKeyId>().is_err(), "{text}");
        }
        let id: ApiKeyId = serde_json::from_str("\"abcDEF12\"").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"abcDEF12\"");
    }
}
