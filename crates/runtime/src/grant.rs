//! Texts that prove a grant of work: the lease of a job and the id of a call.
//!
//! A grant is named `<id>.<fence>`: ids and fences stand in lists and logs, so a name proves nothing. The worker that
//! gets the work gets `<id>.<fence>.<signature>`, and only that text ends, extends or answers the work. The signature is
//! an HMAC-SHA-256 of the kind, the id and the fence, cut to 128 bits, under a key that the store keeps: every server
//! of the store signs alike, restarts change nothing, and no row holds a signature.

use std::fmt::{self, Display, Write};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use uuid::Uuid;
use windlass_engine::counter::Fence;
use windlass_engine::id::{JobId, RunId};
use windlass_store::StoreKey;

/// The name of the key in the store.
pub(crate) const KEY_NAME: &str = "grants";

/// Bytes of a signature.
const SIGNATURE_BYTES: usize = 16;

/// A key for a store that has none: two random UUIDs, with 244 random bits.
pub(crate) fn fresh_key() -> StoreKey {
    let halves = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes);
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(halves.concat()).for_each(|(byte, random)| *byte = random);
    StoreKey::new(bytes)
}

/// An id of granted work.
pub trait GrantId: Copy {
    /// Tells a lease from the id of a call: both may have the same UUID and fence.
    const KIND: &'static [u8];

    fn to_uuid(self) -> Uuid;
}

impl GrantId for JobId {
    const KIND: &'static [u8] = b"lease";

    fn to_uuid(self) -> Uuid {
        self.uuid()
    }
}

impl GrantId for RunId {
    const KIND: &'static [u8] = b"call";

    fn to_uuid(self) -> Uuid {
        self.uuid()
    }
}

/// Why a text proves no grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantError {
    /// It is no name of a grant, or one without a signature.
    Unreadable,
    /// The signature is not the one of this grant.
    Forged,
}

/// Signs grants and checks their signatures.
#[derive(Clone)]
pub struct GrantSigner {
    /// The key is hashed once; every signature goes on from there.
    keyed: Hmac<Sha256>,
}

impl GrantSigner {
    pub(crate) fn new(key: &StoreKey) -> Self {
        let keyed = Hmac::new_from_slice(key.bytes()).expect("HMAC takes a key of any length");
        GrantSigner { keyed }
    }

    /// The lease of a claimed job, or the id of a call, for the worker that gets it.
    pub fn signed<I: GrantId + Display>(&self, id: I, fence: Fence) -> String {
        self.signed_as(&id, id, fence)
    }

    /// The same with the id in another spelling.
    pub fn signed_as<I: GrantId>(&self, spelling: &dyn Display, id: I, fence: Fence) -> String {
        let signature = self.mac(id, fence).finalize().into_bytes();
        let mut text = named(spelling, fence);
        text.push('.');
        for byte in signature.iter().take(SIGNATURE_BYTES) {
            write!(text, "{byte:02x}").expect("a text takes all that is written to it");
        }
        text
    }

    /// The grant that a text proves; `read` reads its id. The time that it takes tells nothing about the signature.
    pub fn check<I: GrantId>(
        &self,
        text: &str,
        read: impl FnOnce(&str) -> Option<I>,
    ) -> Result<(I, Fence), GrantError> {
        let name = GrantName::read(text).ok_or(GrantError::Unreadable)?;
        let id = read(name.id).ok_or(GrantError::Unreadable)?;
        let signature = name.signature.ok_or(GrantError::Unreadable)?;
        let is_valid = bytes_of(signature)
            .is_some_and(|bytes| self.mac(id, name.fence).verify_truncated_left(&bytes).is_ok());
        if is_valid { Ok((id, name.fence)) } else { Err(GrantError::Forged) }
    }

    fn mac<I: GrantId>(&self, id: I, fence: Fence) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(I::KIND);
        mac.update(id.to_uuid().as_bytes());
        mac.update(&fence.0.to_be_bytes());
        mac
    }
}

/// The key is in no log.
impl fmt::Debug for GrantSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantSigner").finish_non_exhaustive()
    }
}

