//! The schemas of the answers. A test holds them against what the endpoints really answer.

use serde_json::{Value, json};

fn string() -> Value {
    json!({"type": "string"})
}

fn number() -> Value {
    json!({"type": "number"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn nullable(mut schema: Value) -> Value {
    schema["nullable"] = json!(true);
    schema
}

/// An object with exactly these members, all but the `optional` ones.
fn object<const N: usize>(members: [(&str, Value); N], optional: &[&str]) -> Value {
    let required: Vec<&str> =
        members.iter().map(|(name, _)| *name).filter(|n| !optional.contains(n)).collect();
    let properties: serde_json::Map<String, Value> =
        members.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
    let mut schema = json!({"type": "object", "properties": properties, "additionalProperties": false});
    // An empty list is no valid schema.
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

/// One value for a text, a list for a list.
fn one_or_many(one: Value) -> Value {
    json!({"anyOf": [one.clone(), list(one)]})
}

fn detected() -> Value {
    let confidence = json!({"type": "number", "minimum": 0, "maximum": 100});
    object([("confidence", confidence), ("language", string())], &[])
}

pub(super) fn translation() -> Value {
    let place = json!({"type": "array", "items": count(), "minItems": 4, "maxItems": 4});
    object(
        [
            ("translatedText", one_or_many(string())),
            ("detectedLanguage", one_or_many(detected())),
            ("alternatives", one_or_many(list(string()))),
            ("alignment", list(list(place))),
        ],
        &["detectedLanguage", "alternatives", "alignment"],
    )
}

pub(super) fn languages() -> Value {
    list(object([("code", string()), ("name", string()), ("targets", list(string()))], &[]))
}

pub(super) fn detection() -> Value {
    list(detected())
}

pub(super) fn health() -> Value {
    object([("status", json!({"type": "string", "enum": ["ok"]}))], &[])
}

pub(super) fn settings() -> Value {
    let flag = || json!({"type": "boolean"});
    let side = || object([("code", string()), ("name", string())], &[]);
    object(
        [
            ("charLimit", count()),
            ("frontendTimeout", count()),
            ("apiKeys", flag()),
            ("keyRequired", flag()),
            ("suggestions", flag()),
            ("filesTranslation", flag()),
            ("supportedFilesFormat", list(string())),
            ("language", object([("source", side()), ("target", side())], &[])),
        ],
        &[],
    )
}

pub(super) fn file() -> Value {
    object([("translatedFileUrl", string())], &[])
}

pub(super) fn text() -> Value {
    string()
}

/// A server-sent event; its data is JSON.
pub(super) fn event() -> Value {
    let data = json!({"type": "string", "description": "{\"text\": …, \"done\": …} or {\"error\": …, \"done\": true}"});
    object([("data", data), ("event", string())], &["event"])
}

/// Numbers by layer, head, row and column.
fn maps() -> Value {
    list(list(list(list(number()))))
}

fn by_kind(value: fn() -> Value) -> Value {
    object([("encoder", value()), ("decoder", value()), ("cross", value())], &[])
}

/// What a head does in the sentence.
fn hint() -> Value {
    let texts = ["name", "short", "text"].map(|field| (field, string()));
    let [name, short, text] = texts;
    object([name, short, text, ("share", number()), ("spread", number())], &[])
}

pub(super) fn attention() -> Value {
    object(
        [
            ("source", list(string())),
            ("target", list(string())),
            ("encoder", maps()),
            ("decoder", maps()),
            ("cross", maps()),
            ("hints", by_kind(|| list(object([("mean", hint()), ("heads", list(hint()))], &[])))),
            ("sharpest", by_kind(|| nullable(count()))),
            ("translation", string()),
        ],
        &[],
    )
}

pub(super) fn positions() -> Value {
    let table = || list(list(number()));
    object([("kind", string()), ("interleaved", table()), ("own", nullable(table()))], &[])
}

pub(super) fn models() -> Value {
    let value = || nullable(number());
    let point = object([("step", count()), ("loss", value()), ("bleu", value()), ("rate", value())], &[]);
    let example = object([("source", string()), ("target", string()), ("reference", string())], &[]);
    list(object(
        [
            ("source", string()),
            ("target", string()),
            ("name", string()),
            ("parameters", count()),
            ("parts", object([("embeddings", count()), ("encoder", count()), ("decoder", count())], &[])),
            ("config", json!({"type": "object", "description": "The settings of the model"})),
            ("training", list(point)),
            ("examples", list(example)),
            ("speed", object([("tokens_per_s", number()), ("requests", count())], &[])),
        ],
        &[],
    ))
}

pub(super) fn document() -> Value {
    json!({"type": "object", "required": ["openapi", "info", "paths"]})
}
