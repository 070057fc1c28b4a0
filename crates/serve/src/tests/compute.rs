//! Texts are parsed and rendered outside the threads that serve requests.

use super::*;
use std::sync::mpsc;
use std::time::Instant;

/// 100,000 characters that could slow down a pattern.
fn awkward(unit: &str) -> String {
    unit.chars().cycle().take(100_000).collect()
}

// The runtime of the tests has one thread, so a blocked thread blocks everything.
#[tokio::test]
async fn work_on_text_blocks_nobody() {
    let app = usual();
    let (release, wait) = mpsc::channel::<()>();
    let shared = Arc::clone(&app);
    let busy = tokio::spawn(async move { shared.compute(move |_| Ok(wait.recv().is_ok())).await });
    tokio::task::yield_now().await;
    assert_eq!(get(&app, "/health").await.status, 200);
    assert_eq!(get(&app, "/metrics").await.status, 200);
    release.send(()).unwrap();
    assert_eq!(busy.await.unwrap(), Ok(true));
}

#[tokio::test]
async fn work_on_text_has_a_number_and_an_end() {
    let limits = Limits { timeout: Duration::from_millis(50), ..Limits::default() };
    let app = app(Settings { limits, ..settings() });
    let (release, wait) = mpsc::channel::<()>();
    let (told, cancelled) = mpsc::channel();
    let late = app.in_time(app.compute(move |cancellation| {
        let before = cancellation.check().is_ok();
        wait.recv().ok();
        told.send((before, cancellation.check().is_err())).unwrap();
        Ok(())
    }));
    let error = late.await.unwrap_err();
    assert_eq!(
        (error.status.as_u16(), error.message.as_str()),
        (503, "The translation took longer than 0.05 s")
    );
    // The only slot is still taken, so a second request waits and times out, too.
    let second = post(&app, "/detect", json!({"q": "a dog"})).await;
    assert_eq!(second.error().0, 503);
    release.send(()).unwrap();
    assert_eq!(cancelled.recv().unwrap(), (true, true));
    until(|| app.compute_slots.available_permits() == 1).await;
    post(&app, "/detect", json!({"q": "a dog"})).await.good();
}

#[tokio::test]
async fn short_texts_need_no_slot_and_may_panic() {
    let app = usual();
    let _slots = app.compute_slots.acquire_many(app.compute_slots.available_permits() as u32).await.unwrap();
    assert_eq!(app.compute_text(1_000, |_| Ok(7)).await, Ok(7));
    let panicked = app.compute_text::<()>(0, |_| panic!("a short text")).await;
    assert_eq!(panicked.unwrap_err().status.as_u16(), 500);
    let long = tokio::time::timeout(Duration::from_millis(20), app.compute_text(1_001, |_| Ok(7))).await;
    assert!(long.is_err(), "a long text waits for a slot");
}

#[tokio::test]
async fn awkward_texts_are_answered() {
    let (app, _) = with_stand_in(settings());
    // One second in a release build; this build is not optimised, and other tests run in parallel.
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 5 });
    for unit in ["1-", "𝟙-", "a@", "http://", "((", "<a b=\"", "a. ", "<code>", "🙂"] {
        for (path, format) in [
            ("/translate", "text"),
            ("/translate", "html"),
            ("/v1/translate/stream", "text"),
            ("/detect", ""),
            ("/v1/attention", ""),
        ] {
            let mut value = json!({"q": awkward(unit), "source": "en", "target": "fr"});
            if path == "/detect" {
                value = json!({"q": awkward(unit)});
            } else if path == "/translate" {
                value["source"] = json!("auto");
                value["format"] = json!(format);
            }
            let start = Instant::now();
            let answer = post(&app, path, value).await;
            assert!(start.elapsed() < limit, "{path} of {unit:?} took {:?}", start.elapsed());
            assert!([200, 400].contains(&answer.status), "{path} of {unit:?}: {}", answer.body);
        }
    }
}
