use super::*;

const Q: &str = "The dog sleeps.";

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Checks that each body is rejected with its message.
async fn refuses(path: &str, cases: &[(Value, &str)]) {
    let app = usual();
    for (body, message) in cases {
        let error = post(&app, path, body.clone()).await.error();
        assert_eq!(error, (400, format!("Invalid request: {message}")), "{body}");
    }
}

#[tokio::test]
async fn steps_of_the_encoder() {
    let app = usual();
    let body = json!({"q": Q, "layer": 1, "head": 1});
    let value = post(&app, "/v1/steps", body).await.good();
    let attention = post(&app, "/v1/attention", json!({"q": Q})).await.good();
    let n = value["source"].as_array().unwrap().len();
    assert_eq!(
        (&value["stack"], &value["layers"], &value["heads"]),
        (&json!("encoder"), &json!(2), &json!(2))
    );
    assert_eq!(value["precision"], "f32");
    let steps = &value["attention"];
    for i in 0..n {
        // The weights equal those of the other endpoint, up to the last digit.
        let (own, other) = (&steps["weights"][1][i], &attention["encoder"][1][1][i]);
        for (a, b) in numbers(own).iter().zip(numbers(other)) {
            assert!((a - b).abs() < 2e-4, "{own} {other}");
        }
        let dot: f64 =
            numbers(&steps["queries"][i]).iter().zip(numbers(&steps["keys"][0])).map(|(a, b)| a * b).sum();
        assert!((dot - steps["scores"][i][0].as_f64().unwrap()).abs() < 1e-2);
        assert_eq!(steps["seen"][i], json!([0, n]));
    }
    let first = &value["embedding"]["words"][0];
    assert_eq!(first["values"].as_array().unwrap().len(), 16, "as many as the model is wide");
    assert_eq!((&value["ssru"], &value["cross"]), (&Value::Null, &Value::Null));
    assert_eq!(value["feed_forward"]["width"], 24);
    let places = value["places"].as_array().unwrap();
    assert!(places.iter().all(|place| place["best"].as_array().unwrap().len() == 5));
    assert!(places[0]["p"].as_f64().unwrap() > 0.0);
    // The probabilities follow from the logits, of which only differences matter.
    for best in places.iter().map(|place| place["best"].as_array().unwrap()) {
        for word in best {
            let wanted = best[0]["p"].as_f64().unwrap() * word["logit"].as_f64().unwrap().exp();
            assert!((word["p"].as_f64().unwrap() - wanted).abs() < 2e-4, "{word} of {best:?}");
        }
    }
}

