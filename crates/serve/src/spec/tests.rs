use super::*;
use crate::tests::{form, get, post, request, send, usual};

/// The OpenAPI document as JSON.
fn usual_spec() -> Value {
    serde_json::to_value(openapi(&usual())).unwrap()
}

/// The errors of a value against a schema, for the schema keywords that this document uses.
fn faults(value: &Value, schema: &Value, spec: &Value, at: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let schema =
            spec.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("{name} is missing"));
        return faults(value, schema, spec, at);
    }
    if value.is_null() && schema["nullable"] == true {
        return Vec::new();
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = any.iter().any(|schema| faults(value, schema, spec, at).is_empty());
        return if fits { Vec::new() } else { vec![format!("{at}: {value} fits none of {any:?}")] };
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        other => panic!("{at}: the type {other:?} is not known"),
    };
    if !fits {
        return vec![format!("{at}: {value} is no {}", schema["type"])];
    }
    let mut found = Vec::new();
    if schema["enum"].as_array().is_some_and(|values| !values.contains(value)) {
        found.push(format!("{at}: {value} is not one of {}", schema["enum"]));
    }
    if let Some(number) = value.as_f64() {
        let below = schema["minimum"].as_f64().is_some_and(|least| number < least);
        let above = schema["maximum"].as_f64().is_some_and(|most| number > most);
        if below || above {
            found.push(format!("{at}: {value} is out of range"));
        }
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(faults(item, &schema["items"], spec, &format!("{at}/{i}")));
    }
    let properties = &schema["properties"];
    for (name, inner) in value.as_object().into_iter().flatten() {
        match properties.get(name) {
            Some(schema) => found.extend(faults(inner, schema, spec, &format!("{at}/{name}"))),
            None if schema["additionalProperties"] == false => {
                found.push(format!("{at}: {name} is not described"))
            }
            None => {}
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            found.push(format!("{at}: {name} is missing"));
        }
    }
    found
}

/// The content type and schema of an endpoint's response with this status.
fn answer<'a>(spec: &'a Value, path: &str, status: u16) -> (&'a str, &'a Value) {
    let (_, operation) = spec["paths"][path].as_object().and_then(|p| p.iter().next()).unwrap();
    let content = operation["responses"][status.to_string()]["content"].as_object();
    let (kind, content) = content.and_then(|c| c.iter().next()).unwrap_or_else(|| panic!("{path} {status}"));
    (kind, &content["schema"])
}

/// The values in a response that a schema describes: the JSON value, the events of a stream, or the
/// text.
fn described(kind: &str, body: &str) -> Vec<Value> {
    match kind {
        JSON => vec![serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {body}"))],
        EVENTS => {
            body.trim_end().split("\n\n").map(|event| json!({"data": event.strip_prefix("data: ")})).collect()
        }
        _ => vec![json!(body)],
    }
}

#[test]
fn every_example_fits_its_schema() {
    let spec = usual_spec();
    for endpoint in &ENDPOINTS {
        let (kind, schema) = answer(&spec, endpoint.path, 200);
        assert_eq!(kind, endpoint.kind);
        for value in described(kind, endpoint.answer) {
            assert_eq!(faults(&value, schema, &spec, endpoint.path), Vec::<String>::new());
        }
    }
}

#[test]
fn schemas_come_from_the_types_of_the_answers() {
    #[derive(JsonSchema, Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        some_text: Option<&'static str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Vec<[usize; 2]>")]
        new_field: Option<Vec<[usize; 2]>>,
    }
    let pair = json!({
        "type": "array",
        "items": {"type": "integer", "format": "uint", "minimum": 0},
        "minItems": 2,
        "maxItems": 2,
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "someText": {"type": "string", "nullable": true},
            "newField": {"type": "array", "items": pair},
        },
        "required": ["someText"],
        "additionalProperties": false,
    });
    assert_eq!(schema::of::<Answer>(), expected);
}

