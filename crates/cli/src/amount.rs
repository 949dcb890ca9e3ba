//! Amounts of money on the command line: whole numbers of the smallest unit of the currency.

/// Reads an amount that is not negative.
pub(crate) fn amount(text: &str) -> Result<i64, String> {
    match text.parse::<i64>() {
        Ok(amount) if amount >= 0 => Ok(amount),
        Ok(_) => Err("an amount is not negative".to_owned()),
        Err(_) => Err(explain(text)),
    }
}

/// Reads an amount of at least 1.
pub(crate) fn positive_amount(text: &str) -> Result<i64, String> {
    match amount(text)? {
        0 => Err("an amount to deposit is at least 1".to_owned()),
        amount => Ok(amount),
    }
}

/// Names the form of an amount and, where the text is a decimal number, the amount to write.
fn explain(text: &str) -> String {
    const RULE: &str = "amounts are whole numbers of the smallest unit, such as cents";
    let plain: String = text.chars().filter(|c| *c != '_' && *c != '\'').collect();
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let suggestion = match plain.split_once(['.', ',']) {
        Some((whole, part)) if is_number(whole) && is_number(part) && part.len() <= 2 => {
            format!("{whole}{part:0<2}").parse::<i64>().ok()
        }
        Some(_) => None,
        None => plain.parse().ok(),
    };
    match suggestion {
        Some(amount) => format!("{RULE}: write `{amount}`"),
        None => format!("{RULE}: write `1250` for 12.50"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_amounts() {
        assert_eq!(amount("1250"), Ok(1_250));
        assert_eq!(amount("0"), Ok(0));
        assert!(positive_amount("0").is_err() && amount("-5").is_err());
    }

    #[test]
    fn a_decimal_number_is_refused_with_the_amount_to_write() {
        assert!(amount("12.50").unwrap_err().ends_with("write `1250`"));
        assert!(amount("12,5").unwrap_err().ends_with("write `1250`"));
        assert!(amount("1_000").unwrap_err().ends_with("write `1000`"));
        for text in ["12.505", "ten", "", "9999999999999999999.99"] {
            assert!(amount(text).unwrap_err().contains("smallest unit"), "{text}");
        }
    }
}
