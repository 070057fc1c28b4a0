use super::*;

async fn translated(value: Value) -> Value {
    post(&usual(), "/translate", value).await.good()
}

fn text(value: &Value) -> &str {
    value["translatedText"].as_str().unwrap_or_else(|| panic!("{value}"))
}

#[tokio::test]
async fn a_text_is_translated_however_it_is_sent() {
    let app = usual();
    let wanted = translated(json!({"q": "The dog sleeps.", "source": "en", "target": "fr"})).await;
    assert!(!text(&wanted).is_empty());
    assert_eq!(wanted.as_object().unwrap().len(), 1, "{wanted}");
    let body = "q=The+dog+sleeps.&source=en&target=fr";
    assert_eq!(form(&app, "/translate", body).await.good(), wanted);
    let path = format!("/translate?{body}");
    assert_eq!(send(&app, request("POST", &path, "", Body::empty())).await.good(), wanted);
    let field = |name: &str, value: &str| {
        format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let multipart =
        field("q", "The dog sleeps.") + &field("source", "en") + &field("target", "fr") + "--x--\r\n";
    let sent = request("POST", "/translate", "multipart/form-data; boundary=x", multipart);
    assert_eq!(send(&app, sent).await.good(), wanted);
    // Codes are case-insensitive, and JSON may come with a charset.
    let upper = json!({"q": "The dog sleeps.", "source": "EN", "target": "Fr"}).to_string();
    let sent = request("POST", "/translate", "application/json; charset=utf-8", upper);
    assert_eq!(send(&app, sent).await.good(), wanted);
}

#[tokio::test]
async fn a_list_becomes_a_list() {
    let list = json!(["The dog sleeps.", "", "A cat.", "🙂"]);
    let all = translated(json!({"q": list, "source": "en", "target": "fr"})).await;
    let all = all["translatedText"].as_array().unwrap();
    assert_eq!(all.len(), 4);
    assert_eq!((&all[1], &all[3]), (&json!(""), &json!("🙂")));
    let one = translated(json!({"q": "The dog sleeps.", "source": "en", "target": "fr"})).await;
    assert_eq!(all[0], one["translatedText"], "a sentence's translation does not depend on its company");
}

#[tokio::test]
async fn paragraphs_survive() {
    let q = "  The dog sleeps. A cat eats.\n\n\tTwo birds!\r\nx\n";
    let value = translated(json!({"q": q, "source": "en", "target": "fr"})).await;
    let out = text(&value);
    assert_eq!(out.matches('\n').count(), 4, "{out:?}");
    assert!(
        out.starts_with("  ") && out.contains("\n\n\t") && out.contains("\r\n") && out.ends_with('\n'),
        "{out:?}"
    );
    // The line ends of a form become LF.
    let value = form(&usual(), "/translate", "q=A+dog.%0D%0AA+cat.&source=en&target=fr").await.good();
    assert!(text(&value).contains('\n') && !text(&value).contains('\r'), "{value}");
}

#[tokio::test]
async fn what_is_no_language_is_unchanged() {
    for q in [" ", "\n \n", "🙂 👍🏽", "12.5 %", "https://some.example/a?b=c", "{name} %s", "... !"] {
        let value = translated(json!({"q": q, "source": "en", "target": "fr"})).await;
        assert_eq!(text(&value), q);
        let value = translated(json!({"q": q, "source": "auto", "target": "zh", "format": "html"})).await;
        assert_eq!(text(&value), q);
    }
}

#[tokio::test]
async fn placeholders_addresses_numbers_and_emoji_come_through() {
    let q = "Dear {name}, see https://some.example/a?b=1 or call %s at 12:30 🙂 for <x id=1/> dogs.";
    for target in ["fr", "zh-Hans"] {
        let value = translated(json!({"q": q, "source": "en", "target": target})).await;
        for span in ["{name}", "https://some.example/a?b=1", "%s", "🙂", "<x id=1/>"] {
            assert_eq!(text(&value).matches(span).count(), 1, "{span} in {value}");
        }
        assert!(text(&value).contains("12"), "{value}");
    }
}

#[tokio::test]
async fn alternatives_are_given_if_asked_for() {
    let q = json!({"q": "The dog sleeps.", "source": "en", "target": "fr", "alternatives": 2});
    let value = translated(q).await;
    let others = value["alternatives"].as_array().unwrap();
    assert!((1..=2).contains(&others.len()), "{value}");
    assert!(others.iter().all(|other| other != &value["translatedText"]), "{value}");
    // More alternatives than the beam width.
    let q = json!({"q": ["The dog sleeps.", "A cat."], "source": "en", "target": "fr", "alternatives": "5"});
    let value = translated(q).await;
    let lists = value["alternatives"].as_array().unwrap();
    assert_eq!(lists.len(), 2);
    assert!(lists[0].as_array().unwrap().len() > 1, "{value}");
}

#[tokio::test]
async fn the_language_can_be_found_out() {
    let english = "This is quite an ordinary English sentence, isn't it?";
    let french = "Ceci est une phrase tout à fait ordinaire en français, n'est-ce pas?";
    let value = translated(json!({"q": english, "source": "auto", "target": "fr"})).await;
    assert_eq!(value["detectedLanguage"]["language"], "en");
    let sure = value["detectedLanguage"]["confidence"].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&sure), "{sure}");
    let value = translated(json!({"q": [english, french], "source": "auto", "target": "fr"})).await;
    let found: Vec<&Value> =
        value["detectedLanguage"].as_array().unwrap().iter().map(|d| &d["language"]).collect();
    assert_eq!(found, ["en", "fr"]);
    // Source and target language are the same, so nothing changes.
    assert_eq!(value["translatedText"][1], french);
    let known = translated(json!({"q": english, "source": "en", "target": "fr"})).await;
    assert_eq!(value["translatedText"][0], known["translatedText"]);
}

