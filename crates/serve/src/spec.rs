//! The API in one table, from which the OpenAPI document and the documentation page are generated.

mod schema;

use crate::App;
use crate::api::beam::BeamTree;
use crate::api::file_stream::FileEvent;
use crate::api::files::FileAnswer;
use crate::api::inside::{Attention, ModelReport, PositionTables};
use crate::api::languages::{FrontendSettings, Health, Language};
use crate::api::steps::Steps;
use crate::api::stream::Event;
use crate::api::translate::{Detected, TranslateAnswer};
use crate::error::{ApiResult, ErrorAnswer, ok};
use crate::page;
use crate::params::MOST_TERMS;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// A parameter of a request.
struct Parameter {
    name: &'static str,
    kind: Kind,
    required: bool,
    about: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    TextOrList,
    /// The code of a served language.
    Language,
    /// The code of a served language, or `auto`.
    LanguageOrAuto,
    Format,
    /// A number of alternatives.
    Alternatives,
    Integer,
    /// `encoder` or `decoder`.
    Stack,
    Flag,
    /// The name of a glossary, or terms with their translations.
    Glossary,
    File,
    /// Part of the path.
    Path,
}

/// The source of an endpoint's parameters.
#[derive(Clone, Copy, PartialEq)]
enum Input {
    None,
    /// The query or the path.
    Query,
    /// A JSON object, a form, or the query.
    Body,
    /// A multipart form.
    Multipart,
}

/// The encoding of parameters.
#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Json,
    /// As text: a form, a query or a path.
    Text,
}

struct Endpoint {
    method: &'static str,
    path: &'static str,
    about: &'static str,
    input: Input,
    parameters: &'static [Parameter],
    /// The content type of the response.
    kind: &'static str,
    schema: fn() -> Value,
    /// An example response.
    answer: &'static str,
    errors: &'static [(u16, &'static str)],
}

const fn parameter(name: &'static str, kind: Kind, required: bool, about: &'static str) -> Parameter {
    Parameter { name, kind, required, about }
}

const KEY: Parameter = parameter("api_key", Kind::Text, false, "The API key, if the server requires one");
const Q: Parameter = parameter("q", Kind::TextOrList, true, "The text, or in JSON a list of texts");
const ONE_TEXT: Parameter = parameter("q", Kind::Text, true, "The text");
const SOURCE: Parameter = parameter("source", Kind::LanguageOrAuto, true, "Its language, or auto");
const TARGET: Parameter = parameter("target", Kind::Language, true, "The language to translate to");
const FORMAT: Parameter =
    parameter("format", Kind::Format, false, "text (the default) or html, whose markup is kept");

const GLOSSARY: Parameter = parameter(
    "glossary",
    Kind::Glossary,
    false,
    "Terms and their translations, = for a term that is not translated: an object, a list of pairs (in a form, JSON in a \
     text), or the name of a glossary of the server, which /frontend/settings lists",
);
const MEMORY: Parameter =
    parameter("memory", Kind::Flag, false, "false: do not use the server's translation memory");
const FILE: Parameter = parameter(
    "file",
    Kind::File,
    true,
    "The file; /frontend/settings lists the supported file name extensions",
);

const MODEL_SOURCE: Parameter =
    parameter("source", Kind::LanguageOrAuto, false, "Its language; the default is that of the first model");
const MODEL_TARGET: Parameter = parameter("target", Kind::Language, false, "The language of the translation");
const PREFIX: Parameter = parameter(
    "prefix",
    Kind::Text,
    false,
    "Ids of the tokens that the translation begins with, separated by spaces",
);

/// Parameters of LibreTranslate that an endpoint accepts if they have the right type, even if it
/// does not use them.
const ACCEPTED: [Parameter; 7] = [
    parameter("q", Kind::Text, false, "Not used here"),
    parameter("source", Kind::Text, false, "Not used here"),
    parameter("target", Kind::Text, false, "Not used here"),
    parameter("format", Kind::Text, false, "Not used here"),
    parameter("alternatives", Kind::Integer, false, "Not used here"),
    parameter("secret", Kind::Text, false, "Not used here"),
    KEY,
];

