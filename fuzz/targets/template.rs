#![no_main]
//! References and the templates of all forms: as text, and as JSON where the text is some.

use serde_json::{Value, json};
use windlass_engine::reference::{Template, parse_dollar, parse_path, parse_variable};
use windlass_fuzz::{facts::Everywhere, text_and_rest};

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Some((text, rest)) = text_and_rest(input) else { return };
    let facts = Everywhere::of(rest);
    if let Some(Ok(reference)) = parse_dollar(text) {
        reference.resolve(&facts);
    }
    if let Ok(reference) = parse_variable(text) {
        reference.resolve(&facts);
    }
    let _ = parse_path(text);
    let mut values = vec![json!(text), json!({ "x": [text] })];
    values.extend(serde_json::from_str::<Value>(text));
    for value in &values {
        for read in [Template::from_steps, Template::from_dag, Template::from_input_map] {
            let Ok(template) = read(value) else { continue };
            let made = template.resolve(&facts);
            assert_eq!(*template.look(&facts), made, "looking and making give the same");
            assert_eq!(template.is_literal(), template.refs().is_empty(), "a literal has no references");
        }
    }
});