#[tokio::test]
async fn two_models_in_a_row_where_there_is_no_one() {
    // The first model only converts to capitals.
    let (app, _) = with_stand_in(settings());
    let direct = json!({"q": "THE DOG SLEEPS.", "source": "fr", "target": "zh"});
    let direct = post(&app, "/translate", direct).await.good();
    let both = json!({"q": "The dog sleeps.", "source": "en", "target": "zh-Hans"});
    assert_eq!(post(&app, "/translate", both).await.good(), direct);
    // An empty output of the first model does not lose placeholders.
    let silent = json!({"q": "silence {name}", "source": "en", "target": "zh"});
    assert_eq!(text(&post(&app, "/translate", silent).await.good()), "{name}");
}

#[tokio::test]
async fn markup_is_kept() {
    let q = "<p class=\"a\">The <b>dog</b> &amp; the <a href='x'>cat</a> eat. <i>Two</i> birds.</p><script>var dog = 1;</script>";
    let value = translated(json!({"q": q, "source": "en", "target": "zh", "format": "html"})).await;
    let out = text(&value);
    for tag in [
        "<p class=\"a\">",
        "<b>",
        "</b>",
        "<a href='x'>",
        "</a>",
        "<i>",
        "</i>",
        "</p>",
        "<script>var dog = 1;</script>",
    ] {
        assert_eq!(out.matches(tag).count(), 1, "{tag} in {out}");
    }
    assert!(out.ends_with("</p><script>var dog = 1;</script>"), "{out}");
}

#[tokio::test]
async fn words_are_aligned_if_asked_for() {
    let (app, _) = with_stand_in(settings());
    let q = json!({"q": "é dog.\nThe cat", "source": "en", "target": "fr", "alignment": true});
    let value = post(&app, "/translate", q).await.good();
    assert_eq!(value["translatedText"], "É DOG.\nTHE CAT");
    assert_eq!(value["alignment"], json!([[[0, 1, 0, 1], [2, 6, 2, 6], [7, 10, 7, 10], [11, 14, 11, 14]]]));
    // With a real model, the aligned ranges lie inside the texts.
    let q = "Dear {name}, the dog sleeps.";
    let value = translated(json!({"q": [q], "source": "en", "target": "zh", "alignment": "true"})).await;
    let (n, m) = (q.chars().count(), value["translatedText"][0].as_str().unwrap().chars().count());
    let places = value["alignment"][0].as_array().unwrap();
    assert!(!places.is_empty());
    for place in places {
        let at: Vec<usize> = place.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as usize).collect();
        assert!(at[0] < at[1] && at[1] <= n && at[2] <= at[3] && at[3] <= m, "{place} in {value}");
    }
}

