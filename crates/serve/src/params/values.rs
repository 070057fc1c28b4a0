//! Typed parameters from JSON objects, forms and queries. A value that its parameter cannot hold is
//! rejected as soon as it is read, so that parsing takes no more memory than the body.

use crate::error::{ApiError, ApiResult};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use std::fmt;

/// The texts in `q`.
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

/// The name of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Q,
    Source,
    Target,
    Format,
    Alternatives,
    ApiKey,
    /// LibreTranslate's own page sends it; it has no effect here.
    Secret,
    File,
    Alignment,
    Confidence,
    /// Terms with their translations, or the name of a glossary of the server.
    Glossary,
    /// Whether to use the translation memory.
    Memory,
    Translation,
    Model,
    /// For `/v1/steps`: what to show, and what to switch off.
    Prefix,
    Stack,
    Layer,
    Head,
    Without,
    Beam,
}

impl Field {
    /// The parameters of LibreTranslate, which every endpoint accepts.
    const COMMON: [Field; 7] = [
        Field::Q,
        Field::Source,
        Field::Target,
        Field::Format,
        Field::Alternatives,
        Field::ApiKey,
        Field::Secret,
    ];

    fn name(self) -> &'static str {
        match self {
            Field::Q => "q",
            Field::Source => "source",
            Field::Target => "target",
            Field::Format => "format",
            Field::Alternatives => "alternatives",
            Field::ApiKey => "api_key",
            Field::Secret => "secret",
            Field::File => "file",
            Field::Alignment => "alignment",
            Field::Confidence => "confidence",
            Field::Glossary => "glossary",
            Field::Memory => "memory",
            Field::Translation => "translation",
            Field::Model => "model",
            Field::Prefix => "prefix",
            Field::Stack => "stack",
            Field::Layer => "layer",
            Field::Head => "head",
            Field::Without => "without",
            Field::Beam => "beam",
        }
    }

    pub(super) fn is_file(self) -> bool {
        self == Field::File
    }

    /// The error for a value of the wrong type.
    fn wrong_type(self) -> ApiError {
        let expected = match self {
            Field::Q => "a string or a list of strings",
            Field::Alternatives => {
                return ApiError::bad("Invalid request: alternatives parameter is not a number");
            }
            Field::Alignment | Field::Confidence | Field::Memory => "true or false",
            Field::Glossary => {
                "the name of a glossary, an object of terms and their translations, or a list of pairs of both"
            }
            Field::Layer | Field::Head | Field::Beam => "a number",
            Field::File => "a file of a multipart form",
            _ => "a string",
        };
        ApiError::bad(format!("Invalid request: {} must be {expected}", self.name()))
    }
}

/// The parameters that an endpoint accepts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema {
    /// In addition to the common parameters.
    own: &'static [Field],
    /// The maximum number of texts in a list.
    texts: usize,
}

impl Schema {
    pub(super) fn of(route: &str, texts: usize) -> Self {
        let own: &[Field] = match route {
            "/translate" => &[Field::Alignment, Field::Confidence, Field::Glossary, Field::Memory],
            "/v1/translate/stream" => &[Field::Glossary, Field::Memory],
            "/translate_file" | "/v1/translate_file/stream" => &[Field::File, Field::Glossary, Field::Memory],
            "/v1/attention" => &[Field::Translation],
            "/v1/steps" => {
                &[Field::Translation, Field::Prefix, Field::Stack, Field::Layer, Field::Head, Field::Without]
            }
            "/v1/beam" => &[Field::Prefix, Field::Beam],
            "/v1/positions" => &[Field::Model],
            _ => &[],
        };
        Schema { own, texts }
    }

    /// The parameter with this name, if the endpoint has it.
    pub(super) fn field(&self, name: &str) -> ApiResult<Field> {
        let mut all = Field::COMMON.iter().chain(self.own).copied();
        all.find(|field| field.name() == name).ok_or_else(|| {
            if name.starts_with(['{', '[']) {
                let message = "the body looks like JSON; send it with Content-Type: application/json";
                return ApiError::bad(format!("Invalid request: {message}"));
            }
            let known: Vec<_> = Field::COMMON.iter().chain(self.own).map(|field| field.name()).collect();
            let shown: String = name.chars().take(60).collect();
            let known = known.join(", ");
            ApiError::bad(format!("Invalid request: unknown parameter {shown:?}; accepted: {known}"))
        })
    }
}

