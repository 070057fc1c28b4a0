use super::*;

#[tokio::test]
async fn languages_and_where_they_lead() {
    let app = usual();
    let wanted = json!([
        {"code": "en", "name": "English", "targets": ["en", "fr", "zh-Hans"]},
        {"code": "fr", "name": "French", "targets": ["en", "fr", "zh-Hans"]},
        {"code": "zh-Hans", "name": "Chinese", "targets": ["zh-Hans"]},
    ]);
    assert_eq!(get(&app, "/languages").await.good(), wanted);
    // Some clients send a body with GET.
    let sent = request("GET", "/languages", "application/x-www-form-urlencoded", "api_key=x");
    assert_eq!(send(&app, sent).await.good(), wanted);
}

#[tokio::test]
async fn languages_are_detected() {
    let app = usual();
    let found = form(&app, "/detect", "q=This+is+quite+an+ordinary+English+sentence.").await.good();
    assert_eq!(found[0]["language"], "en");
    assert!(found[0]["confidence"].as_f64().unwrap() <= 100.0);
    let found = post(&app, "/detect", json!({"q": "Ceci est une phrase ordinaire."})).await.good();
    assert_eq!(found[0]["language"], "fr");
}

#[tokio::test]
async fn health_and_settings() {
    let app = usual();
    assert_eq!(get(&app, "/health").await.good(), json!({"status": "ok"}));
    let settings = get(&app, "/frontend/settings").await.good();
    for (key, value) in [
        ("charLimit", json!(100_000)),
        ("frontendTimeout", json!(500)),
        ("apiKeys", json!(false)),
        ("keyRequired", json!(false)),
        ("suggestions", json!(false)),
        ("filesTranslation", json!(true)),
    ] {
        assert_eq!(settings[key], value, "{key}");
    }
    let formats = settings["supportedFilesFormat"].as_array().unwrap();
    for ending in
        [".txt", ".html", ".docx", ".odt", ".pptx", ".xlsx", ".epub", ".srt", ".po", ".xliff", ".json"]
    {
        assert!(formats.contains(&json!(ending)), "{ending}");
    }
    assert_eq!(settings["language"]["target"], json!({"code": "fr", "name": "French"}));
    assert_eq!(settings["language"]["source"]["code"], "auto");
}

#[tokio::test]
async fn the_page_is_sent_once_and_loads_nothing_foreign() {
    let app = usual();
    for path in ["/", "/docs", "/docs.css"] {
        let page = get(&app, path).await;
        assert_eq!(page.status, 200, "{path}");
        let policy = page.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'") && !policy.contains("unsafe"),
            "{policy}"
        );
        let mut again = request("GET", path, "", Body::empty());
        again.headers_mut().insert("if-none-match", page.headers["etag"].clone());
        let again = send(&app, again).await;
        assert_eq!((again.status, again.body.as_str()), (304, ""));
        assert_eq!(again.header("etag"), page.header("etag"));
    }
    assert!(get(&app, "/docs").await.body.contains("<code>/v1/translate/stream</code>"));
}

#[tokio::test]
async fn the_document_describes_what_is_there() {
    let app = usual();
    let spec = get(&app, "/spec").await.good();
    assert_eq!(spec["openapi"], "3.0.3");
    for (path, operations) in spec["paths"].as_object().unwrap() {
        let address = path.replace("{name}", "x");
        for method in operations.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let status = send(&app, request(&method, &address, "application/json", "{}")).await.status;
            assert!(status != 405 && (status != 404 || path.contains('{')), "{method} {path} is {status}");
        }
        assert_eq!(send(&app, request("DELETE", &address, "", Body::empty())).await.status, 405, "{path}");
    }
}

#[tokio::test]
async fn counters_count() {
    let app = app(settings());
    post(&app, "/translate", json!({"q": "A dog.", "source": "en", "target": "fr"})).await.good();
    get(&app, "/nothing/at/all").await;
    let answer = get(&app, "/metrics").await;
    assert!(answer.header("content-type").starts_with("text/plain; version=0.0.4"));
    for line in [
        "regard_request_seconds_count{route=\"/translate\",method=\"POST\",status=\"200\"} 1",
        "regard_request_seconds_count{route=\"other\",method=\"GET\",status=\"404\"} 1",
        "regard_model_requests_total{model=\"en-fr\"} 1",
        "regard_batch_sentences_count{model=\"en-fr\"} 1",
        "regard_characters_total 6",
        "regard_queue_sentences{model=\"fr-zh-Hans\"} 0",
    ] {
        assert!(answer.body.lines().any(|l| l == line), "{line} is not in\n{}", answer.body);
    }
}

#[tokio::test]
async fn pages_of_other_origins_may_call_if_they_may() {
    let any = usual();
    let answer = get(&any, "/languages").await;
    assert_eq!(answer.header("access-control-allow-origin"), "*");
    let asked = send(&any, request("OPTIONS", "/translate", "", Body::empty())).await;
    assert_eq!(asked.status, 204);
    assert_eq!(asked.header("access-control-allow-methods"), "GET, POST");
    assert_eq!(asked.header("access-control-allow-headers"), "Authorization, Content-Type");
    assert_eq!(asked.header("access-control-max-age"), "1728000");
    let one = app(Settings { cors: Some("https://some.example".into()), ..settings() });
    let answer = get(&one, "/nothing").await;
    assert_eq!(answer.header("access-control-allow-origin"), "https://some.example");
    assert_eq!(answer.header("vary"), "Origin");
    let none = app(Settings { cors: None, ..settings() });
    assert_eq!(get(&none, "/languages").await.header("access-control-allow-origin"), "");
    assert_eq!(send(&none, request("OPTIONS", "/translate", "", Body::empty())).await.status, 405);
}

#[tokio::test]
async fn files_of_the_page_are_compressed() {
    use std::io::Read;
    let app = usual();
    let plain = get(&app, "/app.js").await;
    let mut asked = request("GET", "/app.js", "", Body::empty());
    asked.headers_mut().insert("accept-encoding", HeaderValue::from_static("gzip, deflate, br"));
    let response = router(Arc::clone(&app)).oneshot(asked).await.unwrap();
    assert_eq!(response.headers()["content-encoding"], "gzip");
    assert_eq!(response.headers()["vary"], "Accept-Encoding");
    assert_ne!(response.headers()["etag"], plain.headers["etag"], "they are different bytes");
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain.body);
}
