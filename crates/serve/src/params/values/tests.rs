use super::*;

fn read(route: &str, body: &str) -> ApiResult<Parameters> {
    let mut parameters = Parameters::default();
    parameters.add_json(body.as_bytes(), &Schema::of(route, 3))?;
    Ok(parameters)
}

fn refusal(route: &str, body: &str) -> String {
    let error = read(route, body).unwrap_err();
    assert_eq!(error.status.as_u16(), 400);
    error.message
}

#[test]
fn alternatives_are_a_small_number() {
    let of = |value: &str| read("/translate", &format!("{{\"alternatives\": {value}}}"))?.alternatives(3);
    assert_eq!(of("2"), Ok(2));
    assert_eq!(of("\" 3 \""), Ok(3));
    assert_eq!(of("-1"), Ok(0));
    assert_eq!(of("null"), Ok(0));
    for large in ["4", "18446744073709551615"] {
        let error = of(large).unwrap_err();
        assert_eq!(error.message, "Invalid request: alternatives parameter must be <= 3");
    }
    for value in ["\"x\"", "1.5", "true", "[1]", "{}", "1e3"] {
        let error = of(value).unwrap_err();
        assert_eq!(error.message, "Invalid request: alternatives parameter is not a number", "{value}");
    }
}

#[test]
fn the_lines_of_a_form_end_with_lf() {
    let mut parameters = Parameters::default();
    parameters.add_form(b"q=a%0D%0Ab&source=en", &Schema::of("/translate", 3)).unwrap();
    assert_eq!(parameters.texts(), Ok(Texts::One("a\nb".into())));
    assert_eq!((parameters.text("source"), parameters.text("target")), (Some("en"), None));
}

#[test]
fn every_parameter_has_its_type() {
    for (body, message) in [
        (r#"{"q": 0}"#, "q must be a string or a list of strings"),
        (r#"{"q": true}"#, "q must be a string or a list of strings"),
        (r#"{"q": 1.5}"#, "q must be a string or a list of strings"),
        (r#"{"q": {"": 0}}"#, "q must be a string or a list of strings"),
        (r#"{"q": ["a", 1]}"#, "q must be a string or a list of strings"),
        (r#"{"q": ["a", null]}"#, "q must be a string or a list of strings"),
        (r#"{"q": [["a"]]}"#, "q must be a string or a list of strings"),
        (r#"{"source": 1}"#, "source must be a string"),
        (r#"{"target": ["fr"]}"#, "target must be a string"),
        (r#"{"format": {}}"#, "format must be a string"),
        (r#"{"api_key": 7}"#, "api_key must be a string"),
        (r#"{"secret": 7}"#, "secret must be a string"),
        (r#"{"alignment": "yes"}"#, "alignment must be true or false"),
        (r#"{"alignment": 1}"#, "alignment must be true or false"),
    ] {
        assert_eq!(refusal("/translate", body), format!("Invalid request: {message}"), "{body}");
    }
    assert_eq!(
        refusal("/translate_file", r#"{"file": "text"}"#),
        "Invalid request: file must be a file of a multipart form"
    );
    let good = read("/translate", r#"{"q": ["a", ""], "source": null, "alignment": true, "secret": "x"}"#);
    let good = good.unwrap();
    assert_eq!(good.texts(), Ok(Texts::Many(vec!["a".into(), String::new()])));
    assert!(good.flag("alignment") && good.text("source").is_none());
}

#[test]
fn unknown_parameters_are_refused_by_their_name() {
    let common = "q, source, target, format, alternatives, api_key, secret";
    for (route, name, own) in [
        ("/translate", "dictionary", ", alignment, confidence, glossary, memory"),
        ("/translate", "translation", ", alignment, confidence, glossary, memory"),
        ("/detect", "alignment", ""),
        ("/v1/positions", "Model", ", model"),
        ("/v1/attention", "", ", translation"),
    ] {
        let message = format!("Invalid request: unknown parameter {name:?}; accepted: {common}{own}");
        assert_eq!(refusal(route, &format!("{{\"q\": \"a\", \"{name}\": {{\"x\": []}}}}")), message);
        let form = Parameters::default().add_form(format!("q=a&{name}=x").as_bytes(), &Schema::of(route, 3));
        assert_eq!(form.unwrap_err().message, message);
    }
    let long = "x".repeat(1000);
    assert!(refusal("/detect", &format!("{{\"{long}\": 0}}")).len() < 200);
    let json = Parameters::default().add_form(br#"{"q": "a"}"#, &Schema::of("/translate", 3));
    assert_eq!(
        json.unwrap_err().message,
        "Invalid request: the body looks like JSON; send it with Content-Type: application/json"
    );
}

#[test]
fn what_is_no_object_is_no_json_of_ours() {
    for body in
        ["", "{", "[]", "0", "\"q\"", "{\"q\": \"a\",}", "{} {}", "{\"q\": \"\\ud800\"}", "\u{feff}{}"]
    {
        assert_eq!(refusal("/translate", body), "Invalid JSON format", "{body}");
    }
}

/// Bodies that would take a hundred times their size as a tree of values are rejected at their
/// first wrong value, and texts beyond the limit are counted without being kept.
#[test]
fn parsing_keeps_no_more_than_the_limit_allows() {
    let objects = format!("{{\"q\":[{}{{\"\":0}}]}}", "{\"\":0},".repeat(500_000));
    assert_eq!(refusal("/translate", &objects), "Invalid request: q must be a string or a list of strings");
    let empty = format!("{{\"q\":[{}\"\"]}}", "\"\",".repeat(1_000_000));
    assert_eq!(refusal("/translate", &empty), "Invalid request: request (1000001) exceeds text limit (3)");
    let deep = format!("{{\"q\":{}", "[".repeat(1_000_000));
    assert_eq!(refusal("/translate", &deep), "Invalid request: q must be a string or a list of strings");
    let mut json = serde_json::Deserializer::from_str("[\"a\", \"b\", \"c\"]");
    let read = ReadValue { list: true, pairs: false, most: 2 }.deserialize(&mut json).unwrap();
    assert!(matches!(read, (Scalar::List(texts), 3) if texts == ["a", "b"]));
}
