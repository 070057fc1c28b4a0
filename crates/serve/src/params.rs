//! The parameters of a request: checked against the key and the quota of the client, read within
//! limits, and parsed into typed values.
//!
//! Keys in the `Authorization` header or the query are checked before the body is read.
//! LibreTranslate's clients may also send the key in the body: such bodies are read from a separate
//! pool (`bodies`), so that they cannot block clients whose key has been checked.

mod values;

use values::{GlossaryValue, Parameters, Schema};
pub(crate) use values::{MOST_TERMS, Texts};

use crate::App;
use crate::bodies::{BodyBytes, Owner};
use crate::clients::{ClientAddress, NO_ADDRESS};
use crate::error::{ApiError, ApiResult};
use crate::gate::no_key;
use crate::keys::{KeyHash, KeyLimits};
use crate::limits::Limits;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequest, MatchedPath, Multipart, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use http_body_util::BodyExt;
use regard_documents::Glossary;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::time::{Instant, timeout, timeout_at};

/// A file uploaded with a form.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

/// An admitted request: its parameters have been parsed, and its key and its client's quota have
/// been checked.
#[derive(Debug, Default)]
pub(crate) struct Call {
    values: Parameters,
    pub(crate) file: Option<Upload>,
    pub(crate) headers: HeaderMap,
    /// The maximum number of characters, from its key or from the server.
    pub(crate) characters: usize,
    /// Releases the memory of its body on drop.
    _held: Option<BodyBytes>,
}

impl FromRequest<Arc<App>> for Call {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let limits = &app.settings.limits;
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map_or(NO_ADDRESS, |c| c.0.ip());
        let client = ClientAddress::from(app.proxies.client(peer, &parts.headers));
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let schema = Schema::of(route, limits.texts);
        let mut call = Call { headers: parts.headers.clone(), ..Call::default() };
        call.values.add_form(parts.uri.query().unwrap_or_default().as_bytes(), &schema)?;

        call.characters = limits.characters;
        let key = call.values.key().or_else(|| bearer(&parts.headers)).map(KeyHash::of);
        let owner = match (app.gate.needs_key(), key) {
            (false, _) => {
                app.gate.admit(None, client)?;
                Owner::Address(client)
            }
            (true, Some(key)) => {
                call.characters = admit(app, &key, client)?.characters.unwrap_or(limits.characters);
                Owner::Key(key)
            }
            (true, None) if body.is_end_stream() => return Err(no_key()),
            (true, None) => Owner::Unverified(client),
        };
        let unverified = matches!(owner, Owner::Unverified(_));
        let held = BodyBytes::new(&app.bodies, owner);
        let reading = timeout(limits.timeout, read(body, held, limits));
        let (body, mut held) = reading.await.map_err(|_| too_slow())??;
        call.add_body(&parts, body, &schema).await?;
        if unverified {
            let key = call.values.key().map(KeyHash::of).ok_or_else(no_key)?;
            call.characters = admit(app, &key, client)?.characters.unwrap_or(limits.characters);
            held.transfer(Owner::Key(key))?;
        }
        call._held = Some(held);
        Ok(call)
    }
}

/// Checks a key, and counts it if it is wrong.
fn admit(app: &App, key: &KeyHash, client: ClientAddress) -> ApiResult<KeyLimits> {
    app.gate.admit(Some(key), client).inspect_err(|error| {
        if error.status == StatusCode::FORBIDDEN {
            app.metrics.wrong_keys.add(1);
        }
    })
}

/// The token of `Authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

fn too_slow() -> ApiError {
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "Invalid request: the body came too slowly")
}

