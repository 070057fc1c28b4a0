use super::*;
use crate::keys::Keys;

async fn refused(app: &Arc<App>, value: Value) -> (u16, String) {
    post(app, "/translate", value).await.error()
}

fn bad(message: &str) -> (u16, String) {
    (400, message.to_owned())
}

#[tokio::test]
async fn parameters_are_checked() {
    let app = usual();
    for (value, message) in [
        (json!({"source": "en", "target": "fr"}), "Invalid request: missing q parameter"),
        (json!({"q": "", "source": "en", "target": "fr"}), "Invalid request: missing q parameter"),
        (json!({"q": [], "source": "en", "target": "fr"}), "Invalid request: missing q parameter"),
        (json!({"q": "a", "target": "fr"}), "Invalid request: missing source parameter"),
        (json!({"q": "a", "source": "en"}), "Invalid request: missing target parameter"),
        (
            json!({"q": [1], "source": "en", "target": "fr"}),
            "Invalid request: q must be a string or a list of strings",
        ),
        (
            json!({"q": {}, "source": "en", "target": "fr"}),
            "Invalid request: q must be a string or a list of strings",
        ),
        (
            json!({"q": 0, "source": "en", "target": "fr"}),
            "Invalid request: q must be a string or a list of strings",
        ),
        (
            json!({"q": "a", "source": "en", "target": "fr", "dictionary": {}}),
            "Invalid request: unknown parameter \"dictionary\"; accepted: q, source, target, format, alternatives, \
             api_key, secret, alignment, confidence, glossary, memory",
        ),
        (json!({"q": "a", "source": "zz", "target": "fr"}), "zz is not supported"),
        (json!({"q": "a", "source": "en", "target": "zz"}), "zz is not supported"),
        (json!({"q": "a", "source": "en", "target": "fr", "format": "pdf"}), "pdf format is not supported"),
        (
            json!({"q": "a", "source": "zh", "target": "fr"}),
            "French (fr) is not available as a target language from Chinese (zh-Hans)",
        ),
        (
            json!({"q": "a", "source": "en", "target": "fr", "alternatives": "many"}),
            "Invalid request: alternatives parameter is not a number",
        ),
        (
            json!({"q": "a", "source": "en", "target": "fr", "alternatives": 6}),
            "Invalid request: alternatives parameter must be <= 5",
        ),
    ] {
        assert_eq!(refused(&app, value.clone()).await, bad(message), "{value}");
    }
    for body in ["", "{", "[]", "\"q\"", "{\"q\": \"a\",}"] {
        let answer = send(&app, request("POST", "/translate", "application/json", body)).await;
        assert_eq!(answer.error(), bad("Invalid JSON format"), "{body}");
    }
    let answer = send(&app, request("POST", "/translate_file", "multipart/form-data", "x")).await;
    assert_eq!(answer.error(), bad("Invalid request: the multipart form has no boundary"));
    let answer = send(&app, request("POST", "/translate_file", "multipart/form-data; boundary=x", "y")).await;
    assert_eq!(answer.error().0, 400);
    let answer = form(&app, "/translate_file", "source=en&target=fr").await;
    assert_eq!(answer.error(), bad("Invalid request: missing file parameter"));
    let part = "--x\r\nContent-Disposition: form-data; name=\"dictionary\"\r\n\r\na\r\n--x--\r\n";
    let answer =
        send(&app, request("POST", "/translate_file", "multipart/form-data; boundary=x", part)).await;
    assert!(answer.error().1.starts_with("Invalid request: unknown parameter \"dictionary\"; accepted: q,"));
    let answer = form(&app, "/translate", "q=a&source=en&target=fr&dictionary=x").await;
    assert!(answer.error().1.starts_with("Invalid request: unknown parameter \"dictionary\"; accepted: q,"));
    let answer = get(&app, "/v1/model?verbose=1").await;
    assert!(answer.error().1.starts_with("Invalid request: unknown parameter \"verbose\"; accepted: q,"));
    assert_eq!(form(&app, "/detect", "").await.error(), bad("Invalid request: missing q parameter"));
    let stream = json!({"q": ["a"], "source": "en", "target": "fr"});
    let message = "Invalid request: q must be a string; a stream has one text";
    assert_eq!(post(&app, "/v1/translate/stream", stream).await.error(), bad(message));
}

#[tokio::test]
async fn sizes_are_limited() {
    let limits =
        Limits { characters: 10, texts: 2, body_bytes: 300, attention_tokens: 4, ..Limits::default() };
    let app = app(Settings { limits, ..settings() });
    let of = |q: Value| json!({"q": q, "source": "en", "target": "fr"});
    let message = "Invalid request: request (11) exceeds text limit (10)";
    assert_eq!(refused(&app, of("é".repeat(11).into())).await, bad(message));
    assert_eq!(refused(&app, of(json!(["123456", "12345"]))).await, bad(message));
    let message = "Invalid request: request (3) exceeds text limit (2)";
    assert_eq!(refused(&app, of(json!(["a", "b", "c"]))).await, bad(message));
    post(&app, "/translate", of("é".repeat(10).into())).await.good();
    let (status, message) = refused(&app, of("x".repeat(400).into())).await;
    assert_eq!((status, message.as_str()), (413, "Invalid request: the body has more than 300 bytes"));
    let message = "Invalid request: request (11) exceeds text limit (10)";
    assert_eq!(form(&app, "/detect", "q=12345678901").await.error(), bad(message));
    let (status, message) = post(&app, "/v1/attention", of("a b c d e".into())).await.error();
    assert_eq!(status, 400);
    assert!(message.ends_with("tokens; attention can be shown for at most 4"), "{message}");
}

