//! Parses arbitrary bytes as JSON, as a form and as a multipart form.

use super::Call;
use super::values::{GlossaryValue, MOST_TERMS, Parameters, Schema, Texts};
use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, header};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// The maximum number of texts in a list.
const TEXTS: usize = 5;

/// Endpoints that differ in the parameters that they accept.
const ROUTES: [&str; 6] =
    ["/translate", "/translate_file", "/v1/attention", "/v1/steps", "/v1/beam", "/detect"];

/// Parses a body in every way that an endpoint does. It is rejected, or gives values no larger than
/// the body; in forms, bytes that are not UTF-8 become a replacement character of three bytes.
pub fn parameters(body: &[u8]) {
    for route in ROUTES {
        let schema = Schema::of(route, TEXTS);
        let mut values = Parameters::default();
        if values.add_json(body, &schema).is_ok() {
            check(&values, body.len());
        }
        let mut values = Parameters::default();
        if values.add_form(body, &schema).is_ok() {
            check(&values, 3 * body.len());
        }
        let mut call = Call::default();
        if multipart(&mut call, body, &schema) {
            check(&call.values, 3 * body.len());
            assert!(call.file.is_none_or(|file| file.bytes.len() <= body.len()));
        }
    }
}

fn check(values: &Parameters, most: usize) {
    let texts = values.texts();
    let list = texts.as_ref().map_or(&[][..], Texts::list);
    assert!(list.len() <= TEXTS);
    let names =
        ["source", "target", "format", "translation", "model", "prefix", "stack", "without"].into_iter();
    let others = names.filter_map(|name| values.text(name)).chain(values.key());
    let terms = match values.glossary() {
        Some(GlossaryValue::Name(name)) => name.len(),
        Some(GlossaryValue::Pairs(pairs)) => {
            assert!(pairs.len() <= MOST_TERMS);
            pairs.iter().map(|(source, target)| source.len() + target.len()).sum()
        }
        None => 0,
    };
    let texts = list.iter().map(String::len).chain(others.map(str::len)).sum::<usize>();
    assert!(texts + terms <= most);
    assert!(values.alternatives(TEXTS).is_ok_and(|n| n <= TEXTS) || values.alternatives(TEXTS).is_err());
}

/// Whether a multipart form with the boundary `x` is accepted. The body is complete, so parsing
/// never waits.
fn multipart(call: &mut Call, body: &[u8], schema: &Schema) -> bool {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("multipart/form-data; boundary=x"));
    let mut reading = pin!(call.add_multipart(&headers, Bytes::copy_from_slice(body), schema));
    match reading.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => outcome.is_ok(),
        Poll::Pending => panic!("a form that is complete is waited for"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn bodies_of_any_kind() {
        regard_core::formats::fuzzing::damage_seeds("parameters", super::parameters);
    }
}