/// A value that has not been checked against its parameter.
#[derive(Debug)]
enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    Text(String),
    List(Vec<String>),
    Pairs(Vec<(String, String)>),
}

/// The value of `glossary`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GlossaryValue {
    /// The name of a glossary of the server.
    Name(String),
    /// Terms with their translations.
    Pairs(Vec<(String, String)>),
}

/// The parameters of a request.
#[derive(Debug, Default)]
pub(super) struct Parameters {
    q: Option<Texts>,
    source: Option<String>,
    target: Option<String>,
    format: Option<String>,
    translation: Option<String>,
    model: Option<String>,
    api_key: Option<String>,
    prefix: Option<String>,
    stack: Option<String>,
    without: Option<String>,
    alternatives: Option<i64>,
    layer: Option<i64>,
    head: Option<i64>,
    beam: Option<i64>,
    alignment: Option<bool>,
    confidence: Option<bool>,
    memory: Option<bool>,
    glossary: Option<GlossaryValue>,
}

impl Parameters {
    /// Adds the fields of a urlencoded form or a query.
    pub(super) fn add_form(&mut self, form: &[u8], schema: &Schema) -> ApiResult<()> {
        for (name, value) in form_urlencoded::parse(form) {
            self.add_text(schema.field(&name)?, &value)?;
        }
        Ok(())
    }

    /// Adds a field of a form. Line ends become LF, because browsers send CR LF.
    pub(super) fn add_text(&mut self, field: Field, text: &str) -> ApiResult<()> {
        self.set(field, Scalar::Text(text.replace("\r\n", "\n")))
    }

    /// Adds the members of a JSON object.
    pub(super) fn add_json(&mut self, body: &[u8], schema: &Schema) -> ApiResult<()> {
        let mut reading = Reading { parameters: self, schema, field: None, refusal: None };
        let mut json = serde_json::Deserializer::from_slice(body);
        let outcome = reading.deserialize(&mut json).and_then(|()| json.end());
        let Err(error) = outcome else { return Ok(()) };
        let wrong_type =
            || reading.field.filter(|_| error.classify() == Category::Data).map(Field::wrong_type);
        Err(reading
            .refusal
            .take()
            .or_else(wrong_type)
            .unwrap_or_else(|| ApiError::bad("Invalid JSON format")))
    }

    /// Stores a value if it has the type of the parameter; null counts as missing.
    fn set(&mut self, field: Field, value: Scalar) -> ApiResult<()> {
        if matches!(value, Scalar::Null) {
            return Ok(());
        }
        match field {
            Field::Q => self.q = Some(texts(value).ok_or_else(|| field.wrong_type())?),
            Field::Alternatives | Field::Layer | Field::Head | Field::Beam => {
                let number = integer(value).ok_or_else(|| field.wrong_type())?;
                match field {
                    Field::Layer => self.layer = Some(number),
                    Field::Head => self.head = Some(number),
                    Field::Beam => self.beam = Some(number),
                    _ => self.alternatives = Some(number),
                }
            }
            Field::Alignment | Field::Confidence | Field::Memory => {
                let flag = boolean(value).ok_or_else(|| field.wrong_type())?;
                match field {
                    Field::Alignment => self.alignment = Some(flag),
                    Field::Confidence => self.confidence = Some(flag),
                    _ => self.memory = Some(flag),
                }
            }
            Field::Glossary => self.glossary = glossary(value)?,
            Field::File => return Err(field.wrong_type()),
            _ => {
                let Scalar::Text(text) = value else { return Err(field.wrong_type()) };
                if let Some(place) = self.place(field) {
                    *place = Some(text);
                }
            }
        }
        Ok(())
    }

