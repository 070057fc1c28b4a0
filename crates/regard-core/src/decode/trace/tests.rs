use super::*;
use crate::DType;
use crate::decode::{attention_maps, score_pairs};
use crate::model::{AttentionMap, DecoderKind, EncoderKind, ModelConfig, NormPlace, Transformer};
use regard_kernels::Isa;

fn config() -> ModelConfig {
    ModelConfig {
        d_model: 16,
        heads: 2,
        d_ff: 24,
        encoder_layers: 2,
        decoder_layers: 2,
        source_vocabulary: 23,
        target_vocabulary: 23,
        max_positions: 20,
        ..ModelConfig::default()
    }
}

fn engine(config: ModelConfig, dtype: DType) -> Engine {
    let model = Transformer::new(config).unwrap();
    Engine::new(&model, &model.parameters().initialise(3), dtype, Isa::best())
}

/// Models that differ in everything that a trace covers.
fn engines() -> Vec<Engine> {
    let with = |change: fn(&mut ModelConfig)| {
        let mut config = config();
        change(&mut config);
        config
    };
    [
        config(),
        with(|c| c.norm = NormPlace::Pre),
        with(|c| c.positions = Positions::Relative),
        with(|c| c.positions = Positions::Learned),
        with(|c| c.combine = Combine::Concatenate),
        with(|c| c.encoder = EncoderKind::Attention { window: Some(1) }),
        with(|c| c.encoder = EncoderKind::Recurrent { direction: Default::default() }),
        with(|c| c.encoder = EncoderKind::Convolutional { kernel_width: 3, dilated: false }),
        with(|c| c.decoder = DecoderKind::Ssru),
    ]
    .into_iter()
    .map(|config| engine(config, DType::F32))
    .chain([engine(config(), DType::Int8)])
    .collect()
}

const SOURCE: [u32; 5] = [4, 9, 2, 7, 0];
const TARGET: [u32; 4] = [3, 8, 8, 1];

fn close(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < 2e-4, "{what}: {a} and {b}");
    }
}

#[test]
fn weights_and_probabilities_are_those_of_decoding() {
    for engine in engines() {
        let name = format!("{:?} {:?}", engine.model().config(), engine.dtype());
        let whole = [&TARGET[..], &[0]].concat();
        let maps = attention_maps(&engine, &SOURCE, &whole).unwrap();
        for layer in 0..2 {
            let mut tracer = Tracer::new(&engine, &SOURCE, Ablation::default(), layer).unwrap();
            let (decoder, words) = tracer.decode(&TARGET, Some(0), 3).unwrap();
            let (encoder, decoder) = (&tracer.encoder().layer, &decoder.layer);
            for (kind, found) in [
                (AttentionKind::Encoder, &encoder.attention),
                (AttentionKind::Decoder, &decoder.attention),
                (AttentionKind::Cross, &decoder.cross),
            ] {
                let wanted = |map: &&AttentionMap| map.kind == kind && map.layer == layer;
                let map = maps.iter().find(wanted);
                assert_eq!(map.is_some(), found.is_some(), "{name} {kind:?}");
                if let Some((map, found)) = map.zip(found.as_ref()) {
                    close(&found.weights.data, &map.weights, &name);
                    assert_eq!(found.output.columns, 16);
                    assert_eq!(found.result.rows().len(), map.rows);
                }
            }
            assert_eq!(decoder.feed_forward.hidden.columns, 24);
            let scores = score_pairs(&[&engine], &[(SOURCE.to_vec(), whole.clone())], 1).unwrap();
            let given: Vec<f32> = words.iter().filter_map(|w| w.given).collect();
            close(&given, &scores[0], &name);
            assert_eq!(words.len(), 5);
            assert!(words.iter().all(|w| w.best.len() == 3 && w.best[0].1 >= w.best[2].1), "{name}");
        }
    }
}

