//! Durability levels: the promise behind an answered commit.

/// How much an answer survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A loss of power.
    #[default]
    Strict,
    /// The death of the process that answered; a loss of power, or of the database, may take the last moments.
    Fast,
}

impl Durability {
    /// Every level, the safest first.
    pub const ALL: [Durability; 2] = [Durability::Strict, Durability::Fast];

    /// The level that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.word() == word)
    }

    /// The word used in settings.
    pub fn word(self) -> &'static str {
        match self {
            Durability::Strict => "strict",
            Durability::Fast => "fast",
        }
    }
}
