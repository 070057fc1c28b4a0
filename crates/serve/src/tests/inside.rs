use super::*;

fn shape(value: &Value) -> Vec<usize> {
    let mut shape = Vec::new();
    let mut inner = value;
    while let Some(list) = inner.as_array() {
        shape.push(list.len());
        let Some(first) = list.first() else { break };
        inner = first;
    }
    shape
}

#[tokio::test]
async fn attention_of_every_layer_and_head() {
    let app = usual();
    let q = "The dog sleeps.";
    let value = post(&app, "/v1/attention", json!({"q": q})).await.good();
    let (n, m) = (value["source"].as_array().unwrap().len(), value["target"].as_array().unwrap().len());
    assert_eq!(value["source"][n - 1], "</s>");
    assert_eq!(value["target"][m - 1], "</s>");
    assert_eq!(shape(&value["encoder"]), [2, 2, n, n]);
    assert_eq!(shape(&value["decoder"]), [3, 2, m, m]);
    assert_eq!(shape(&value["cross"]), [3, 2, m, n]);
    for row in value["cross"][0][0].as_array().unwrap() {
        let sum: f64 = row.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).sum();
        assert!((sum - 1.0).abs() < 1e-3 * n as f64, "{row}");
    }
    // The hints for each head, and the heads to show first.
    for (kind, layers) in [("encoder", 2), ("decoder", 3), ("cross", 3)] {
        let hints = value["hints"][kind].as_array().unwrap();
        assert_eq!(hints.len(), layers, "{kind}");
        for layer in hints {
            assert_eq!(layer["heads"].as_array().unwrap().len(), 2);
            assert!(layer["sharpest"].as_u64().unwrap() < 2, "{layer}");
            for hint in layer["heads"].as_array().unwrap().iter().chain([&layer["mean"]]) {
                assert!(
                    hint["text"].as_str().unwrap().ends_with('.') && hint["spread"].as_f64().unwrap() >= 1.0,
                    "{hint}"
                );
            }
        }
        assert!(value["sharpest"][kind].as_u64().unwrap() < layers as u64);
    }
    let whole = post(&app, "/translate", json!({"q": q, "source": "en", "target": "fr"})).await.good();
    assert_eq!(value["translation"], whole["translatedText"]);
    // A translation given by the client, and another model.
    let own = json!({"q": "Le chien", "source": "fr", "target": "en", "translation": "dog"});
    let value = post(&app, "/v1/attention", own).await.good();
    assert_eq!(value["translation"], "dog");
    assert_eq!(value["target"].as_array().unwrap().last(), Some(&json!("</s>")));
    let other = post(&app, "/v1/attention", json!({"q": "Le chien", "source": "fr"})).await.good();
    assert!(other["translation"].is_string());
}

#[tokio::test]
async fn attention_is_that_of_one_model_and_sentence() {
    let app = usual();
    let value = json!({"q": "a", "source": "en", "target": "zh"});
    let message = "there is no single model from en to zh to look into";
    assert_eq!(post(&app, "/v1/attention", value).await.error(), (400, message.into()));
    let message = "Invalid request: q must be a string; attention is that of one sentence";
    assert_eq!(post(&app, "/v1/attention", json!({"q": ["a"]})).await.error(), (400, message.into()));
    let missing = post(&app, "/v1/attention", json!({})).await.error();
    assert_eq!(missing, (400, "Invalid request: missing q parameter".into()));
    let unknown = post(&app, "/v1/attention", json!({"q": "a", "source": "zz"})).await.error();
    assert_eq!(unknown, (400, "zz is not supported".into()));
}

#[tokio::test]
async fn positions_of_each_kind() {
    let app = usual();
    let first = get(&app, "/v1/positions").await.good();
    assert_eq!(first["kind"], "sinusoidal");
    assert_eq!((shape(&first["interleaved"]), shape(&first["own"])), (vec![40, 16], vec![40, 16]));
    // sin 1 and cos 1, side by side in one form, half a row apart in the other.
    assert_eq!((&first["interleaved"][1][0], &first["interleaved"][1][1]), (&json!(0.8415), &json!(0.5403)));
    assert_eq!((&first["own"][1][0], &first["own"][1][8]), (&json!(0.8415), &json!(0.5403)));
    let learned = get(&app, "/v1/positions?model=FR-en").await.good();
    assert_eq!((&learned["kind"], shape(&learned["own"])), (&json!("learned"), vec![40, 16]));
    let none = get(&app, "/v1/positions?model=fr-to-zh").await.good();
    assert_eq!((&none["kind"], &none["own"]), (&json!("none"), &Value::Null));
    let error = get(&app, "/v1/positions?model=xx").await.error();
    assert_eq!(error, (400, "xx is not supported, use one of en-fr, fr-en, fr-zh-Hans".into()));
}

#[tokio::test]
async fn models_say_what_they_are() {
    let app = usual();
    post(&app, "/translate", json!({"q": "The dog sleeps.", "source": "en", "target": "fr"})).await.good();
    let models = get(&app, "/v1/model").await.good();
    let first = &models[0];
    assert_eq!(
        (&first["source"], &first["target"], &first["name"]),
        (&json!("en"), &json!("fr"), &json!("en-to-fr"))
    );
    let parts: u64 = first["parts"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(first["parameters"], parts);
    assert_eq!(first["config"]["d_model"], 16);
    assert_eq!((&first["training"], &first["examples"]), (&json!([]), &json!([])));
    assert!(first["speed"]["tokens_per_s"].as_f64().unwrap() > 0.0, "{first}");
    assert!(first["speed"]["requests"].as_u64().unwrap() > 0, "{first}");
}