#[tokio::test]
async fn a_stream_grows_to_the_whole_text() {
    let app = usual();
    let q = json!({"q": "The dog sleeps. {name} eats.\n\nA cat.", "source": "en", "target": "fr"});
    let whole = post(&app, "/translate", q.clone()).await.good();
    let answer = post(&app, "/v1/translate/stream", q).await;
    assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
    assert!(answer.body.ends_with("\n\n"));
    let events: Vec<Value> = answer
        .body
        .trim_end()
        .split("\n\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    let (last, before) = events.split_last().unwrap();
    assert_eq!((&last["text"], &last["done"]), (&whole["translatedText"], &json!(true)));
    assert!(before.len() > 3, "{events:?}");
    assert!(before.iter().all(|event| event["done"] == false && event["text"].is_string()));
    // Through two models, and with the same source and target language.
    let q = json!({"q": "The dog sleeps.", "source": "en", "target": "zh"});
    let whole = post(&app, "/translate", q.clone()).await.good();
    let answer = post(&app, "/v1/translate/stream", q).await;
    assert!(
        answer.body.contains(&format!("{{\"text\":{},\"done\":true}}", whole["translatedText"])),
        "{}",
        answer.body
    );
    let answer =
        post(&app, "/v1/translate/stream", json!({"q": "A dog.", "source": "en", "target": "en"})).await;
    assert_eq!(answer.body, "data: {\"text\":\"A dog.\",\"done\":true}\n\n");
}

#[tokio::test]
async fn who_leaves_a_stream_or_a_request_stops_the_work() {
    let (app, stand_in) = with_stand_in(settings());
    let q = json!({"q": "slow one", "source": "en", "target": "fr"}).to_string();
    let begun = || stand_in.begun.load(Ordering::SeqCst);
    let given_up = || stand_in.given_up.lock().unwrap().len();
    // The response of the stream begins at once; dropping it disconnects the client.
    let sent = request("POST", "/v1/translate/stream", "application/json", q.clone());
    let answer = router(Arc::clone(&app)).oneshot(sent).await.unwrap();
    until(|| begun() == 1).await;
    drop(answer);
    until(|| given_up() == 1).await;
    // The other endpoint does not respond; its future is dropped when the connection ends.
    let sent = request("POST", "/translate", "application/json", q);
    let waiting = tokio::spawn(router(Arc::clone(&app)).oneshot(sent));
    until(|| begun() == 2).await;
    waiting.abort();
    until(|| given_up() == 2).await;
    // The worker is free again.
    let value = post(&app, "/translate", json!({"q": "quick", "source": "en", "target": "fr"})).await.good();
    assert_eq!(value["translatedText"], "QUICK");
}

#[tokio::test]
async fn files_are_translated_and_fetched() {
    let app = usual();
    let upload = |name: &str, content: &str| {
        let body = format!(
            "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: text/plain\r\n\r\n\
             {content}\r\n--x\r\nContent-Disposition: form-data; name=\"source\"\r\n\r\nen\r\n--x\r\n\
             Content-Disposition: form-data; name=\"target\"\r\n\r\nfr\r\n--x--\r\n"
        );
        let mut sent = request("POST", "/translate_file", "multipart/form-data; boundary=x", body);
        sent.headers_mut().insert("host", HeaderValue::from_static("127.0.0.1:5000"));
        sent
    };
    let text = "The dog sleeps.\r\n\r\nA cat.\r\n";
    let answer = send(&app, upload("a.txt", text)).await.good();
    let url = answer["translatedFileUrl"].as_str().unwrap();
    let path = url.strip_prefix("http://127.0.0.1:5000").unwrap();
    let file = get(&app, path).await;
    assert_eq!(file.header("content-disposition"), "attachment");
    assert_eq!(file.header("content-type"), "text/plain; charset=utf-8");
    let whole = post(&app, "/translate", json!({"q": text, "source": "en", "target": "fr"})).await.good();
    assert_eq!(json!(file.body), whole["translatedText"]);
    let answer = send(&app, upload("a.html", "<p>A dog.</p>")).await.good();
    let path = answer["translatedFileUrl"].as_str().unwrap().strip_prefix("http://127.0.0.1:5000").unwrap();
    assert!(get(&app, path).await.body.starts_with("<p>"));
    let error = send(&app, upload("a.pdf", "x")).await.error();
    assert!(
        error.0 == 400 && error.1.starts_with("Invalid request: file format not supported, use .txt, "),
        "{error:?}"
    );
    assert_eq!(get(&app, "/download_file/other.txt").await.error(), (404, "The file not found".into()));
}

#[tokio::test]
async fn known_translations_are_not_asked_of_the_models() {
    let pairs = [("A dog. Two.", "Un texte."), ("A dog.", "Un chien.")];
    let memory = Memory::new(pairs.map(|(source, target)| (source.to_owned(), target.to_owned())));
    let memories = BTreeMap::from([(("en".to_owned(), "fr".to_owned()), Arc::new(memory))]);
    let (app, _) = with_stand_in(Settings { memories, ..settings() });
    let of = |q: Value| json!({"q": q, "source": "en", "target": "fr"});
    let list = json!([" A dog. Two.\n", "A dog. The cat.", "Nothing"]);
    let answer = post(&app, "/translate", of(list)).await.good();
    assert_eq!(answer["translatedText"], json!([" Un texte.\n", "Un chien. THE CAT.", "NOTHING"]));
    assert_eq!(answer["memory"], json!(["segment", "sentences", null]));
    let answer = post(&app, "/translate", of(json!("A dog."))).await.good();
    assert_eq!((&answer["translatedText"], &answer["memory"]), (&json!("Un chien."), &json!("segment")));
    let answer = post(&app, "/translate", of(json!("Nothing"))).await.good();
    assert_eq!(answer.get("memory"), None);
    // A stream contains the known part from the beginning.
    let stream = post(&app, "/v1/translate/stream", of(json!("A dog. The cat."))).await;
    let last = "data: {\"text\":\"Un chien. THE CAT.\",\"done\":true}\n\n";
    assert!(stream.body.ends_with(last), "{}", stream.body);
    assert!(stream.body.starts_with("data: {\"text\":\"Un chien."), "{}", stream.body);
}

#[tokio::test]
async fn degenerate_translations_and_other_languages_are_reported() {
    let (app, _) = with_stand_in(Settings { guard: true, ..settings() });
    let of = |q: &str, source: &str| json!({"q": q, "source": source, "target": "fr"});
    let answer = post(&app, "/translate", of("A dog. Some silence.", "en")).await.good();
    assert_eq!(answer["guarded"], json!([{"fault": "empty", "left": "empty"}]));
    let german = "Der Ausschuss hat gestern beschlossen, die Sitzung auf nächste Woche zu verschieben.";
    let answer = post(&app, "/translate", of(german, "en")).await.good();
    assert_eq!(answer["warning"], "this looks like German; this model translates from English");
    assert_eq!(answer.get("guarded"), None);
    let answer =
        post(&app, "/translate", of("The committee met yesterday to talk about it.", "en")).await.good();
    assert_eq!(answer.get("warning"), None);
}

#[tokio::test]
async fn terms_of_a_glossary_are_asked_for() {
    let it = Glossary::new([("dog", "Hund"), ("Fire fox", "=")]).unwrap();
    let glossaries = BTreeMap::from([("it".to_owned(), Arc::new(it))]);
    let (app, _) = with_stand_in(Settings { glossaries, ..settings() });
    let of =
        |q: Value, glossary: Value| json!({"q": q, "source": "en", "target": "fr", "glossary": glossary});
    let inline = json!({"dog": "Hund", "Fire fox": "="});
    for glossary in
        [json!("it"), inline.clone(), json!([["dog", "Hund"], ["Fire fox", "="]]), json!(inline.to_string())]
    {
        let answer = post(&app, "/translate", of(json!(["The big dog", "A cat"]), glossary)).await.good();
        assert_eq!(answer["translatedText"], json!(["THE BIG Hund", "A CAT"]));
        assert_eq!(answer["terms"], json!([{"wanted": 1, "missing": []}, {"wanted": 0, "missing": []}]));
    }
    let form = form(&app, "/translate", "q=The+dog&source=en&target=fr&glossary=it").await.good();
    assert_eq!((&form["translatedText"], &form["terms"]["wanted"]), (&json!("THE Hund"), &json!(1)));
    let answer = post(&app, "/translate", of(json!("Fire fox"), json!("it"))).await.good();
    assert_eq!(answer["translatedText"], "Fire fox");
    let answer = post(&app, "/translate", of(json!("A cat"), json!("it"))).await.good();
    assert_eq!(answer.get("terms"), None);
    let stream = post(&app, "/v1/translate/stream", of(json!("The dog"), json!("it"))).await;
    assert!(stream.body.ends_with("data: {\"text\":\"THE Hund\",\"done\":true}\n\n"), "{}", stream.body);
    // A term that the model cannot produce is reported.
    let answer = post(&app, "/translate", of(json!("The silence dog"), json!("it"))).await.good();
    assert_eq!(answer["terms"], json!({"wanted": 1, "missing": [["dog", "Hund"]]}));
    for (glossary, problem) in [
        (json!("other"), "there is no glossary \"other\"; the server has it"),
        (
            json!({"dog": ""}),
            "glossary: \"dog\" has no translation; \"=\" in its place leaves it untranslated",
        ),
        (
            json!({"dog": 3}),
            "glossary must be the name of a glossary, an object of terms and their translations, or a list of pairs of both",
        ),
        (
            json!([["dog"]]),
            "glossary must be the name of a glossary, an object of terms and their translations, or a list of pairs of both",
        ),
    ] {
        let error = post(&app, "/translate", of(json!("The dog"), glossary)).await.error();
        assert_eq!(error, (400, format!("Invalid request: {problem}")));
    }
    let many: Vec<[String; 2]> = (0..1_001).map(|i| [format!("t{i}"), "x".to_owned()]).collect();
    let error = post(&app, "/translate", of(json!("a"), json!(many))).await.error();
    assert_eq!(error.1, "Invalid request: the glossary has 1001 terms; the limit is 1000");
    let shown = get(&app, "/frontend/settings").await.good();
    assert_eq!((&shown["glossaries"], &shown["memory"]), (&json!(["it"]), &json!(false)));
}

#[tokio::test]
async fn confidence_is_given_for_texts_and_sentences_if_asked_for() {
    let q =
        json!({"q": ["The dog sleeps. A cat.", "12"], "source": "en", "target": "fr", "confidence": true});
    let value = translated(q).await;
    assert_eq!(value.get("alignment"), None);
    let sentences = value["sentenceConfidence"][0].as_array().unwrap();
    assert_eq!(sentences.len(), 2);
    let share = |value: &Value| value.as_f64().is_some_and(|share| (0.0..=1.0).contains(&share));
    assert!(sentences.iter().all(share) && share(&value["confidence"][0]), "{value}");
    assert_eq!((&value["confidence"][1], &value["sentenceConfidence"][1]), (&json!(null), &json!([])));
}

/// A file upload with the parameters of a request.
fn upload(name: &str, content: &str, fields: &[(&str, &str)]) -> Request {
    let mut body = format!(
        "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n{content}\r\n"
    );
    for (name, value) in [("source", "en"), ("target", "fr")].iter().chain(fields) {
        body += &format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    }
    request("POST", "/translate_file", "multipart/form-data; boundary=x", body + "--x--\r\n")
}

#[tokio::test]
async fn what_happened_to_a_file_is_said() {
    let memory = Memory::new([("A cat.".to_owned(), "Un chat.".to_owned())]);
    let memories = BTreeMap::from([(("en".to_owned(), "fr".to_owned()), Arc::new(memory))]);
    let (app, _) = with_stand_in(Settings { memories, ..settings() });
    let terms = json!({"dog": "Hund"}).to_string();
    let answer = send(&app, upload("a.txt", "The dog.\nA cat.\n", &[("glossary", &terms)])).await.good();
    assert_eq!(answer["fromMemory"], 1);
    assert_eq!(answer["terms"], json!({"wanted": 1, "missing": []}));
    let file = get(&app, answer["translatedFileUrl"].as_str().unwrap()).await;
    assert!(file.body.contains("Hund") && file.body.contains("Un chat."), "{}", file.body);
    let fields = [("memory", "false")];
    let answer = send(&app, upload("a.txt", "A cat.\n", &fields)).await.good();
    assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
    assert_eq!(get(&app, answer["translatedFileUrl"].as_str().unwrap()).await.body, "A CAT.\n");
}

#[tokio::test]
async fn a_message_that_has_other_placeholders_is_reported() {
    let (app, _) = with_stand_in(settings());
    let po =
        "msgid \"\"\nmsgstr \"Content-Type: text/plain; charset=UTF-8\\n\"\n\nmsgid \"we go\"\nmsgstr \"\"\n";
    let answer = send(&app, upload("a.po", po, &[])).await.good();
    assert_eq!(answer.get("warnings"), None);
    let terms = json!({"go": "geh %d"}).to_string();
    let answer = send(&app, upload("a.po", po, &[("glossary", &terms)])).await.good();
    let warning =
        "line 4: the translation of \"we go\" has other placeholders than its source and is marked fuzzy";
    assert_eq!(answer["warnings"], json!([warning]));
    let file = get(&app, answer["translatedFileUrl"].as_str().unwrap()).await;
    assert!(file.body.contains("#, fuzzy\nmsgid \"we go\"\nmsgstr \"WE geh %d\""), "{}", file.body);
}