const USUAL: &[(u16, &str)] = &[
    (400, "A parameter is missing, unknown or invalid"),
    (403, "The key is wrong"),
    (408, "The body came too slowly"),
    (413, "The body is too large"),
    (429, "Too many requests per minute; see Retry-After"),
    (500, "The translation failed"),
    (503, "Too many requests are waiting, or it took too long; see Retry-After"),
];

const JSON: &str = "application/json";
const PLAIN: &str = "text/plain";
/// The schema of a stream describes each of its events.
const EVENTS: &str = "text/event-stream";

/// Every endpoint of the API.
const ENDPOINTS: [Endpoint; 17] = [
    Endpoint {
        method: "post",
        path: "/translate",
        about: "Translate a text or a list of texts",
        input: Input::Body,
        parameters: &[
            Q,
            SOURCE,
            TARGET,
            FORMAT,
            parameter(
                "alternatives",
                Kind::Alternatives,
                false,
                "The maximum number of alternative translations",
            ),
            parameter(
                "alignment",
                Kind::Flag,
                false,
                "Whether to return the aligned character ranges: for each text, [source start, source end, target start, \
                 target end] in code points; empty for HTML",
            ),
            parameter(
                "confidence",
                Kind::Flag,
                false,
                "Whether to estimate the quality of the translations of texts and sentences, from 0 to 1",
            ),
            GLOSSARY,
            MEMORY,
            KEY,
        ],
        kind: JSON,
        schema: schema::of::<TranslateAnswer>,
        answer: r#"{"translatedText": "Hallo Welt!", "detectedLanguage": {"confidence": 90.0, "language": "en"}, "alternatives": ["Hallo, Welt!"]}"#,
        errors: USUAL,
    },
    Endpoint {
        method: "get",
        path: "/languages",
        about: "The source languages, and the target languages of each",
        input: Input::None,
        parameters: &[],
        kind: JSON,
        schema: schema::of::<Vec<Language>>,
        answer: r#"[{"code": "en", "name": "English", "targets": ["de", "en"]}]"#,
        errors: &[],
    },
    Endpoint {
        method: "post",
        path: "/detect",
        about: "Detects the language of a text among those that are served",
        input: Input::Body,
        parameters: &[
            parameter("q", Kind::TextOrList, true, "The text; a list of texts, in JSON, counts as one text"),
            KEY,
        ],
        kind: JSON,
        schema: schema::of::<Vec<Detected>>,
        answer: r#"[{"confidence": 90.0, "language": "en"}]"#,
        errors: USUAL,
    },
    Endpoint {
        method: "get",
        path: "/health",
        about: "Whether the server is running",
        input: Input::None,
        parameters: &[],
        kind: JSON,
        schema: schema::of::<Health>,
        answer: r#"{"status": "ok"}"#,
        errors: &[],
    },
    Endpoint {
        method: "get",
        path: "/frontend/settings",
        about: "Limits and defaults for a web page",
        input: Input::None,
        parameters: &[],
        kind: JSON,
        schema: schema::of::<FrontendSettings>,
        answer: r#"{"charLimit": 100000, "frontendTimeout": 500, "apiKeys": false, "keyRequired": false, "suggestions": false, "filesTranslation": true, "supportedFilesFormat": [".txt"], "glossaries": ["it"], "memory": false, "language": {"source": {"code": "auto", "name": "Auto Detect"}, "target": {"code": "de", "name": "German"}}}"#,
        errors: &[],
    },
    Endpoint {
        method: "post",
        path: "/translate_file",
        about: "Translate a document, a localization file or a text",
        input: Input::Multipart,
        parameters: &[FILE, SOURCE, TARGET, GLOSSARY, MEMORY, KEY],
        kind: JSON,
        schema: schema::of::<FileAnswer>,
        answer: r#"{"translatedFileUrl": "http://127.0.0.1:5000/download_file/0123.txt"}"#,
        errors: USUAL,
    },
    Endpoint {
        method: "get",
        path: "/download_file/{name}",
        about: "Download a translated file; available for half an hour",
        input: Input::Query,
        parameters: &[parameter("name", Kind::Path, true, "Its name, from translatedFileUrl")],
        kind: PLAIN,
        schema: schema::of::<String>,
        answer: "the text of the file",
        errors: &[(404, "The file does not exist or has expired")],
    },
    Endpoint {
        method: "post",
        path: "/v1/translate/stream",
        about: "Translate a text and stream the growing translation: server-sent events, the last with done true",
        input: Input::Body,
        parameters: &[ONE_TEXT, SOURCE, TARGET, FORMAT, GLOSSARY, MEMORY, KEY],
        kind: EVENTS,
        schema: schema::event::<Event>,
        answer: "data: {\"text\":\"Hallo\",\"done\":false}\n\ndata: {\"text\":\"Hallo Welt!\",\"done\":true}\n",
        errors: USUAL,
    },
    Endpoint {
        method: "post",
        path: "/v1/translate_file/stream",
        about: "Translate a file like /translate_file and report the progress: server-sent events, the last with translatedFileUrl or error",
        input: Input::Multipart,
        parameters: &[FILE, SOURCE, TARGET, GLOSSARY, MEMORY, KEY],
        kind: EVENTS,
        schema: schema::event::<FileEvent>,
        answer: "data: {\"done\":0,\"total\":2}\n\ndata: {\"translatedFileUrl\":\"http://127.0.0.1:5000/download_file/0123.txt\"}\n",
        errors: USUAL,
    },
    Endpoint {
        method: "post",
        path: "/v1/attention",
        about: "The attention of every layer and head for a sentence and its translation: [layer][head][row][column]; what each head does, and the layer and head to show first",
        input: Input::Body,
        parameters: &[
            ONE_TEXT,
            MODEL_SOURCE,
            MODEL_TARGET,
            parameter("translation", Kind::Text, false, "The translation; without one, the model's own"),
            KEY,
        ],
        kind: JSON,
        schema: schema::of::<Attention>,
        answer: r#"{"source": ["▁Hi", "</s>"], "target": ["▁Hallo", "</s>"], "encoder": [[[[0.9, 0.1], [0.5, 0.5]]]], "decoder": [[[[1.0, 0.0], [0.5, 0.5]]]], "cross": [[[[0.9, 0.1], [0.2, 0.8]]]], "hints": {"encoder": [], "decoder": [], "cross": [{"mean": {"name": "aligned", "short": "diagonal", "text": "Follows the diagonal: words are translated in order.", "share": 0.85, "spread": 1.5}, "heads": [], "sharpest": 0}]}, "sharpest": {"encoder": 0, "decoder": 0, "cross": 0}, "translation": "Hallo"}"#,
        errors: USUAL,
    },
    Endpoint {
        method: "post",
        path: "/v1/steps",
        about: "A sentence step by step through one layer: embeddings and positions, queries, keys, values, scores and weights of one head, all heads, the feed-forward layer, and the most probable tokens at each target position. Parts can be switched off. The translation comes from greedy search. For vectors of model width, the norm and the first 32 components are returned, all with four digits",
        input: Input::Body,
        parameters: &[
            ONE_TEXT,
            MODEL_SOURCE,
            MODEL_TARGET,
            parameter("translation", Kind::Text, false, "The translation; without one, the model's own"),
            PREFIX,
            parameter("stack", Kind::Stack, false, "encoder (the default) or decoder"),
            parameter("layer", Kind::Integer, false, "The layer, from 0"),
            parameter("head", Kind::Integer, false, "The head, from 0"),
            parameter(
                "without",
                Kind::Text,
                false,
                "What is switched off, separated by spaces: positions, scale (1/√d_k), mask, and heads by kind, layer and \
                 number, such as encoder.0.1 or cross.1.0",
            ),
            KEY,
        ],
        kind: JSON,
        schema: schema::of::<Steps>,
        answer: r#"{"precision": "f32", "source": [{"id": 5, "text": "▁Hi"}], "target": [{"id": 7, "text": "▁Hallo"}], "translation": "Hallo", "places": [{"p": 0.9, "best": [{"id": 7, "text": "▁Hallo", "logit": 0.0, "p": 0.9}]}], "stack": "encoder", "layer": 0, "layers": 6, "heads": 8, "d_model": 2, "embedding": {"scale": 1.4142, "words": [{"norm": 1.0, "values": [0.0, 1.0]}], "positions": [{"norm": 1.0, "values": [0.0, 1.0]}], "output": [{"norm": 2.0, "values": [0.0, 2.0]}]}, "attention": {"head": 0, "d_k": 1, "scale": 1.0, "queries": [[1.0]], "keys": [[1.0]], "values": [[1.0]], "scores": [[1.0]], "scaled": [[1.0]], "seen": [[0, 1]], "weights": [[[1.0]]], "sums": [[1.0]], "norms": [[1.0]], "output": [], "result": []}, "ssru": null, "cross": null, "feed_forward": {"width": 8, "active": [3], "hidden": [], "output": [], "result": []}}"#,
        errors: USUAL,
    },
    Endpoint {
        method: "post",
        path: "/v1/beam",
        about: "The beam search of a sentence as a tree: every hypothesis that was in the beam after any step, including those that were pruned",
        input: Input::Body,
        parameters: &[
            ONE_TEXT,
            MODEL_SOURCE,
            MODEL_TARGET,
            PREFIX,
            parameter(
                "beam",
                Kind::Integer,
                false,
                "The width of the beam, from 1 to 8; the default is that of the model",
            ),
            KEY,
        ],
        kind: JSON,
        schema: schema::of::<BeamTree>,
        answer: r#"{"beam": 2, "length_penalty": 1.0, "penalty": "power", "source": [{"id": 5, "text": "▁Hi"}], "nodes": [{"parent": null, "length": 1, "id": 7, "text": "▁Hallo", "log_probability": -0.1, "score": -0.1, "state": "extended", "best": true}, {"parent": 0, "length": 2, "id": 0, "text": "</s>", "log_probability": -0.2, "score": -0.1, "state": "ended", "best": true}], "translations": [{"text": "Hallo", "log_probability": -0.2, "score": -0.1}]}"#,
        errors: USUAL,
    },
    Endpoint {
        method: "get",
        path: "/v1/positions",
        about: "The position vectors: the paper's interleaved form, and those that the model adds",
        input: Input::Query,
        parameters: &[
            parameter(
                "model",
                Kind::Text,
                false,
                "The language pair of a model, such as en-de; the default is the first model",
            ),
            KEY,
        ],
        kind: JSON,
        schema: schema::of::<PositionTables>,
        answer: r#"{"kind": "sinusoidal", "interleaved": [[0.0, 1.0]], "own": [[0.0, 1.0]]}"#,
        errors: USUAL,
    },
    Endpoint {
        method: "get",
        path: "/v1/model",
        about: "The models: sizes, settings, how they were trained, how fast they are",
        input: Input::Query,
        parameters: &[KEY],
        kind: JSON,
        schema: schema::of::<Vec<ModelReport>>,
        answer: r#"[{"source": "en", "target": "de", "name": "model", "parameters": 3, "parts": {"embeddings": 1, "encoder": 1, "decoder": 1}, "config": {}, "training": [{"step": 100, "loss": 4.2, "bleu": null, "rate": 0.001}], "examples": [{"source": "Hi", "target": "Hallo", "reference": "Hallo"}], "speed": {"tokens_per_s": 1000.0, "requests": 1}}]"#,
        errors: USUAL,
    },
    Endpoint {
        method: "get",
        path: "/metrics",
        about: "Counters in the text format of Prometheus",
        input: Input::None,
        parameters: &[],
        kind: PLAIN,
        schema: schema::of::<String>,
        answer: "regard_requests_in_flight 1\n",
        errors: &[],
    },
    Endpoint {
        method: "get",
        path: "/spec",
        about: "This API as an OpenAPI document",
        input: Input::None,
        parameters: &[],
        kind: JSON,
        schema: schema::of::<OpenApi>,
        answer: r#"{"openapi": "3.0.3", "info": {"title": "Regard", "version": "0.1.0", "description": "Translation with your own models."}, "paths": {}, "components": {"schemas": {}}}"#,
        errors: &[],
    },
    Endpoint {
        method: "get",
        path: "/docs",
        about: "This API as a page",
        input: Input::None,
        parameters: &[],
        kind: "text/html",
        schema: schema::of::<String>,
        answer: "a page",
        errors: &[],
    },
];