#[test]
fn the_document_names_what_is_required_and_refuses_the_rest() {
    let spec = usual_spec();
    let schema = &spec["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(schema["required"], json!(["q", "source", "target"]));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["target"]["enum"], json!(["en", "fr", "zh-Hans"]));
    let request = |value: Value| faults(&value, schema, &spec, "");
    assert_eq!(
        request(json!({"q": ["a"], "source": "auto", "target": "fr", "alternatives": 2})),
        Vec::<String>::new()
    );
    assert_eq!(request(json!({"q": 0, "source": "en", "target": "fr"})).len(), 1);
    assert_eq!(request(json!({"q": "a", "source": "en", "target": "fr", "glossaries": {}})).len(), 1);
    for glossary in [json!("it"), json!({"file": "fichier"}), json!([["file", "fichier"]])] {
        let value = json!({"q": "a", "source": "en", "target": "fr", "glossary": glossary});
        assert_eq!(request(value), Vec::<String>::new());
    }
    assert_eq!(spec["paths"]["/download_file/{name}"]["get"]["parameters"][0]["in"], "path");
}

#[tokio::test]
async fn what_is_answered_is_what_is_described() {
    let app = usual();
    let spec = get(&app, "/spec").await.good();
    let upload = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nA dog.\r\n--x\r\n\
                  Content-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n--x\r\n\
                  Content-Disposition: form-data; name=\"target\"\r\n\r\nfr\r\n--x--\r\n";
    let file =
        send(&app, request("POST", "/translate_file", "multipart/form-data; boundary=x", upload)).await;
    let name = file.good()["translatedFileUrl"].as_str().unwrap().to_owned();
    let download = get(&app, &name).await;
    let stream = "/v1/translate_file/stream";
    let followed = send(&app, request("POST", stream, "multipart/form-data; boundary=x", upload)).await;
    assert!(followed.body.contains("translatedFileUrl"), "{}", followed.body);
    let text = json!({"q": "A dog.", "source": "en", "target": "fr"});
    let list =
        json!({"q": ["A dog.", "Le chien dort."], "source": "auto", "target": "fr", "alternatives": 2});
    let markup =
        json!({"q": "A <b>dog</b>.", "source": "en", "target": "fr", "format": "html", "alignment": true});
    for (path, answer_to) in [
        ("/translate", post(&app, "/translate", text.clone()).await),
        ("/translate", post(&app, "/translate", list).await),
        ("/translate", post(&app, "/translate", markup).await),
        ("/translate", form(&app, "/translate", "q=a&source=en").await),
        ("/languages", get(&app, "/languages").await),
        ("/detect", form(&app, "/detect", "q=A+dog").await),
        ("/detect", form(&app, "/detect", "").await),
        ("/health", get(&app, "/health").await),
        ("/frontend/settings", get(&app, "/frontend/settings").await),
        ("/translate_file", file),
        (stream, followed),
        (stream, send(&app, request("POST", stream, "multipart/form-data; boundary=x", "--x--")).await),
        ("/download_file/{name}", download),
        ("/download_file/{name}", get(&app, "/download_file/other.txt").await),
        ("/download_file/{name}", get(&app, "/download_file/%ff").await),
        ("/v1/translate/stream", post(&app, "/v1/translate/stream", text.clone()).await),
        ("/v1/attention", post(&app, "/v1/attention", text.clone()).await),
        ("/v1/steps", post(&app, "/v1/steps", text.clone()).await),
        ("/v1/steps", form(&app, "/v1/steps", "q=A+dog&stack=decoder&layer=2&head=1&without=mask").await),
        ("/v1/steps", form(&app, "/v1/steps", "q=A+dog&layer=9").await),
        ("/v1/beam", post(&app, "/v1/beam", text).await),
        ("/v1/beam", form(&app, "/v1/beam", "q=A+dog&beam=0").await),
        ("/v1/positions", get(&app, "/v1/positions").await),
        ("/v1/positions", get(&app, "/v1/positions?model=fr-zh-Hans").await),
        ("/v1/positions", get(&app, "/v1/positions?model=other").await),
        ("/v1/model", get(&app, "/v1/model").await),
        ("/metrics", get(&app, "/metrics").await),
        ("/docs", get(&app, "/docs").await),
    ] {
        let (kind, schema) = answer(&spec, path, answer_to.status);
        assert_eq!(answer_to.header("content-type").split(';').next(), Some(kind), "{path}");
        for value in described(kind, &answer_to.body) {
            assert_eq!(faults(&value, schema, &spec, path), Vec::<String>::new());
            if kind == EVENTS {
                let data: Value = serde_json::from_str(value["data"].as_str().unwrap()).unwrap();
                let inner = &schema["properties"]["data"]["x-content-schema"];
                assert_eq!(faults(&data, inner, &spec, path), Vec::<String>::new());
            }
        }
    }
    let (_, schema) = answer(&spec, "/spec", 200);
    assert_eq!(faults(&spec, schema, &spec, "/spec"), Vec::<String>::new());
}

#[test]
fn a_history_fits_its_schema() {
    // Training points have a loss and a learning rate, validation points a BLEU score; the others
    // are null.
    let spec = usual_spec();
    let (_, schema) = answer(&spec, "/v1/model", 200);
    let point = &schema["items"]["properties"]["training"]["items"];
    for value in [
        json!({"step": 1, "loss": 2.5, "bleu": null, "rate": 0.1}),
        json!({"step": 1, "loss": null, "bleu": 20.0, "rate": null}),
    ] {
        assert_eq!(faults(&value, point, &spec, ""), Vec::<String>::new());
    }
}