/// The name of a grant: for lists and logs, where it proves nothing.
pub fn named(id: &dyn Display, fence: Fence) -> String {
    format!("{id}.{fence}")
}

/// A grant that a text names, with or without a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantName<'t> {
    pub id: &'t str,
    pub fence: Fence,
    signature: Option<&'t str>,
}

impl<'t> GrantName<'t> {
    pub fn read(text: &'t str) -> Option<Self> {
        let mut parts = text.split('.');
        let (id, fence, signature) = (parts.next()?, parts.next()?.parse().ok()?, parts.next());
        parts.next().is_none().then_some(GrantName { id, fence, signature })
    }
}

/// The bytes of a signature; exactly so many digits, so that a grant has one text.
fn bytes_of(digits: &str) -> Option<[u8; SIGNATURE_BYTES]> {
    let is_plain = digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if !is_plain || digits.len() != 2 * SIGNATURE_BYTES {
        return None;
    }
    let mut bytes = [0; SIGNATURE_BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(byte: u8) -> GrantSigner {
        GrantSigner::new(&StoreKey::new([byte; 32]))
    }

    fn job(n: u128) -> JobId {
        JobId::new(Uuid::from_u128(n))
    }

    #[test]
    fn a_signed_text_proves_its_grant_in_every_spelling() {
        let signer = signer(1);
        let lease = signer.signed(job(7), Fence(3));
        let read = |id: &str| id.parse::<JobId>().ok();
        assert_eq!(signer.check(&lease, read), Ok((job(7), Fence(3))));
        assert_eq!(signer.clone().signed(job(7), Fence(3)), lease);
        let plain = signer.signed_as(&job(7).uuid(), job(7), Fence(3));
        assert_eq!(plain.rsplit_once('.').unwrap().1, lease.rsplit_once('.').unwrap().1);
        let read = |id: &str| Uuid::try_parse(id).ok().map(JobId::new);
        assert_eq!(signer.check(&plain, read), Ok((job(7), Fence(3))));
    }

    #[test]
    fn the_signature_is_the_documented_one() {
        // HMAC-SHA-256 of `lease`, sixteen bytes of the id and eight of the fence, computed with another program.
        let text = GrantSigner::new(&StoreKey::new([0; 32])).signed(job(1), Fence(1));
        assert_eq!(text, "job_00000000000000000000000000000001.1.1a3813c326da912c1c98a8a0fab78aee");
    }

    #[test]
    fn no_other_text_proves_a_grant() {
        let signer_of_all = signer(1);
        let lease = signer_of_all.signed(job(7), Fence(3));
        let signature = lease.rsplit_once('.').unwrap().1;
        let verdict = |text: &str| signer_of_all.check(text, |id| id.parse::<JobId>().ok());
        let forged = [
            format!("{}.3.{signature}", job(8)),
            format!("{}.4.{signature}", job(7)),
            format!("{}.3.", job(7)),
            format!("{}.3.{}", job(7), &signature[..30]),
            format!("{}.3.{signature}00", job(7)),
            format!("{}.3.{}", job(7), signature.to_uppercase().replace(char::is_numeric, "A")),
            format!("{}.3.{}", job(7), "0".repeat(32)),
            format!("{}.3.{}", job(7), "é".repeat(16)),
            signer(2).signed(job(7), Fence(3)),
            signer_of_all.signed_as(&job(7), RunId::new(job(7).uuid()), Fence(3)),
        ];
        for text in forged {
            assert_eq!(verdict(&text), Err(GrantError::Forged), "{text}");
        }
        let unreadable = [
            "",
            "7",
            ".",
            "..",
            "job_1.7",
            &job(7).to_string(),
            &named(&job(7), Fence(3)),
            &format!("{}.-1.{signature}", job(7)),
            &format!("{}.99999999999999999999.{signature}", job(7)),
            &format!("{lease}.{signature}"),
        ];
        for text in unreadable {
            assert_eq!(verdict(text), Err(GrantError::Unreadable), "{text}");
        }
    }

    #[test]
    fn the_key_is_not_shown() {
        assert_eq!(format!("{:?}", signer(1)), "GrantSigner { .. }");
    }
}