#[tokio::test]
async fn keys_and_quotas_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    std::fs::write(&file, "secret\n").unwrap();
    let limits = Limits { requests_per_minute: Some(3), ..Limits::default() };
    let app = app(Settings { keys: Some(Keys::load(&file).unwrap()), limits, ..settings() });
    let of = |key: &str| json!({"q": "🙂", "source": "en", "target": "fr", "api_key": key});
    assert_eq!(refused(&app, of("")).await, bad("Please contact the server operator to get an API key"));
    assert_eq!(refused(&app, of("wrong")).await, (403, "Invalid API key".into()));
    assert_eq!(get(&app, "/v1/model").await.error().0, 400);
    post(&app, "/translate", of("secret")).await.good();
    get(&app, "/v1/positions?api_key=secret").await.good();
    let mut bearer = request("POST", "/detect", "application/x-www-form-urlencoded", "q=a");
    bearer.headers_mut().insert("authorization", HeaderValue::from_static("Bearer secret"));
    send(&app, bearer).await.good();
    let answer = post(&app, "/translate", of("secret")).await;
    assert_eq!(answer.error(), (429, "Slowdown: 3 per 1 minute".into()));
    assert!((1..=60).contains(&answer.header("retry-after").parse::<u64>().unwrap()));
    // Endpoints that reveal nothing about translations need no key.
    for path in ["/languages", "/health", "/frontend/settings", "/spec", "/docs", "/", "/metrics"] {
        assert_eq!(get(&app, path).await.status, 200, "{path}");
    }
    let settings = get(&app, "/frontend/settings").await.good();
    assert_eq!((&settings["apiKeys"], &settings["keyRequired"]), (&json!(true), &json!(true)));
}

#[tokio::test]
async fn wrong_addresses_and_methods_are_errors_too() {
    let app = usual();
    assert_eq!(get(&app, "/nothing").await.error(), (404, "The page not found".into()));
    let answer = get(&app, "/translate").await;
    assert_eq!(answer.error(), (405, "The method is not allowed for this address".into()));
    assert_eq!(answer.header("allow"), "POST");
    assert_eq!(post(&app, "/languages", json!({})).await.error().0, 405);
}

#[tokio::test]
async fn a_panic_costs_one_request() {
    let (app, _) = with_stand_in(settings());
    let (status, message) = refused(&app, of("panic")).await;
    assert_eq!((status, message.as_str()), (500, "the translation failed; the log says why"));
    let answer = post(&app, "/v1/translate/stream", of("panic")).await;
    let event = "data: {\"error\":\"the translation failed; the log says why\",\"done\":true}\n\n";
    assert_eq!(answer.body, event);
    assert_eq!(post(&app, "/translate", of("fine")).await.good()["translatedText"], "FINE");
    assert!(get(&app, "/metrics").await.body.contains("regard_panics_total{model=\"en-fr\"} 2\n"));
}

fn of(q: &str) -> Value {
    json!({"q": q, "source": "en", "target": "fr"})
}

#[tokio::test]
async fn a_full_queue_says_when_to_come_back() {
    let mut settings = settings();
    (settings.batching.queue, settings.batching.max_batch) = (1, 1);
    let (app, stand_in) = with_stand_in(settings);
    let spawn = |q: &str| {
        let (app, value) = (Arc::clone(&app), of(q));
        tokio::spawn(async move { post(&app, "/translate", value).await })
    };
    // One request is in progress, one waits, and the third has no room.
    let first = spawn("slow one");
    until(|| stand_in.begun.load(Ordering::SeqCst) == 1).await;
    let second = spawn("slow two");
    until(|| app.models[0].batcher.waiting() == 1).await;
    let third = post(&app, "/translate", of("three")).await;
    assert_eq!(third.error(), (503, "too many requests are waiting, try again".into()));
    assert_eq!(third.header("retry-after"), "1");
    *stand_in.open.lock().unwrap() = true;
    for (served, text) in [(first, "SLOW ONE"), (second, "SLOW TWO")] {
        assert_eq!(served.await.unwrap().good()["translatedText"], text);
    }
}

#[tokio::test]
async fn what_takes_too_long_is_given_up() {
    let limits = Limits { timeout: Duration::from_millis(50), ..Limits::default() };
    let (app, stand_in) = with_stand_in(Settings { limits, ..settings() });
    let late = post(&app, "/translate", of("slow one")).await;
    assert_eq!(late.error(), (503, "The translation took longer than 0.05 s".into()));
    assert_eq!(late.header("retry-after"), "1");
    let late = post(&app, "/v1/translate/stream", of("slow two")).await;
    let event = "data: {\"error\":\"The translation took longer than 0.05 s\",\"done\":true}\n\n";
    assert_eq!(late.body, event);
    until(|| stand_in.given_up.lock().unwrap().len() == 2).await;
}

#[tokio::test]
async fn a_closed_server_refuses() {
    let app = app(settings());
    app.close();
    let value = json!({"q": "a", "source": "en", "target": "fr"});
    assert_eq!(refused(&app, value).await, (503, "the server is shutting down".into()));
}