impl Parameter {
    /// The schema of its values. Empty texts and `null` count as missing.
    fn schema(&self, app: &App, encoding: Encoding) -> Value {
        let limits = &app.settings.limits;
        let text = || json!({"type": "string", "minLength": usize::from(self.required)});
        let long_text = || {
            let mut schema = text();
            schema["maxLength"] = json!(limits.characters);
            schema
        };
        let language = |auto: Option<&'static str>| {
            let none = (!self.required).then_some("");
            let codes = app.languages.sources().map(|(code, _)| code).chain(auto).chain(none);
            json!({"type": "string", "enum": codes.collect::<Vec<_>>()})
        };
        let in_json = encoding == Encoding::Json;
        let mut schema = match self.kind {
            Kind::Text if self.name == "q" => long_text(),
            Kind::Text | Kind::Path => text(),
            Kind::TextOrList if in_json => {
                let list = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": limits.texts});
                json!({"anyOf": [long_text(), list]})
            }
            Kind::TextOrList => long_text(),
            Kind::Language => language(None),
            Kind::LanguageOrAuto => language(Some("auto")),
            Kind::Format => json!({"type": "string", "enum": ["text", "html", ""]}),
            Kind::Stack => json!({"type": "string", "enum": ["encoder", "decoder", ""]}),
            Kind::Integer | Kind::Alternatives => {
                let mut number = json!({"type": "integer"});
                if self.kind == Kind::Alternatives {
                    number["maximum"] = json!(limits.alternatives);
                }
                match in_json {
                    true => {
                        json!({"anyOf": [number, {"type": "string", "pattern": "^\\s*[+-]?[0-9]+\\s*$"}]})
                    }
                    false => number,
                }
            }
            Kind::Flag if in_json => {
                json!({"anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["true", "false", "1", "0"]}]})
            }
            Kind::Flag => json!({"type": "string", "enum": ["true", "false", "1", "0"]}),
            Kind::Glossary if in_json => {
                let term = json!({"type": "string", "minLength": 1, "maxLength": 100});
                let pair = json!({"type": "array", "items": term, "minItems": 2, "maxItems": 2});
                let object =
                    json!({"type": "object", "additionalProperties": term, "maxProperties": MOST_TERMS});
                let list = json!({"type": "array", "items": pair, "maxItems": MOST_TERMS});
                json!({"anyOf": [text(), object, list]})
            }
            Kind::Glossary => text(),
            Kind::File => json!({"type": "string", "format": "binary"}),
        };
        if in_json && !self.required {
            schema["nullable"] = json!(true);
            // An enum must list null explicitly.
            if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
                values.push(Value::Null);
            }
        }
        schema["description"] = json!(self.about);
        schema
    }
}

