//! The values of a request, from its query, a JSON object, a urlencoded form or a multipart form.

use crate::App;
use crate::error::{ApiError, ApiResult};
use crate::limits::Held;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{ConnectInfo, DefaultBodyLimit, FromRequest, Multipart, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Map, Value};
use std::net::SocketAddr;
use std::sync::Arc;

/// A file that came with a form.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

/// A request that may go on: its values, its key and its client's quota have been looked at.
#[derive(Debug, Default)]
pub(crate) struct Call {
    values: Map<String, Value>,
    pub(crate) file: Option<Upload>,
    pub(crate) headers: HeaderMap,
    /// Frees the room of its body.
    _held: Option<Held>,
}

/// What `q` holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub(crate) fn list(&self) -> &[String] {
        match self {
            Texts::One(text) => std::slice::from_ref(text),
            Texts::Many(texts) => texts,
        }
    }
}

impl FromRequest<Arc<App>> for Call {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let limits = &app.settings.limits;
        let reading = tokio::time::timeout(limits.timeout, read(body, app));
        let late =
            |_| ApiError::new(StatusCode::REQUEST_TIMEOUT, "Invalid request: the body came too slowly");
        let (body, held) = reading.await.map_err(late)??;
        let mut call = Call { headers: parts.headers.clone(), _held: Some(held), ..Call::default() };
        call.add_form(parts.uri.query().unwrap_or_default().as_bytes(), false);
        call.add_body(&parts, body).await?;
        let client = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|c| c.0.ip());
        app.gate.admit(call.key(), client)?;
        Ok(call)
    }
}

async fn read(mut body: Body, app: &Arc<App>) -> ApiResult<(Bytes, Held)> {
    let limit = app.settings.limits.body_bytes;
    let too_large = || {
        let message = format!("Invalid request: the body has more than {limit} bytes");
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut held = Held::new(&app.bodies);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let broken = |_| ApiError::bad("Invalid request: the body could not be read");
        if let Ok(data) = frame.map_err(broken)?.into_data() {
            if bytes.len() + data.len() > limit {
                return Err(too_large());
            }
            held.add(data.len())?;
            bytes.extend_from_slice(&data);
        }
    }
    Ok((bytes.into(), held))
}

impl Call {
    async fn add_body(&mut self, parts: &Parts, body: Bytes) -> ApiResult<()> {
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        if kind.contains("json") {
            match serde_json::from_slice(&body) {
                Ok(Value::Object(object)) => self.values.extend(object),
                _ => return Err(ApiError::bad("Invalid JSON format")),
            }
        } else if kind.starts_with("multipart/form-data") {
            self.add_multipart(parts, body).await?;
        } else {
            self.add_form(&body, true);
        }
        Ok(())
    }

    fn add_form(&mut self, form: &[u8], of_body: bool) {
        for (name, value) in form_urlencoded::parse(form) {
            // Browsers send a form's line ends as CR LF.
            let value = if of_body { value.replace("\r\n", "\n") } else { value.into_owned() };
            self.values.insert(name.into_owned(), value.into());
        }
    }

    async fn add_multipart(&mut self, parts: &Parts, body: Bytes) -> ApiResult<()> {
        let broken = |_| ApiError::bad("Invalid request: the multipart form could not be read");
        let mut request = Request::new(Body::from(body));
        *request.headers_mut() = parts.headers.clone();
        // The whole body has been read within its limit.
        DefaultBodyLimit::disable().apply(&mut request);
        let refused = |_| ApiError::bad("Invalid request: the multipart form has no boundary");
        let mut form = Multipart::from_request(request, &()).await.map_err(refused)?;
        while let Some(field) = form.next_field().await.map_err(broken)? {
            let name = field.name().unwrap_or_default().to_owned();
            match field.file_name().map(str::to_owned) {
                Some(file) if name == "file" => {
                    self.file = Some(Upload { name: file, bytes: field.bytes().await.map_err(broken)? });
                }
                _ => {
                    let text = field.text().await.map_err(broken)?.replace("\r\n", "\n");
                    self.values.insert(name, text.into());
                }
            }
        }
        Ok(())
    }

