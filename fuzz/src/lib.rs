//! What the targets share: how an input is taken apart, the facts that expressions read, and what must hold of
//! definitions. A broken promise is a panic, because that is what the fuzzer looks for.

pub mod definition;
pub mod facts;

#[path = "../../crates/engine/tests/support/dice.rs"]
pub mod dice;
#[path = "../../crates/engine/tests/support/game.rs"]
pub mod game;
#[path = "../../crates/engine/tests/support/moves.rs"]
mod moves;
#[path = "../../crates/engine/tests/support/random.rs"]
mod random;
#[path = "../../crates/engine/tests/support/world.rs"]
mod world;

/// Stands between the parts of an input. No text in UTF-8 has this byte in it.
const BETWEEN: u8 = 0xff;

/// The text of an input and what stands behind it; `None` if the first is no text.
pub fn text_and_rest(input: &[u8]) -> Option<(&str, &[u8])> {
    let end = input.iter().position(|byte| *byte == BETWEEN).unwrap_or(input.len());
    let text = std::str::from_utf8(&input[..end]).ok()?;
    Some((text, input.get(end + 1..).unwrap_or_default()))
}
