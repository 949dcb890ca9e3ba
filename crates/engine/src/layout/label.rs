//! The room that text takes, and text cut to fit.

/// Whether a character takes two cells in a terminal and the whole height of the letters in width elsewhere: East Asian
/// wide and full-width characters, and most emoji.
pub(super) fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x1100..=0x115F | 0x231A..=0x231B | 0x2329..=0x232A | 0x23E9..=0x23EC | 0x25FD..=0x25FE | 0x2614..=0x2615
        | 0x2648..=0x2653 | 0x26A1 | 0x26BD..=0x26BE | 0x2705 | 0x274C | 0x2753..=0x2757 | 0x2795..=0x2797 | 0x2B50
        | 0x2E80..=0x303E | 0x3041..=0x33FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF | 0xA000..=0xA4CF | 0xA960..=0xA97F
        | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFE10..=0xFE19 | 0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F | 0x1F680..=0x1F6FF | 0x1F900..=0x1F9FF | 0x20000..=0x3FFFD)
}

/// Whether a character takes no room: marks over others, joiners, variation selectors.
fn is_mark(c: char) -> bool {
    matches!(u32::from(c),
        0x0300..=0x036F | 0x0483..=0x0489 | 0x0591..=0x05BD | 0x0610..=0x061A | 0x064B..=0x065F | 0x0E31
        | 0x0E34..=0x0E3A | 0x0E47..=0x0E4E | 0x1AB0..=0x1AFF | 0x1DC0..=0x1DFF | 0x200B..=0x200D | 0x20D0..=0x20FF
        | 0xFE00..=0xFE0F | 0xFE20..=0xFE2F | 0xFEFF)
}

/// Whether a character would change how text beside it reads: controls, and overrides of the direction.
fn is_disruptive(c: char) -> bool {
    c.is_control() || matches!(u32::from(c), 0x200E..=0x200F | 0x2028..=0x202E | 0x2066..=0x2069 | 0xFEFF)
}

/// How text is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Font {
    /// Cells of a terminal.
    Cells,
    /// Pixels of a proportional font of this size, in the widest of the usual ones.
    Pixels { size: i32 },
}

impl Font {
    pub(super) fn width(self, text: &str) -> i32 {
        match self {
            Font::Cells => text.chars().map(cells).sum(),
            Font::Pixels { size } => {
                let all: i32 = text.chars().map(thousandths).sum();
                (all.saturating_mul(size) + 999) / 1_000
            }
        }
    }

    /// The text without characters that disturb others, cut to a width. Looks at no more of it than fits.
    pub(super) fn cut(self, text: &str, most: i32) -> String {
        let mut kept = String::new();
        // Longer texts do not fit, whatever their characters: marks take no room.
        let mut chars = text.trim().chars().take(400).map(|c| if is_disruptive(c) { ' ' } else { c });
        while let Some(c) = chars.next() {
            kept.push(c);
            if self.width(&kept) > most {
                while self.width(&kept) + self.width("…") > most && kept.pop().is_some() {}
                kept.truncate(kept.trim_end().len());
                kept.push('…');
                return kept;
            }
            if kept.ends_with(' ') {
                // A row of spaces is one.
                while chars.clone().next() == Some(' ') {
                    chars.next();
                }
            }
        }
        kept
    }
}

pub(super) fn cells(c: char) -> i32 {
    match c {
        _ if is_mark(c) => 0,
        _ if is_wide(c) => 2,
        _ => 1,
    }
}

/// The width of a character in thousandths of the size of the letters.
fn thousandths(c: char) -> i32 {
    match c {
        _ if is_mark(c) => 0,
        _ if is_wide(c) => 1_000,
        'i' | 'j' | 'l' | '\'' | '.' | ',' | ':' | ';' | '|' | '!' | 'I' => 300,
        ' ' | 'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '{' | '}' | '/' | '\\' | '-' | '·' | '"' | '*' => {
            400
        }
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' | '→' | '≥' | '≤' => 950,
        'A'..='Z' | '&' | '_' | '<' | '>' | '=' | '+' | '~' | '#' => 690,
        'a'..='z' | '0'..='9' | '$' | '?' => 600,
        _ => 700,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_count_double() {
        assert_eq!(Font::Cells.width("审批ab"), 6);
        assert_eq!(Font::Cells.width("e\u{301}"), 1);
        let font = Font::Pixels { size: 13 };
        assert_eq!(font.width("审批"), 26);
        assert!(font.width("ab") < 20);
    }

    #[test]
    fn long_text_is_cut_to_its_room() {
        for text in ["a rather long label of a node", "一个相当长的节点标签一个相当长", &"x".repeat(10_000)]
        {
            for font in [Font::Cells, Font::Pixels { size: 13 }] {
                let cut = font.cut(text, 20);
                assert!(cut.ends_with('…') && font.width(&cut) <= 20, "{cut}");
            }
        }
        assert_eq!(Font::Cells.cut("short", 20), "short");
    }

    #[test]
    fn text_that_disturbs_others_is_replaced() {
        assert_eq!(Font::Cells.cut("a\nb\u{202e}c\u{2066}  d", 20), "a b c d");
        assert_eq!(Font::Cells.cut(&"\u{301}".repeat(100_000), 20).chars().count(), 400);
    }
}