#[tokio::test]
async fn steps_of_the_decoder_with_parts_switched_off() {
    let app = usual();
    let ask = |more: Value| {
        let mut body = json!({"q": Q, "stack": "decoder", "translation": "Le chien dort."});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let usual = post(&app, "/v1/steps", ask(json!({}))).await.good();
    assert_eq!(usual["attention"]["seen"][1], json!([0, 2]), "the future is hidden");
    assert_eq!(usual["attention"]["weights"][0][0][1], 0.0);
    assert_eq!(usual["target"].as_array().unwrap().len(), usual["places"].as_array().unwrap().len());
    let open = post(&app, "/v1/steps", ask(json!({"without": "mask, scale"}))).await.good();
    assert!(open["attention"]["weights"][0][0][1].as_f64().unwrap() > 0.0);
    assert_eq!((&open["attention"]["scale"], &usual["attention"]["scale"]), (&json!(1.0), &json!(0.3536)));
    let head = post(&app, "/v1/steps", ask(json!({"without": "cross.0.1"}))).await.good();
    assert!(numbers(&head["cross"]["norms"][1]).iter().all(|&x| x == 0.0));
    assert!(numbers(&head["cross"]["norms"][0]).iter().any(|&x| x > 0.0));
    assert_ne!(head["places"], usual["places"]);
    let places = post(&app, "/v1/steps", ask(json!({"without": "positions"}))).await.good();
    assert_eq!(places["embedding"]["positions"], Value::Null);
}

#[tokio::test]
async fn a_prefix_is_kept_and_extended() {
    let app = usual();
    let own = post(&app, "/v1/steps", json!({"q": Q})).await.good();
    let second = &own["places"][0]["best"][1]["id"];
    let value = post(&app, "/v1/steps", json!({"q": Q, "prefix": second.to_string()})).await.good();
    assert_eq!(&value["target"][0]["id"], second);
    assert_eq!(
        value["places"][0],
        json!({"p": own["places"][0]["best"][1]["p"], "best": own["places"][0]["best"]})
    );
    let beam = post(&app, "/v1/beam", json!({"q": Q, "prefix": second.to_string(), "beam": 2})).await.good();
    assert_eq!(&beam["nodes"][0]["id"], second);
}

#[tokio::test]
async fn a_beam_is_a_tree_whose_best_leaf_is_the_translation() {
    let app = usual();
    let value = post(&app, "/v1/beam", json!({"q": Q, "beam": 3})).await.good();
    let nodes = value["nodes"].as_array().unwrap();
    assert_eq!((&value["beam"], value["translations"].as_array().unwrap().len()), (&json!(3), 3));
    assert_eq!(value["penalty"], "power");
    for (i, node) in nodes.iter().enumerate() {
        match node["parent"].as_u64() {
            Some(parent) => {
                let parent = &nodes[usize::try_from(parent).unwrap()];
                assert!((parent["length"].as_u64().unwrap() + 1) == node["length"].as_u64().unwrap());
                assert_eq!(parent["state"], "extended", "{i}");
            }
            None => assert_eq!(node["length"], 1),
        }
    }
    let best = nodes.iter().filter(|node| node["best"] == true).max_by_key(|node| node["length"].as_u64());
    assert_eq!(best.unwrap()["score"], value["translations"][0]["score"]);
    for length in 1..4 {
        let width = nodes.iter().filter(|node| node["length"] == length && node["state"] != "ended").count();
        assert!(width <= 3);
    }
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_refused() {
    refuses(
        "/v1/steps",
        &[
            (json!({"q": [Q]}), "q must be a string; one sentence is looked at"),
            (json!({"q": Q, "layer": 2}), "layer must be a number from 0 to 1"),
            (json!({"q": Q, "layer": -1}), "layer must be a number from 0 to 1"),
            (json!({"q": Q, "head": "x"}), "head must be a number"),
            (json!({"q": Q, "head": 2}), "head must be a number from 0 to 1"),
            (json!({"q": Q, "stack": "both"}), "stack must be encoder or decoder"),
            (
                json!({"q": Q, "without": "gravity"}),
                "without must be a list of positions, scale, mask and heads of this model such as \
                 encoder.0.1 or cross.1.0; \
                 \"gravity\" is none of them",
            ),
            (
                json!({"q": Q, "without": "cross.1"}),
                "without must be a list of positions, scale, mask and heads of this model such as \
                 encoder.0.1 or cross.1.0; \
                 \"cross.1\" is none of them",
            ),
            (
                json!({"q": Q, "without": "encoder.2.0"}),
                "without must be a list of positions, scale, mask and heads of this model such as \
                 encoder.0.1 or cross.1.0; \"encoder.2.0\" is none of them",
            ),
            (
                json!({"q": Q, "prefix": "3", "translation": "a"}),
                "there is a prefix and a translation; send one of them",
            ),
            (json!({"q": Q, "prefix": "3 ".repeat(101)}), "prefix has more than 100 tokens"),
            (json!({}), "missing q parameter"),
        ],
    )
    .await;
    refuses(
        "/v1/beam",
        &[
            (json!({"q": Q, "beam": 0}), "beam must be a number from 1 to 8"),
            (json!({"q": Q, "beam": 9}), "beam must be a number from 1 to 8"),
            (json!({"q": [Q]}), "q must be a string; one sentence is looked at"),
        ],
    )
    .await;
    let app = usual();
    let (status, message) = post(&app, "/v1/steps", json!({"q": Q, "prefix": "1 9999"})).await.error();
    assert!(status == 400 && message.ends_with("separated by spaces; \"9999\" is none"), "{message}");
    let (status, message) = post(&app, "/v1/steps", json!({"q": "a ".repeat(200)})).await.error();
    assert!(status == 400 && message.contains("attention can be shown for at most 100"), "{message}");
}
