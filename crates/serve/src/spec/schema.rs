//! The schemas of the answers, from their types.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// The schema of what a type is serialized to.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().for_serialize().with_transform(RecursiveTransform(close));
    let settings = settings.with(|s| (s.inline_subschemas, s.meta_schema) = (true, None));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.into()
}

/// An object has no other members than those that are named.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// A server-sent event, whose data is JSON in a text.
pub(super) fn event<T: JsonSchema>() -> Value {
    let data = json!({"type": "string", "description": "JSON", "x-content-schema": of::<T>()});
    let properties = json!({"data": data, "event": {"type": "string"}});
    json!({"type": "object", "required": ["data"], "properties": properties, "additionalProperties": false})
}
