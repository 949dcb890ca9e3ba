//! A movement as the writer is given it: with all that can be said of it without asking, found out by whoever hands it
//! in.

use std::borrow::Borrow;
use std::sync::Arc;

use windlass_engine::id::RunId;
use windlass_engine::money::{Kind, Movement, place_of_key};

use crate::account::Posting;

#[derive(Debug)]
pub(super) struct Slip {
    posting: Posting,
    pub(super) place: Place,
    /// What the movement is for, as a number.
    pub(super) mark: u64,
    /// What its line in the ledger says of it, between what only the writer knows: a part of JSON.
    pub(super) line: Vec<u8>,
}

impl Slip {
    pub(super) fn of(posting: Posting) -> Self {
        let Movement { kind: _, amount, key, held, borne_by_platform } = &posting.movement;
        let mut line = serde_json::to_vec(&(key, amount, held, borne_by_platform))
            .expect("a line is plain data, and memory takes it");
        // Its brackets.
        line.pop();
        line[0] = b',';
        Slip { place: Place::of(key), mark: mark(&posting.movement), line, posting }
    }

    pub(super) fn account(&self) -> &str {
        &self.posting.account
    }

    pub(super) fn movement(&self) -> &Movement {
        &self.posting.movement
    }
}

impl Borrow<Posting> for Slip {
    fn borrow(&self) -> &Posting {
        &self.posting
    }
}

/// Where it is filed what a movement is for: a charge and what closes it in the same place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) run: Option<RunId>,
    pub(super) subject: Arc<str>,
}

impl Place {
    pub(super) fn of(key: &str) -> Self {
        if let Some((run, place)) = place_of_key(key) {
            return Place { run: Some(run), subject: place.into() };
        }
        let subject = match (Kind::of_key(key), key.split_once(':')) {
            (Some(Kind::Settle | Kind::Refund), Some((_, subject))) => {
                format!("{}:{subject}", Kind::Charge.word()).into()
            }
            (Some(Kind::Charge | Kind::Deposit | Kind::Settle | Kind::Refund) | None, _) => key.into(),
        };
        Place { run: None, subject }
    }
}

/// A number for what a movement is for: FNV-1a.
fn mark(movement: &Movement) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    movement.subject().bytes().fold(0xcbf2_9ce4_8422_2325, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHARGE: &str = "charge:run_00000000000000000000000000000001/tts/3/2";

    fn slip(movement: Movement) -> Slip {
        Slip::of(Posting { account: "a".to_owned(), movement })
    }

    #[test]
    fn a_charge_and_what_closes_it_have_one_place() {
        let place = |movement| {
            let Slip { place, mark, .. } = slip(movement);
            (place.run, place.subject, mark)
        };
        let (run, subject, mark) = place(Movement::charge(CHARGE.to_owned(), 5));
        assert_eq!((run, &*subject), (Some(RunId::new(uuid::Uuid::from_u128(1))), "tts/3/2"));
        assert_eq!(place(Movement::settle(CHARGE, 5, 3)), (run, subject, mark));
        let (run, subject, mark) = place(Movement::charge("charge:x".to_owned(), 5));
        assert_eq!((run, &*subject), (None, "charge:x"));
        assert_eq!(place(Movement::refund("charge:x", 5)), (run, subject, mark));
        assert_eq!(&*place(Movement::deposit("x", 5)).1, "deposit:x");
    }

    #[test]
    fn a_line_has_what_is_known_of_it() {
        let line = |movement| String::from_utf8(slip(movement).line).unwrap();
        assert_eq!(line(Movement::charge("charge:\"".to_owned(), 5)), r#","charge:\"",-5,5,0"#);
        assert_eq!(line(Movement::settle("charge:x", 5, 7)), r#","settle:x",0,-5,2"#);
    }
}
