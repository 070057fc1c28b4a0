//! Keys and texts must not leak into crash messages; and the headers of every response for
//! browsers.

use super::*;

#[tokio::test]
async fn every_answer_has_the_headers_that_protect_a_browser() {
    let app = usual();
    let text = json!({"q": "A dog.", "source": "en", "target": "fr"});
    let answers = [
        get(&app, "/").await,
        get(&app, "/docs").await,
        get(&app, "/health").await,
        get(&app, "/nothing").await,
        post(&app, "/translate", text.clone()).await,
        post(&app, "/v1/translate/stream", text).await,
    ];
    for (i, answer) in answers.iter().enumerate() {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), value, "{name} of answer {i}");
        }
        let (policy, cache) = (answer.header("content-security-policy"), answer.header("cache-control"));
        match i < 2 {
            true => assert!(policy.contains("script-src 'self'") && cache == "no-cache", "{policy} {cache}"),
            false => assert_eq!((policy, cache), ("default-src 'none'; sandbox", "no-store"), "answer {i}"),
        }
    }
}

#[tokio::test]
async fn a_key_has_its_own_limits_and_can_be_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys");
    let limits = |requests_per_minute, characters| KeyLimits { requests_per_minute, characters };
    let small = KeyFile::add(&file, "small", limits(Some(3), Some(5)), None).unwrap();
    let large = KeyFile::add(&file, "large", limits(None, Some(50)), None).unwrap();
    let server = Limits { characters: 10, ..Limits::default() };
    let keys = Some(Keys::load(&file).unwrap());
    let app = app(Settings { keys, limits: server, ..settings() });
    let of = |key: &str, count: usize| json!({"q": "1".repeat(count), "source": "en", "target": "fr", "api_key": key});
    let status = async |key: &str, count| post(&app, "/translate", of(key, count)).await.status;
    assert_eq!((status(&small, 5).await, status(&small, 6).await), (200, 400));
    assert_eq!((status(&large, 50).await, status(&large, 51).await), (200, 400));
    assert_eq!((status(&small, 5).await, status(&small, 5).await), (200, 429));
    KeyFile::revoke(&file, &["large".into()]).unwrap();
    let third = KeyFile::add(&file, "third", KeyLimits::default(), None).unwrap();
    app.reload(false);
    assert_eq!((status(&large, 1).await, status(&third, 10).await), (403, 200));
    assert_eq!((status(&third, 11).await, status(&small, 1).await), (400, 429));
}

/// Replaces the model on each load: only the weights differ.
#[tokio::test]
async fn models_are_replaced_without_a_restart() {
    let mut source = model("en", "fr", Positions::Sinusoidal);
    let loads = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&loads);
    source.loader = Some(Loader::new(move || {
        // The third load finds a model for other languages, and the fourth load fails.
        let (from, positions) = match counted.fetch_add(1, Ordering::SeqCst) {
            0 | 1 => ("en", Positions::Learned),
            2 => ("de", Positions::Learned),
            _ => return Err(regard_core::Error::config("model", "there is none")),
        };
        let ModelSource { translator, options, .. } = model(from, "fr", positions);
        Ok(LoadedModel { translator, options })
    }));
    let app = App::new(vec![source], settings()).unwrap();
    let translate = async || {
        let text = json!({"q": "A small dog runs in the park.", "source": "en", "target": "fr"});
        post(&app, "/translate", text).await.good()["translatedText"].clone()
    };
    let before = translate().await;
    app.reload(false);
    assert_eq!((translate().await == before, loads.load(Ordering::SeqCst)), (true, 0));
    app.reload(true);
    let after = translate().await;
    assert_ne!(before, after);
    let positions = get(&app, "/v1/model").await.good()[0]["config"]["positions"].clone();
    assert_eq!(positions, json!("learned"));
    app.reload(true);
    assert_eq!(translate().await, after);
    // A model that cannot be used changes nothing.
    app.reload(true);
    app.reload(true);
    assert_eq!((translate().await, loads.load(Ordering::SeqCst)), (after, 4));
    let metrics = get(&app, "/metrics").await.body;
    assert!(metrics.contains("regard_model_loaded{model=\"en-fr\"} 1\n"), "{metrics}");
    assert!(metrics.contains("regard_model_loads_total{model=\"en-fr\"} 3\n"), "{metrics}");
}

/// Fails over a text as a worker does. The next test runs it in a separate process, because the
/// panic hook applies to the whole process.
#[test]
#[ignore = "the test below runs it"]
fn panics_with_a_text() {
    start_log(Log::Text);
    hide_panic_messages();
    let text = "Ein Geheimnis äöü";
    let failed = std::thread::Builder::new().name("worker 0".into()).spawn(|| text[..15].to_owned());
    assert!(failed.unwrap().join().is_err());
}

#[test]
fn the_message_of_a_panic_is_not_logged() {
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tests::security::panics_with_a_text", "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stderr).into_owned() + &String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && output.contains("1 passed"), "{output}");
    assert!(
        output.contains("panicked") && output.contains("security.rs") && output.contains("worker 0"),
        "{output}"
    );
    assert!(!output.contains("Geheimnis"), "{output}");
}
