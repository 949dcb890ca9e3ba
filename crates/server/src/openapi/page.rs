//! Pages for people: the document and the error codes, without a script and without anything from elsewhere.

use std::fmt::Write as _;

use serde_json::Value;

use crate::problem::Code;

/// How the pages look.
pub(super) const STYLE: &str = include_str!("style.css");
const ERRORS: &str = include_str!("../../../../docs/errors.md");
/// How deep a schema is shown in place; deeper ones are named.
const DEPTH: usize = 4;

/// The front page: name, version and links.
pub(super) fn front(version: &str) -> String {
    let body = format!(
        "<h1>Windlass</h1>\n<p>Durable workflows and job queues. Version {}.</p>\n\
         <ul>\n<li><a href=\"/docs\">HTTP reference</a></li>\n\
         <li><a href=\"/docs/errors\">Error codes</a></li>\n\
         <li><a href=\"/openapi.json\">OpenAPI document</a></li>\n\
         <li><a href=\"/api/v1/runs\">Runs</a>, <a href=\"/api/v1/jobs\">jobs</a> and \
         <a href=\"/api/v1/flows\">flows</a> as JSON</li>\n\
         <li><a href=\"/readyz\">Readiness</a> and <a href=\"/metrics\">metrics</a></li>\n</ul>\n",
        escape(version)
    );
    page("Windlass", &body)
}

/// The OpenAPI document as a page.
pub(super) fn document(document: &Value) -> String {
    let mut body = String::from("<h1>Windlass</h1>\n");
    let about = document["info"]["description"].as_str().unwrap_or_default();
    push(&mut body, format_args!("<p>{}</p>\n", escape(about)));
    body.push_str(
        "<p><a href=\"/openapi.json\">openapi.json</a> · <a href=\"/docs/errors\">error codes</a></p>\n",
    );
    for tag in document["tags"].as_array().into_iter().flatten() {
        let (name, about) =
            (tag["name"].as_str().unwrap_or_default(), tag["description"].as_str().unwrap_or_default());
        push(&mut body, format_args!("<h2 id=\"{0}\">{0}</h2>\n<p>{1}</p>\n", escape(name), escape(about)));
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                if operation["tags"][0].as_str() == Some(name) {
                    self::operation(&mut body, document, method, path, operation);
                }
            }
        }
    }
    page("Windlass: the HTTP surface", &body)
}

fn operation(body: &mut String, document: &Value, method: &str, path: &str, operation: &Value) {
    let summary = operation["summary"].as_str().unwrap_or_default();
    push(
        body,
        format_args!(
            "<details><summary><code class=\"{method}\">{}</code> <code>{}</code> {}</summary>\n",
            method.to_uppercase(),
            escape(path),
            escape(summary)
        ),
    );
    if let Some(about) = operation["description"].as_str() {
        push(body, format_args!("<p>{}</p>\n", escape(about)));
    }
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        push(
            body,
            format_args!(
                "<p><code>{}</code> <small>{}</small> {}</p>\n",
                escape(parameter["name"].as_str().unwrap_or_default()),
                escape(parameter["in"].as_str().unwrap_or_default()),
                escape(parameter["description"].as_str().unwrap_or_default())
            ),
        );
    }
    if let Some(content) = operation["requestBody"]["content"].as_object() {
        for media in content.values() {
            push(
                body,
                format_args!("<p>Body</p>\n<pre>{}</pre>\n", escape(&sketch(document, &media["schema"], 0))),
            );
        }
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let about = response["description"].as_str().unwrap_or_default();
        push(body, format_args!("<p><code>{}</code> {}</p>\n", escape(status), escape(about)));
        let media = response["content"].as_object().into_iter().flatten();
        for (_, media) in media.filter(|_| status != "default") {
            push(body, format_args!("<pre>{}</pre>\n", escape(&sketch(document, &media["schema"], 0))));
        }
    }
    body.push_str("</details>\n");
}

/// A schema as it would look in JSON. Recurses at most [`DEPTH`] deep.
fn sketch(document: &Value, schema: &Value, depth: usize) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|place| place.rsplit('/').next()) {
        if depth >= DEPTH {
            return name.to_owned();
        }
        return sketch(document, &document["components"]["schemas"][name], depth + 1);
    }
    let parts = ["allOf", "oneOf", "anyOf"].iter().find_map(|word| Some((*word, schema[*word].as_array()?)));
    // Alternatives beside properties only say which of them are required.
    if let Some((word, parts)) = parts.filter(|_| schema["properties"].is_null()) {
        let shown = parts.iter().filter(|part| part["type"] != "null" && depth < DEPTH);
        let shown: Vec<String> = shown.map(|part| sketch(document, part, depth + 1)).collect();
        return shown.join(if word == "allOf" { " and " } else { " or " });
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some(fields) = schema["properties"].as_object().filter(|_| depth < DEPTH) {
        let pad = "  ".repeat(depth + 1);
        let line =
            |(name, field): (&String, &Value)| format!("{pad}{name}: {}", sketch(document, field, depth + 1));
        let lines: Vec<String> = fields.iter().map(line).collect();
        return format!("{{\n{}\n{}}}", lines.join("\n"), "  ".repeat(depth));
    }
    if schema["items"].is_object() && depth < DEPTH {
        return format!("[{}]", sketch(document, &schema["items"], depth + 1));
    }
    match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.collect::<Vec<_>>().join(" | ")
        }
        _ => "any".to_owned(),
    }
}

/// Every error code as a page: the document that explains them, with an anchor for each.
pub(super) fn errors() -> String {
    let mut body = String::new();
    for line in ERRORS.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(title) = line.strip_prefix("# ") {
            push(&mut body, format_args!("<h1>{}</h1>\n", escape(title)));
        } else if let Some(word) = line.strip_prefix("## ") {
            let status =
                Code::ALL.iter().find(|code| code.word() == word).map_or(0, |code| code.status().as_u16());
            push(&mut body, format_args!("<h2 id=\"{0}\">{0} <small>{status}</small></h2>\n", escape(word)));
        } else {
            push(&mut body, format_args!("<p>{}</p>\n", escape(line)));
        }
    }
    page("Windlass: error codes", &body)
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <link rel=\"stylesheet\" href=\"/docs/style.css\"><title>{}</title></head>\n<body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

fn push(body: &mut String, text: std::fmt::Arguments<'_>) {
    body.write_fmt(text).expect("writing into memory does not fail");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_that_names_itself_ends() {
        let document = json!({ "components": { "schemas": { "Node": {
            "type": "object", "properties": { "next": { "$ref": "#/components/schemas/Node" }, "<a>": { "type": "string" } }
        } } } });
        let shown = sketch(&document, &json!({ "$ref": "#/components/schemas/Node" }), 0);
        assert!(shown.contains("next") && shown.len() < 1_000, "{shown}");
    }

    #[test]
    fn every_code_has_its_anchor() {
        let page = errors();
        for code in Code::ALL {
            assert!(page.contains(&format!("id=\"{}\"", code.word())), "{}", code.word());
        }
    }
}