/// Reads a body. It must not be too large, and must not stall: a partly received body holds memory
/// that others cannot use.
async fn read(mut body: Body, mut held: BodyBytes, limits: &Limits) -> ApiResult<(Bytes, BodyBytes)> {
    let limit = limits.body_bytes;
    let too_large = || {
        let message = format!("Invalid request: the body has more than {limit} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let (mut progress, mut deadline) = (0, Instant::now() + limits.stall);
    while let Some(frame) = timeout_at(deadline, body.frame()).await.map_err(|_| too_slow())? {
        let broken = |_| ApiError::bad("Invalid request: the body could not be read");
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            return Err(too_large());
        }
        held.add(data.len())?;
        bytes.extend_from_slice(&data);
        progress += data.len();
        if progress >= Limits::BODY_PROGRESS {
            (progress, deadline) = (0, Instant::now() + limits.stall);
        }
    }
    Ok((bytes.into(), held))
}

impl Call {
    async fn add_body(&mut self, parts: &Parts, body: Bytes, schema: &Schema) -> ApiResult<()> {
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        if body.is_empty() && parts.method == Method::GET {
            return Ok(());
        }
        if kind.contains("json") {
            self.values.add_json(&body, schema)
        } else if kind.starts_with("multipart/form-data") {
            self.add_multipart(&parts.headers, body, schema).await
        } else {
            self.values.add_form(&body, schema)
        }
    }

    async fn add_multipart(&mut self, headers: &HeaderMap, body: Bytes, schema: &Schema) -> ApiResult<()> {
        let broken = |_| ApiError::bad("Invalid request: the multipart form could not be read");
        let mut request = Request::new(Body::from(body));
        *request.headers_mut() = headers.clone();
        // The whole body has already been read within its limit.
        DefaultBodyLimit::disable().apply(&mut request);
        let refused = |_| ApiError::bad("Invalid request: the multipart form has no boundary");
        let mut form = Multipart::from_request(request, &()).await.map_err(refused)?;
        while let Some(field) = form.next_field().await.map_err(broken)? {
            let name = field.name().unwrap_or_default();
            let known = schema.field(name)?;
            match field.file_name().map(str::to_owned) {
                Some(file) if known.is_file() => {
                    self.file = Some(Upload { name: file, bytes: field.bytes().await.map_err(broken)? });
                }
                _ => {
                    let text = field.text().await.map_err(broken)?;
                    self.values.add_text(known, &text)?;
                }
            }
        }
        Ok(())
    }

    /// A text value; an empty one counts as missing.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.text(name)
    }

    /// A required text value.
    pub(crate) fn required(&self, name: &str) -> ApiResult<&str> {
        self.text(name).ok_or_else(|| ApiError::missing(name))
    }

    /// Whether a flag is true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.values.flag(name)
    }

    /// `memory`: whether the request disables the translation memory.
    pub(crate) fn refuses_memory(&self) -> bool {
        self.values.refuses_memory()
    }

    /// `glossary`: the name of a glossary of the server, or terms with their translations.
    pub(crate) fn glossary(&self, app: &App) -> ApiResult<Option<Arc<Glossary>>> {
        let bad = |message: String| ApiError::bad(format!("Invalid request: {message}"));
        match self.values.glossary() {
            None => Ok(None),
            Some(GlossaryValue::Pairs(pairs)) => {
                let pairs = pairs.iter().map(|(source, target)| (source, target));
                let glossary = Glossary::new(pairs).map_err(|error| bad(format!("glossary: {error}")))?;
                Ok(Some(Arc::new(glossary)))
            }
            Some(GlossaryValue::Name(name)) => {
                let stored = &app.settings.glossaries;
                let found = stored.get(name).cloned();
                found.map(Some).ok_or_else(|| {
                    let shown: String = name.chars().take(60).collect();
                    let known: Vec<&str> = stored.keys().map(String::as_str).collect();
                    match known.is_empty() {
                        true => bad(format!("there is no glossary {shown:?}: the server has none")),
                        false => {
                            let known = known.join(", ");
                            bad(format!("there is no glossary {shown:?}; the server has {known}"))
                        }
                    }
                })
            }
        }
    }

    /// `q`: a text, or in JSON a list of texts.
    pub(crate) fn texts(&self) -> ApiResult<Texts> {
        self.values.texts()
    }

    /// `layer` or `head`: an index below `count`.
    pub(crate) fn index(&self, name: &str, count: usize) -> ApiResult<usize> {
        self.values.index(name, count)
    }

    /// `beam`: a width from 1 to `most`, if given.
    pub(crate) fn beam(&self, most: usize) -> ApiResult<Option<usize>> {
        self.values.beam(most)
    }

    /// The requested number of alternatives.
    pub(crate) fn alternatives(&self, limit: usize) -> ApiResult<usize> {
        self.values.alternatives(limit)
    }
}

/// Runs the body parsers on arbitrary bytes, for a target in `fuzz/`: a panic is a bug.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
