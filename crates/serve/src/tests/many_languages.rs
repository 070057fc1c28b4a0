//! Multilingual models: every pair is served.

use super::*;

/// A golden model of 100 languages, which are those of M2M100.
fn golden(family: &str) -> ModelSource {
    let goldens = concat!(env!("CARGO_MANIFEST_DIR"), "/../regard-core/tests/goldens/families");
    let folder = PathBuf::from(goldens).join(family);
    let translator = Translator::load(&[&folder], Isa::best(), 1).unwrap();
    let options = SearchOptions { max_length: Some(8), ..translator.options() };
    ModelSource { folder, translator, options, languages: None, loader: None }
}

/// The translation by the model itself for these languages.
fn translation(family: &str, text: &str, source: &str, target: &str) -> String {
    let translator = golden(family).translator.for_languages(Some(source), Some(target)).unwrap();
    let options = SearchOptions { max_length: Some(8), ..translator.options() };
    translator.translate(&[text], &options).unwrap()[0].best().text
}

fn serving(models: Vec<ModelSource>) -> Arc<App> {
    App::new(models, settings()).unwrap()
}

#[tokio::test]
async fn every_pair_is_listed_and_translated() {
    let app = serving(vec![golden("m2m100")]);
    let languages = get(&app, "/languages").await.good();
    let languages = languages.as_array().unwrap();
    assert_eq!(languages.len(), 100);
    assert!(languages.iter().all(|l| l["targets"].as_array().unwrap().len() == 100));
    let german = languages.iter().find(|l| l["code"] == "de").unwrap();
    assert_eq!(german["name"], "German");
    assert!(languages.iter().any(|l| l["code"] == "zh-Hans"));
    let text = "kano tinser, bader";
    let to = |source: &str, target: &str| {
        let app = Arc::clone(&app);
        let call = json!({"q": text, "source": source, "target": target});
        async move { post(&app, "/translate", call).await.good()["translatedText"].clone() }
    };
    // The requested languages are passed to the model, in any spelling.
    let want = translation("m2m100", text, "en", "zh");
    assert_eq!(to("en", "zh").await, want);
    assert_eq!(to("eng_Latn", "zh-Hans").await, want);
    // Random weights give the same output for many target languages, but not for all.
    let differs = |target: &&str| translation("m2m100", text, "en", target) != want;
    let codes = languages.iter().map(|l| l["code"].as_str().unwrap()).filter(|code| *code != "en");
    let other = codes.into_iter().find(differs).expect("a language in which the model says something else");
    assert_eq!(to("en", other).await, translation("m2m100", text, "en", other));
    assert_eq!(to("de", "de").await, "kano tinser, bader");
    let refused = post(&app, "/translate", json!({"q": "a", "source": "en", "target": "tlh"})).await;
    assert_eq!(refused.error(), (400, "tlh is not supported".to_owned()));
}

#[tokio::test]
async fn languages_are_found_out_among_all() {
    let app = serving(vec![golden("m2m100")]);
    for (text, code) in [
        ("Il fait beau aujourd'hui et les enfants jouent dehors.", "fr"),
        ("Мы были рады, что это был хороший день и дети играли на улице.", "ru"),
        ("今日は天気が良く、子供たちは外で遊んでいます。", "ja"),
    ] {
        let found = post(&app, "/detect", json!({"q": text})).await.good();
        assert_eq!(found[0]["language"], code, "{text}");
        let call = json!({"q": text, "source": "auto", "target": "de"});
        let answer = post(&app, "/translate", call).await.good();
        assert_eq!(answer["detectedLanguage"]["language"], code);
    }
}

#[tokio::test]
async fn requests_of_several_pairs_share_a_queue() {
    let app = serving(vec![golden("m2m100")]);
    let codes = ["fr", "de", "zh", "ast", "fr"];
    let calls = codes.map(|target| {
        let call = json!({"q": ["kano", "bader kano"], "source": "en", "target": target});
        let app = Arc::clone(&app);
        tokio::spawn(async move { post(&app, "/translate", call).await.good()["translatedText"].clone() })
    });
    for (call, target) in calls.into_iter().zip(codes) {
        let want = ["kano", "bader kano"].map(|text| translation("m2m100", text, "en", target));
        assert_eq!(call.await.unwrap(), json!(want), "{target}");
    }
}

#[tokio::test]
async fn one_pair_can_be_named_and_what_is_inside_is_that_of_the_pair() {
    let mut named = golden("m2m100");
    named.languages = Some(("en".into(), "de".into()));
    let app = serving(vec![named, golden("madlad")]);
    let languages = get(&app, "/languages").await.good();
    // English and German from the first model, and the languages of MADLAD; en → fr pivots through
    // German.
    let codes: Vec<&str> =
        languages.as_array().unwrap().iter().map(|l| l["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["de", "en", "fr", "pt", "sr", "zh-Hans"]);
    let call = json!({"q": "kano", "source": "fr", "target": "pt-BR"});
    assert!(post(&app, "/translate", call).await.good()["translatedText"].is_string());
    let steps = json!({"q": "kano bader", "source": "fr", "target": "zh"});
    assert_eq!(post(&app, "/v1/steps", steps.clone()).await.status, 200);
    assert_eq!(post(&app, "/v1/attention", steps).await.status, 200);
    let models = get(&app, "/v1/model").await.good();
    assert_eq!((&models[0]["source"], &models[0]["target"]), (&json!("en"), &json!("de")));
    assert_eq!(models[0].get("languages"), None);
    let known = models[1]["languages"].as_array().unwrap();
    assert!(["fr", "pt", "zh-Hans"].iter().all(|code| known.contains(&json!(code))), "{known:?}");
}
