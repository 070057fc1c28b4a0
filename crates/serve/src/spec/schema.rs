//! Derives the response schemas from Rust types.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};

/// The schema of the serialized form of a type.
pub(super) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().for_serialize().with_transform(RecursiveTransform(close));
    let settings = settings.with(|s| (s.inline_subschemas, s.meta_schema) = (true, None));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.into()
}

/// Disallows additional properties in objects.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// The schema of a server-sent event whose data is JSON.
pub(super) fn event<T: JsonSchema>() -> Value {
    let data = json!({"type": "string", "description": "JSON", "x-content-schema": of::<T>()});
    let properties = json!({"data": data, "event": {"type": "string"}});
    json!({"type": "object", "required": ["data"], "properties": properties, "additionalProperties": false})
}