impl Endpoint {
    fn operation(&self, app: &App) -> Value {
        let mut operation = json!({"summary": self.about, "responses": self.responses()});
        match self.input {
            Input::None => {}
            Input::Query => {
                let parameters = self.parameters.iter().map(|p| {
                    let place = if p.kind == Kind::Path { "path" } else { "query" };
                    let schema = p.schema(app, Encoding::Text);
                    json!({"name": p.name, "in": place, "required": p.required, "schema": schema})
                });
                operation["parameters"] = parameters.collect();
            }
            Input::Body => {
                let content = json!({
                    "application/json": {"schema": self.body(app, Encoding::Json)},
                    "application/x-www-form-urlencoded": {"schema": self.body(app, Encoding::Text)},
                });
                operation["requestBody"] = json!({"required": true, "content": content});
            }
            Input::Multipart => {
                let content = json!({"multipart/form-data": {"schema": self.body(app, Encoding::Text)}});
                operation["requestBody"] = json!({"required": true, "content": content});
            }
        }
        operation
    }

    /// The schema of a body; additional members are not allowed.
    fn body(&self, app: &App, encoding: Encoding) -> Value {
        let own = |name: &str| self.parameters.iter().any(|p| p.name == name);
        let all = self.parameters.iter().chain(ACCEPTED.iter().filter(|p| !own(p.name)));
        let properties: Map<String, Value> =
            all.map(|p| (p.name.to_owned(), p.schema(app, encoding))).collect();
        let required: Vec<&str> = self.parameters.iter().filter(|p| p.required).map(|p| p.name).collect();
        json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
    }