    /// The storage of a string parameter; `None` for other parameters.
    fn place(&mut self, field: Field) -> Option<&mut Option<String>> {
        match field {
            Field::Source => Some(&mut self.source),
            Field::Target => Some(&mut self.target),
            Field::Format => Some(&mut self.format),
            Field::Translation => Some(&mut self.translation),
            Field::Model => Some(&mut self.model),
            Field::ApiKey => Some(&mut self.api_key),
            Field::Prefix => Some(&mut self.prefix),
            Field::Stack => Some(&mut self.stack),
            Field::Without => Some(&mut self.without),
            Field::Q | Field::Secret | Field::File | Field::Alignment => None,
            Field::Confidence | Field::Glossary | Field::Memory => None,
            Field::Alternatives | Field::Layer | Field::Head | Field::Beam => None,
        }
    }

    /// The API key.
    pub(super) fn key(&self) -> Option<&str> {
        self.api_key.as_deref().filter(|key| !key.is_empty())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        let value = match name {
            "source" => &self.source,
            "target" => &self.target,
            "format" => &self.format,
            "translation" => &self.translation,
            "model" => &self.model,
            "prefix" => &self.prefix,
            "stack" => &self.stack,
            "without" => &self.without,
            _ => return None,
        };
        value.as_deref().filter(|text| !text.is_empty())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        let value = match name {
            "alignment" => self.alignment,
            "confidence" => self.confidence,
            _ => None,
        };
        value == Some(true)
    }

    /// Whether the request disables the translation memory.
    pub(super) fn refuses_memory(&self) -> bool {
        self.memory == Some(false)
    }

    /// The glossary, by its name or term by term.
    pub(super) fn glossary(&self) -> Option<&GlossaryValue> {
        self.glossary.as_ref()
    }

    /// An index from 0 to `count` − 1; 0 if not given.
    pub(super) fn index(&self, name: &str, count: usize) -> ApiResult<usize> {
        let value = if name == "layer" { self.layer } else { self.head };
        let number = usize::try_from(value.unwrap_or(0)).ok().filter(|&i| i < count);
        number.ok_or_else(|| {
            let last = count.saturating_sub(1);
            ApiError::bad(format!("Invalid request: {name} must be a number from 0 to {last}"))
        })
    }

    /// A beam width from 1 to `most`.
    pub(super) fn beam(&self, most: usize) -> ApiResult<Option<usize>> {
        let Some(beam) = self.beam else { return Ok(None) };
        let number = usize::try_from(beam).ok().filter(|beam| (1..=most).contains(beam));
        let refusal = || ApiError::bad(format!("Invalid request: beam must be a number from 1 to {most}"));
        number.map(Some).ok_or_else(refusal)
    }

    pub(super) fn texts(&self) -> ApiResult<Texts> {
        let missing = match &self.q {
            None => true,
            Some(Texts::One(text)) => text.is_empty(),
            Some(Texts::Many(list)) => list.is_empty(),
        };
        self.q.clone().filter(|_| !missing).ok_or_else(|| ApiError::missing("q"))
    }

    pub(super) fn alternatives(&self, limit: usize) -> ApiResult<usize> {
        let number = usize::try_from(self.alternatives.unwrap_or(0).max(0)).unwrap_or(usize::MAX);
        if number > limit {
            let message = format!("Invalid request: alternatives parameter must be <= {limit}");
            return Err(ApiError::bad(message));
        }
        Ok(number)
    }
}

fn texts(value: Scalar) -> Option<Texts> {
    match value {
        Scalar::Text(text) => Some(Texts::One(text)),
        Scalar::List(list) => Some(Texts::Many(list)),
        _ => None,
    }
}

/// A name or terms; in a form, terms are JSON in a text field. An empty name counts as missing.
fn glossary(value: Scalar) -> ApiResult<Option<GlossaryValue>> {
    let value = match value {
        Scalar::Text(text) if text.trim_start().starts_with(['{', '[']) => {
            let mut json = serde_json::Deserializer::from_str(&text);
            let read = ReadValue { list: false, pairs: true, most: MOST_TERMS }.deserialize(&mut json);
            let (value, count) = read.map_err(|_| Field::Glossary.wrong_type())?;
            json.end().map_err(|_| Field::Glossary.wrong_type())?;
            if count > MOST_TERMS {
                return Err(too_many_terms(count));
            }
            value
        }
        value => value,
    };
    match value {
        Scalar::Text(name) if name.is_empty() => Ok(None),
        Scalar::Text(name) => Ok(Some(GlossaryValue::Name(name))),
        Scalar::Pairs(pairs) => Ok(Some(GlossaryValue::Pairs(pairs))),
        _ => Err(Field::Glossary.wrong_type()),
    }
}