#[test]
fn an_ssru_is_recorded_in_the_place_of_attention() {
    let engine = engine(ModelConfig { decoder: DecoderKind::Ssru, ..config() }, DType::F32);
    let mut tracer = Tracer::new(&engine, &SOURCE, Ablation::default(), 1).unwrap();
    let (decoder, _) = tracer.decode(&TARGET, None, 1).unwrap();
    let SsruTrace { candidate, forget, state, output, result } = decoder.layer.ssru.unwrap();
    // c ← f∘c + (1 − f)∘x, and relu(c) is the output.
    let mut c = vec![0.0; 16];
    for i in 0..5 {
        for ((c, x), f) in c.iter_mut().zip(candidate.row(i)).zip(forget.row(i)) {
            *c = f * *c + (1.0 - f) * x;
        }
        close(state.row(i), &c, "state");
        let relu: Vec<f32> = c.iter().map(|c| c.max(0.0)).collect();
        close(output.row(i), &relu, "output");
    }
    assert_eq!(result.rows().len(), 5);
}

#[test]
fn what_is_switched_off_is_off_and_changes_the_rest() {
    let engine = engine(config(), DType::F32);
    let run = |ablation: Ablation| {
        let mut tracer = Tracer::new(&engine, &SOURCE, ablation, 0).unwrap();
        let (decoder, words) = tracer.decode(&TARGET, None, 5).unwrap();
        (tracer.encoder().clone(), decoder, words)
    };
    let usual = run(Ablation::default());
    let positions = run(Ablation { positions: true, ..Ablation::default() });
    assert_eq!(positions.0.embedding.positions, None);
    assert_eq!(positions.0.embedding.output, usual.0.embedding.words);
    let scale = run(Ablation { scale: true, ..Ablation::default() });
    assert_eq!(scale.0.layer.attention.as_ref().unwrap().scale, 1.0);
    let mask = run(Ablation { mask: true, ..Ablation::default() });
    let weights = &mask.1.layer.attention.as_ref().unwrap().weights;
    assert!(weights.data.iter().all(|&w| w > 0.0), "all see all");
    let head = run(Ablation { heads: vec![(AttentionKind::Cross, 0, 1)], ..Ablation::default() });
    let cross = head.1.layer.cross.as_ref().unwrap();
    assert!(cross.of_head(&cross.sums, 1).data.iter().all(|&x| x == 0.0));
    assert!(cross.of_head(&cross.sums, 0).data.iter().any(|&x| x != 0.0));
    assert_eq!(head.0, usual.0, "the encoder has not changed");
    for other in [&positions, &scale, &mask, &head] {
        assert_ne!(other.2, usual.2);
    }
}

#[test]
fn greedy_search_is_that_of_a_beam_of_one() {
    let options = SearchOptions {
        beam: 1,
        nbest: 1,
        banned: vec![5, 6],
        max_length: Some(9),
        ..SearchOptions::default()
    };
    for engine in engines().iter().filter(|engine| engine.dtype() == DType::F32) {
        let found = crate::decode::search_ensemble(&[engine], &[SOURCE.to_vec()], &options, 1).unwrap();
        let mut tracer = Tracer::new(engine, &SOURCE, Ablation::default(), 0).unwrap();
        let mut target = Vec::new();
        tracer.extend(&mut target, &options, || true).unwrap();
        let ended = target.last() == Some(&options.end);
        assert_eq!(&target[..target.len() - usize::from(ended)], found[0][0].ids);
        // A given beginning is kept, and nothing is added once it is cancelled.
        let mut forced = vec![7, 7];
        tracer.extend(&mut forced, &options, || false).unwrap();
        assert_eq!(forced, [7, 7]);
        tracer.extend(&mut forced, &options, || true).unwrap();
        assert_eq!(forced[..2], [7, 7]);
        assert!(forced.len() <= 9);
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    let engine = engine(ModelConfig { positions: Positions::Learned, ..config() }, DType::F32);
    let refusal = |source: &[u32], target: &[u32]| {
        let tracer = Tracer::new(&engine, source, Ablation::default(), 0);
        tracer.and_then(|mut tracer| tracer.decode(target, None, 1)).unwrap_err().to_string()
    };
    assert_eq!(refusal(&[], &[]), "tracing: a sentence without tokens");
    assert_eq!(refusal(&[99], &[]), "search: sentence 0: token 99 is not in the vocabulary of 23");
    assert_eq!(refusal(&[1], &[99]), "scoring: translation 0: token 99 is not in the vocabulary of 23");
    let long = "scoring: translation 0 has 21 tokens, the model has 20 positions";
    assert_eq!(refusal(&[1], &[1; 20]), long);
}