    fn responses(&self) -> Value {
        let example = match self.kind {
            JSON => serde_json::from_str(self.answer).unwrap_or_else(|_| json!(self.answer)),
            _ => json!(self.answer),
        };
        let content = json!({(self.kind): {"schema": (self.schema)(), "example": example}});
        let mut responses = json!({"200": {"description": "The answer", "content": content}});
        for (status, about) in self.errors {
            responses[status.to_string()] = json!({
                "description": about,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            });
        }
        responses
    }
}

/// The OpenAPI document.
#[derive(JsonSchema, Serialize)]
struct OpenApi {
    openapi: &'static str,
    info: Info,
    paths: Map<String, Value>,
    components: Components,
}

#[derive(JsonSchema, Serialize)]
struct Info {
    title: &'static str,
    version: &'static str,
    description: &'static str,
}

#[derive(JsonSchema, Serialize)]
struct Components {
    schemas: Map<String, Value>,
}

fn openapi(app: &App) -> OpenApi {
    let mut paths = Map::new();
    for endpoint in &ENDPOINTS {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = endpoint.operation(app);
    }
    OpenApi {
        openapi: "3.0.3",
        info: Info {
            title: "Regard",
            version: env!("CARGO_PKG_VERSION"),
            description: "Translation with your own models. The endpoints outside of /v1 are those of LibreTranslate.",
        },
        paths,
        components: Components {
            schemas: Map::from_iter([("Error".to_owned(), schema::of::<ErrorAnswer>())]),
        },
    }
}