/// The maximum number of terms in a glossary of a request.
pub(crate) const MOST_TERMS: usize = 1_000;

fn too_many_terms(count: usize) -> ApiError {
    ApiError::bad(format!("Invalid request: the glossary has {count} terms; the limit is {MOST_TERMS}"))
}

fn integer(value: Scalar) -> Option<i64> {
    match value {
        Scalar::Integer(number) => Some(number),
        Scalar::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn boolean(value: Scalar) -> Option<bool> {
    match value {
        Scalar::Bool(value) => Some(value),
        Scalar::Text(text) => match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// The state of parsing a JSON object into parameters.
struct Reading<'a> {
    parameters: &'a mut Parameters,
    schema: &'a Schema,
    /// The parameter that is being parsed.
    field: Option<Field>,
    /// Why the object is rejected, if not for its syntax.
    refusal: Option<ApiError>,
}

impl Reading<'_> {
    fn refused<E: Error>(&mut self, error: ApiError) -> E {
        let message = E::custom(&error.message);
        self.refusal = Some(error);
        message
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reading<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Reading<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let field = self.schema.field(&name).map_err(|error| self.refused(error))?;
            drop(name);
            self.field = Some(field);
            let pairs = field == Field::Glossary;
            let most = if pairs { MOST_TERMS } else { self.schema.texts };
            let (value, count) = map.next_value_seed(ReadValue { list: field == Field::Q, pairs, most })?;
            if count > most {
                let too_many = if pairs { too_many_terms(count) } else { ApiError::too_long(count, most) };
                return Err(self.refused(too_many));
            }
            self.parameters.set(field, value).map_err(|error| self.refused(error))?;
            self.field = None;
        }
        Ok(())
    }
}

/// Parses a value, and counts the elements of a list. Texts beyond the limit are counted but not
/// kept.
struct ReadValue {
    /// Whether a list is allowed.
    list: bool,
    /// Whether an object of strings or a list of string pairs is allowed.
    pairs: bool,
    most: usize,
}

impl<'de> DeserializeSeed<'de> for ReadValue {
    type Value = (Scalar, usize);

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ReadValue {
    type Value = (Scalar, usize);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of its parameter")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok((Scalar::Null, 0))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok((Scalar::Bool(value), 0))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Ok((Scalar::Integer(value), 0))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Ok((Scalar::Integer(i64::try_from(value).unwrap_or(i64::MAX)), 0))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok((Scalar::Text(text.to_owned()), 0))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        if !self.pairs {
            return Err(A::Error::custom("an object"));
        }
        let (mut pairs, mut count) = (Vec::new(), 0);
        while let Some(pair) = map.next_entry::<String, String>()? {
            count += 1;
            if count <= self.most {
                pairs.push(pair);
            }
        }
        Ok((Scalar::Pairs(pairs), count))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        if self.pairs {
            let (mut pairs, mut count) = (Vec::new(), 0);
            while let Some(pair) = list.next_element::<(String, String)>()? {
                count += 1;
                if count <= self.most {
                    pairs.push(pair);
                }
            }
            return Ok((Scalar::Pairs(pairs), count));
        }
        if !self.list {
            return Err(A::Error::custom("a list"));
        }
        let (mut texts, mut count) = (Vec::new(), 0);
        while let Some(text) = list.next_element_seed(ReadText { keep: count < self.most })? {
            texts.extend(text);
            count += 1;
        }
        Ok((Scalar::List(texts), count))
    }
}

/// An element of a list.
struct ReadText {
    keep: bool,
}

impl<'de> DeserializeSeed<'de> for ReadText {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for ReadText {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.keep.then(|| text.to_owned()))
    }
}

#[cfg(test)]
mod tests;