    /// The key that the client showed, as a value or as a bearer token.
    fn key(&self) -> Option<&str> {
        let bearer = || self.headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ");
        self.values.get("api_key").and_then(Value::as_str).filter(|key| !key.is_empty()).or_else(bearer)
    }

    /// A text value; empty ones count as missing.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// A text value that must be there.
    pub(crate) fn required(&self, name: &str) -> ApiResult<&str> {
        self.text(name).ok_or_else(|| ApiError::missing(name))
    }

    /// A value that is true, as JSON or as the word.
    pub(crate) fn flag(&self, name: &str) -> bool {
        match self.values.get(name) {
            Some(Value::Bool(value)) => *value,
            Some(Value::String(text)) => text == "true" || text == "1",
            _ => false,
        }
    }

    /// `q`: a text, or in JSON a list of texts.
    pub(crate) fn texts(&self) -> ApiResult<Texts> {
        match self.values.get("q") {
            Some(Value::String(text)) if !text.is_empty() => Ok(Texts::One(text.clone())),
            Some(Value::Array(list)) if !list.is_empty() => {
                let texts: Option<Vec<String>> = list.iter().map(|q| q.as_str().map(str::to_owned)).collect();
                let message = "Invalid request: q must be a string or a list of strings";
                texts.map(Texts::Many).ok_or_else(|| ApiError::bad(message))
            }
            Some(Value::Number(number)) => Ok(Texts::One(number.to_string())),
            Some(Value::Object(_) | Value::Bool(_)) => {
                Err(ApiError::bad("Invalid request: q must be a string or a list of strings"))
            }
            _ => Err(ApiError::missing("q")),
        }
    }

    /// How many alternatives are wanted.
    pub(crate) fn alternatives(&self, limit: usize) -> ApiResult<usize> {
        let wrong = || ApiError::bad("Invalid request: alternatives parameter is not a number");
        let number = match self.values.get("alternatives") {
            None | Some(Value::Null) => 0,
            Some(Value::Number(number)) => number.as_i64().ok_or_else(wrong)?,
            Some(Value::String(text)) => text.trim().parse().map_err(|_| wrong())?,
            Some(_) => return Err(wrong()),
        };
        let number = usize::try_from(number.max(0)).unwrap_or(usize::MAX);
        if number > limit {
            let message = format!("Invalid request: alternatives parameter must be <= {limit}");
            return Err(ApiError::bad(message));
        }
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(values: Value) -> Call {
        let Value::Object(values) = values else { panic!("an object") };
        Call { values, ..Call::default() }
    }

    #[test]
    fn alternatives_are_a_small_number() {
        let of = |value: Value| call(serde_json::json!({ "alternatives": value })).alternatives(3);
        assert_eq!(of(2.into()), Ok(2));
        assert_eq!(of("3".into()), Ok(3));
        assert_eq!(of((-1).into()), Ok(0));
        assert_eq!(of(Value::Null), Ok(0));
        assert_eq!(of(4.into()).unwrap_err().message, "Invalid request: alternatives parameter must be <= 3");
        for value in [Value::from("x"), Value::from(1.5), Value::from(true)] {
            let error = of(value).unwrap_err();
            assert_eq!(error.message, "Invalid request: alternatives parameter is not a number");
        }
    }

    #[test]
    fn the_lines_of_a_form_end_with_lf() {
        let mut call = Call::default();
        call.add_form(b"q=a%0D%0Ab&source=en", true);
        assert_eq!(call.texts(), Ok(Texts::One("a\nb".into())));
        assert_eq!(call.required("source"), Ok("en"));
        assert_eq!(call.required("target").unwrap_err().message, "Invalid request: missing target parameter");
    }
}