/// `GET /spec`.
pub(crate) async fn document(State(app): State<Arc<App>>) -> ApiResult {
    ok(&openapi(&app))
}

/// `GET /docs`.
pub(crate) async fn viewer(headers: HeaderMap) -> Response {
    page::answer(&headers, page::HTML, html())
}

fn html() -> String {
    let mut out = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Regard: the API</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"stylesheet\" href=\"docs.css\"></head>\n<body>\n<main>\n<h1>The API</h1>\n\
         <p>The parameters of a POST request are a JSON object, a form or part of the query; unknown ones are rejected. An error is \
         <code>{\"error\": \"what is wrong\"}</code>. <a href=\"spec\">The OpenAPI document</a></p>\n",
    );
    for endpoint in &ENDPOINTS {
        let _ = section(&mut out, endpoint);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn section(out: &mut String, endpoint: &Endpoint) -> std::fmt::Result {
    let Endpoint { method, path, about, parameters, answer, errors, .. } = endpoint;
    let method = method.to_uppercase();
    writeln!(
        out,
        "<section>\n<h2><span class=\"method\">{method}</span> <code>{path}</code></h2>\n<p>{about}</p>"
    )?;
    if !parameters.is_empty() {
        writeln!(
            out,
            "<table><thead><tr><th>Parameter</th><th>Needed</th><th>What it is</th></tr></thead><tbody>"
        )?;
        for p in *parameters {
            let needed = if p.required { "yes" } else { "no" };
            writeln!(out, "<tr><td><code>{}</code></td><td>{needed}</td><td>{}</td></tr>", p.name, p.about)?;
        }
        writeln!(out, "</tbody></table>")?;
    }
    let answer = regard_documents::html::escape(answer);
    writeln!(out, "<p>Answer:</p>\n<pre>{answer}</pre>")?;
    if !errors.is_empty() {
        writeln!(out, "<table><thead><tr><th>Status</th><th>When</th></tr></thead><tbody>")?;
        for (status, about) in *errors {
            writeln!(out, "<tr><td>{status}</td><td>{about}</td></tr>")?;
        }
        writeln!(out, "</tbody></table>")?;
    }
    writeln!(out, "</section>")
}

#[cfg(test)]
mod tests;
