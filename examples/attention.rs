//! Reads the attention of a sentence: which source token each target token looks at most, in the
//! sharpest layer.
//!
//!     cargo run --release --example attention -- MODEL "The cat sleeps."

use regard::model::{AttentionKind, sharpest};
use regard::{Isa, Translator};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(sentence)) = (arguments.next(), arguments.next()) else {
        return Err("usage: attention MODEL SENTENCE".into());
    };
    let translator = Translator::load(&[model], Isa::best(), 2)?;
    let translation = translator.translate(&[&sentence], &translator.options())?[0].best().text;
    let (source, target) =
        (translator.source().encode(&sentence)?, translator.target().encode(&translation)?);

    // One map per layer and kind of attention: [heads, target tokens, source tokens].
    let maps = translator.attention_maps(&source, &target)?;
    let map = sharpest(&maps, AttentionKind::Cross).ok_or("the model has no cross-attention")?;
    println!("{translation} (cross-attention of layer {}, mean of {} heads)", map.layer + 1, map.heads);
    for (weights, &said) in map.mean().chunks(map.columns).zip(&target) {
        let Some((at, weight)) = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)) else {
            continue;
        };
        let piece = |id: Option<String>| id.unwrap_or_default();
        let (said, read) =
            (piece(translator.target().piece(said)), piece(translator.source().piece(source[at])));
        println!("{said:>12} → {read} ({:.0} %)", 100.0 * weight);
    }
    Ok(())
}
