//! A small parallel text and tokenizers of it, for the tests of formats, text and
//! corpus.

use regard_core::text::{Segmentation, TextSample, TokenizerPair, TokenizerSettings};

/// Sentences of a small grammar, in two languages.
pub(crate) fn sentences() -> Vec<(String, String)> {
    let nouns =
        [("dog", "Hund"), ("cat", "Kater"), ("baker", "Bäcker"), ("pilot", "Pilot"), ("clown", "Clown")];
    let verbs = [("sees", "sieht"), ("greets", "grüßt"), ("follows", "verfolgt"), ("paints", "malt")];
    let places =
        [("in the garden", "im Garten"), ("at the station", "am Bahnhof"), ("in 2016", "im Jahr 2016")];
    let mut pairs = Vec::new();
    for (i, subject) in nouns.iter().enumerate() {
        for (j, verb) in verbs.iter().enumerate() {
            for (k, object) in nouns.iter().enumerate() {
                let place = places[(i + j + k) % places.len()];
                pairs.push((
                    format!("The {} {} the {} {}.", subject.0, verb.0, object.0, place.0),
                    format!("Der {} {} den {} {}.", subject.1, verb.1, object.1, place.1),
                ));
            }
        }
    }
    pairs
}

/// Tokenizers of 400 pieces that are trained on [`sentences`].
pub(crate) fn trained(segmentation: Segmentation, separate: bool) -> TokenizerPair {
    let (source, target): (TextSample, TextSample) = sentences().into_iter().unzip();
    let settings = TokenizerSettings { segmentation, separate, size: Some(400) };
    TokenizerPair::train(&source, &target, &settings).unwrap()
}
