//! Rows as they are carried from one store to another: the same for every backend.

/// The value of one column of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Id([u8; 16]),
    Bytes(Vec<u8>),
    Number(i64),
    Flag(bool),
    Text(String),
}

/// The values of one row, in the order of the columns of its table.
pub(crate) type Row = Vec<Value>;

impl Value {
    pub(crate) fn id(&self) -> Option<[u8; 16]> {
        if let Value::Id(id) = self { Some(*id) } else { None }
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if let Value::Bytes(bytes) = self { Some(bytes) } else { None }
    }

    pub(crate) fn number(&self) -> Option<i64> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        if let Value::Flag(flag) = self { Some(*flag) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = self { Some(text) } else { None }
    }

    /// About how much memory it takes.
    pub(crate) fn weight(&self) -> usize {
        let more = match self {
            Value::Bytes(bytes) => bytes.len(),
            Value::Text(text) => text.len(),
            Value::Null | Value::Id(_) | Value::Number(_) | Value::Flag(_) => 0,
        };
        size_of::<Value>() + more
    }
}

/// The number of rows and a digest of their contents, independent of their order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) n_rows: u64,
    sum: u128,
}

impl Tally {
    pub(crate) fn add(&mut self, row: &Row) {
        self.n_rows += 1;
        self.sum = self.sum.wrapping_add(digest(row));
    }
}

/// FNV-1a in 128 bits: it has to notice a mistake, not malice.
fn digest(row: &Row) -> u128 {
    let mut digest = Digest(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    for value in row {
        match value {
            Value::Null => digest.add(0, &[]),
            Value::Id(id) => digest.add(1, id),
            Value::Bytes(bytes) => digest.add(2, bytes),
            Value::Number(number) => digest.add(3, &number.to_le_bytes()),
            Value::Flag(flag) => digest.add(4, &[u8::from(*flag)]),
            Value::Text(text) => digest.add(5, text.as_bytes()),
        }
    }
    digest.0
}

struct Digest(u128);

impl Digest {
    /// Adds a value with its kind and its length, so that no two rows read the same.
    fn add(&mut self, kind: u8, bytes: &[u8]) {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes();
        for byte in [kind].iter().chain(&length).chain(bytes) {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn tally(rows: &[Row]) -> Tally {
        let mut tally = Tally::default();
        rows.iter().for_each(|row| tally.add(row));
        tally
    }

    fn texts(texts: &[&str]) -> Row {
        texts.iter().map(|text| Value::Text((*text).to_owned())).collect()
    }

    #[test]
    fn the_order_of_rows_does_not_matter_and_everything_else_does() {
        let (one, other) = (texts(&["ab", "c"]), texts(&["a", "bc"]));
        assert_eq!(tally(&[one.clone(), other.clone()]), tally(&[other.clone(), one.clone()]));
        assert_ne!(tally(from_ref(&one)), tally(&[other]));
        assert_ne!(tally(from_ref(&one)), tally(&[one.clone(), one]));
        assert_ne!(tally(&[vec![Value::Null]]), tally(&[vec![Value::Text(String::new())]]));
        assert_ne!(tally(&[vec![Value::Number(0)]]), tally(&[vec![Value::Flag(false)]]));
    }
}
