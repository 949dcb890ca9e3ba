use proptest::prelude::*;
use uuid::Uuid;

use super::*;
use crate::id::RunId;
use crate::money::{Amount, charge_key};

fn key(n: u64) -> String {
    charge_key(RunId::new(Uuid::from_u128(1)), "tts/3", crate::counter::Visit(n))
}

fn book(balance: i64) -> AccountLedger {
    let mut book = AccountLedger::default();
    book.post(Movement::deposit("first", Amount(balance))).unwrap();
    book
}

#[test]
fn unused_money_comes_back_and_the_platform_bears_the_rest() {
    assert_eq!(
        settle(Amount(100), Amount(60)),
        Settlement { amount: Amount(40), borne_by_platform: Amount::ZERO }
    );
    assert_eq!(
        settle(Amount(100), Amount(130)),
        Settlement { amount: Amount::ZERO, borne_by_platform: Amount(30) }
    );
    assert_eq!(
        settle(Amount(100), Amount(100)),
        Settlement { amount: Amount::ZERO, borne_by_platform: Amount::ZERO }
    );
    assert_eq!(
        settle(Amount(100), Amount(i64::MIN)),
        Settlement { amount: Amount(100), borne_by_platform: Amount::ZERO }
    );
}

#[test]
fn a_charge_is_made_once_and_closed_once() {
    let mut book = book(100);
    let charge = Movement::charge(key(1), Amount(60));
    assert_eq!(book.post(charge.clone()), Ok(Posted::New { balance_after: Amount(40) }));
    assert_eq!(book.post(charge), Ok(Posted::Already));
    assert_eq!(book.account(), Account { balance: Amount(40), held: Amount(60) });
    assert_eq!(book.post(Movement::charge(key(1), Amount(50))), Err(LedgerFault::Different { key: key(1) }));
    let done = Movement::settle(&key(1), Amount(60), Amount(25));
    assert_eq!(book.post(done.clone()), Ok(Posted::New { balance_after: Amount(75) }));
    assert_eq!(book.post(done), Ok(Posted::Already));
    let refund = book.post(Movement::refund(&key(1), Amount(60)));
    assert!(matches!(refund, Err(LedgerFault::Closed { by: "settle", .. })), "{refund:?}");
    assert_eq!(book.account(), Account { balance: Amount(75), held: Amount::ZERO });
}

#[test]
fn no_run_spends_more_than_the_balance() {
    let mut book = book(100);
    book.post(Movement::charge(key(1), Amount(60))).unwrap();
    let short = LedgerFault::Insufficient { balance: Amount(40), needed: Amount(41) };
    assert_eq!(book.post(Movement::charge(key(2), Amount(41))), Err(short.clone()));
    let both = [Movement::charge(key(1), Amount(60)), Movement::charge(key(2), Amount(41))];
    assert_eq!(Account { balance: Amount(100), held: Amount::ZERO }.check(&both), Err(short));
    assert_eq!(
        book.post(Movement::charge(key(2), Amount(40))),
        Ok(Posted::New { balance_after: Amount::ZERO })
    );
}

#[test]
fn money_does_not_come_from_nowhere() {
    let mut book = book(100);
    assert!(matches!(book.post(Movement::refund(&key(1), Amount(60))), Err(LedgerFault::NoCharge { .. })));
    book.post(Movement::charge(key(1), Amount(60))).unwrap();
    for bad in [
        Movement::refund(&key(1), Amount(61)),
        Movement::settle(&key(1), Amount(61), Amount::ZERO),
        Movement { amount: Amount(61), ..Movement::settle(&key(1), Amount(60), Amount::ZERO) },
        Movement { amount: Amount(30), ..Movement::refund(&key(1), Amount(60)) },
        Movement::charge(key(2), Amount(-5)),
        Movement::charge(key(2), Amount(i64::MIN)),
        Movement::deposit("x", Amount(-5)),
        Movement { key: "charge:x".to_owned(), ..Movement::deposit("x", Amount(5)) },
    ] {
        let refused = book.post(bad.clone());
        assert!(matches!(refused, Err(LedgerFault::Malformed { .. })), "{bad:?} {refused:?}");
    }
    let flood = Movement::deposit("flood", Amount::MAX);
    assert!(matches!(book.post(flood), Err(LedgerFault::Overflow { .. })));
    assert!(book.is_balanced());
}

#[test]
fn held_money_always_has_room_to_come_back() {
    let mut book = book(100);
    book.post(Movement::charge(key(1), Amount(60))).unwrap();
    let flood = Movement::deposit("flood", Amount(i64::MAX - 99));
    assert!(matches!(book.post(flood), Err(LedgerFault::Overflow { .. })));
    book.post(Movement::deposit("just so much", Amount(i64::MAX - 100))).unwrap();
    assert_eq!(
        book.post(Movement::refund(&key(1), Amount(60))),
        Ok(Posted::New { balance_after: Amount::MAX })
    );
}

fn movement() -> impl Strategy<Value = Movement> {
    let (call, estimate) = (0u64..6, 0i64..80);
    prop_oneof![
        (call.clone(), estimate.clone()).prop_map(|(n, e)| Movement::charge(key(n), Amount(e))),
        (call.clone(), estimate.clone(), 0i64..120).prop_map(|(n, e, a)| Movement::settle(
            &key(n),
            Amount(e),
            Amount(a)
        )),
        (call, estimate).prop_map(|(n, e)| Movement::refund(&key(n), Amount(e))),
        (0u8..4, -5i64..200).prop_map(|(n, amount)| Movement::deposit(&n.to_string(), Amount(amount))),
        (any::<i64>(), any::<i64>(), 0u64..6).prop_map(|(amount, held, n)| Movement {
            amount: Amount(amount),
            held: Amount(held),
            ..Movement::settle(&key(n), Amount::ZERO, Amount::ZERO)
        }),
    ]
}

proptest! {
    #[test]
    fn the_balance_is_the_sum_and_every_charge_is_closed_at_most_once(
        // Few different estimates, so that closings often fit their charge.
        movements in prop::collection::vec(movement(), 0..150),
    ) {
        let mut book = AccountLedger::default();
        for mut movement in movements {
            if matches!(movement.kind, MovementKind::Charge | MovementKind::Settle | MovementKind::Refund) && movement.held.0.unsigned_abs() < 80 {
                let estimate = (movement.held.0 % 2).abs() * 20 + 20;
                movement = match movement.kind {
                    MovementKind::Charge => Movement::charge(movement.key, Amount(estimate)),
                    MovementKind::Settle => Movement::settle(&movement.key, Amount(estimate), movement.amount),
                    MovementKind::Refund | MovementKind::Deposit => Movement::refund(&movement.key, Amount(estimate)),
                };
            }
            let before = book.clone();
            match book.post(movement.clone()) {
                Ok(Posted::New { balance_after }) => prop_assert_eq!(balance_after, book.account().balance),
                Ok(Posted::Already) | Err(_) => prop_assert_eq!(&book, &before),
            }
            if let Ok(Posted::New { .. }) = before.clone().post(movement.clone()) {
                prop_assert_eq!(book.post(movement), Ok(Posted::Already));
            }
            prop_assert!(book.is_balanced());
            prop_assert!(book.account().balance >= Amount::ZERO && book.account().held >= Amount::ZERO);
        }
        for charge in book.movements().filter(|m| m.kind == MovementKind::Charge) {
            let closings = book.movements().filter(|m| m.kind != MovementKind::Charge && m.subject() == charge.subject());
            prop_assert!(closings.count() <= 1);
        }
    }
}
