use super::*;

fn refusal(change: impl Fn(&mut ModelConfig)) -> String {
    let mut config = Preset::Tiny.config(100);
    assert!(config.validate().is_ok());
    change(&mut config);
    config.validate().unwrap_err().to_string()
}

#[test]
fn nonsense_is_refused_by_the_name_of_the_field() {
    assert_eq!(
        refusal(|c| c.heads = 3),
        "heads: 3 does not divide d_model = 128; use one of 1, 2, 4, 8, 16, 32, 64, or set d_k and d_v"
    );
    assert_eq!(refusal(|c| c.encoder_layers = 0), "encoder_layers: 0 is too few, at least 1 is needed");
    assert_eq!(refusal(|c| c.decoder_layers = 0), "decoder_layers: 0 is too few, at least 1 is needed");
    assert_eq!(refusal(|c| c.heads = 0), "heads: 0 is too few, at least 1 is needed");
    assert_eq!(
        refusal(|c| c.d_ff = usize::MAX).split(',').next_back(),
        Some(" at most 16777216 is possible")
    );
    assert_eq!(refusal(|c| c.dropout = 1.0), "dropout: 1 is not a rate from 0 up to, but not including, 1");
    assert!(refusal(|c| c.attention_dropout = f32::NAN).starts_with("attention_dropout: NaN"));
    assert!(refusal(|c| c.source_vocabulary = 99).starts_with("tying: three-way needs one vocabulary"));
    assert!(refusal(|c| (c.d_model, c.heads) = (7, 7)).starts_with("d_model: 7 is odd"));
    assert!(
        refusal(|c| (c.combine, c.positions) = (Combine::Concatenate, Positions::None))
            .starts_with("combine:")
    );
    assert!(
        refusal(|c| c.encoder = EncoderKind::Attention { window: Some(0) })
            .starts_with("window: 0 is too few")
    );
    assert!(refusal(|c| c.norm_epsilon = 0.0).starts_with("norm_epsilon: 0 is not"));
}

#[test]
fn settings_go_with_the_kind_of_encoder() {
    let recurrent = |c: &mut ModelConfig| c.encoder = EncoderKind::RECURRENT;
    assert_eq!(
        refusal(|c| {
            recurrent(c);
            c.positions = Positions::Relative;
        }),
        "positions: relative ones belong to self-attention, which a recurrent encoder does not have; use sinusoidal, learned or none"
    );
    assert_eq!(
        refusal(|c| {
            c.encoder = EncoderKind::Convolutional { kernel_width: 4, dilated: false };
        }),
        "kernel_width: 4 is even; a token in the middle needs 3, 5, 7, …"
    );
    assert_eq!(
        refusal(|c| {
            recurrent(c);
            (c.d_model, c.heads, c.positions) = (7, 7, Positions::None);
        }),
        "d_model: 7 is odd; each direction gets half, so it must be even"
    );
}

#[test]
fn a_window_of_the_encoder_alone_leaves_the_decoder_free() {
    let mut config = Preset::Tiny.config(100);
    config.encoder = EncoderKind::WINDOW;
    assert!(config.validate().is_ok());
    assert_eq!(config.decoder_window(), None);
    config.encoder = EncoderKind::Attention { window: Some(9) };
    assert_eq!((config.encoder.window(), config.decoder_window()), (Some(9), Some(9)));
}

#[test]
fn heads_need_not_divide_the_width_when_their_own_is_given() {
    let mut config = Preset::Tiny.config(100);
    (config.heads, config.d_k, config.d_v) = (3, Some(8), Some(16));
    assert!(config.validate().is_ok());
    assert_eq!(config.head_shape(Side::Source), HeadShape { heads: 3, d_k: 8, d_v: 16 });
}

#[test]
fn a_config_survives_json_and_unknown_keys_do_not() {
    let config =
        ModelConfig { activation: Activation::Silu, encoder: EncoderKind::WINDOW, ..Preset::Base.config(50) };
    let text = serde_json::to_string(&config).unwrap();
    assert_eq!(serde_json::from_str::<ModelConfig>(&text).unwrap(), config);
    let error = serde_json::from_str::<ModelConfig>(r#"{"d_modle": 3}"#).unwrap_err().to_string();
    assert!(error.starts_with("unknown field `d_modle`"), "{error}");
    let error = serde_json::from_str::<ModelConfig>(r#"{"activation": "tanh"}"#).unwrap_err().to_string();
    assert!(error.starts_with("unknown activation \"tanh\", use relu"), "{error}");
}

#[test]
fn the_decoder_may_have_sizes_of_its_own() {
    let mut config = Preset::Tiny.config(100);
    assert_eq!(config.head_shape(Side::Target), config.head_shape(Side::Source));
    let cost = config.cost(9, 7);
    (config.decoder_heads, config.decoder_d_ff) = (Some(8), Some(512));
    assert!(config.validate().is_ok());
    assert_eq!(config.head_shape(Side::Source), HeadShape { heads: 4, d_k: 32, d_v: 32 });
    assert_eq!(config.head_shape(Side::Target), HeadShape { heads: 8, d_k: 16, d_v: 16 });
    assert_eq!([Side::Source, Side::Target].map(|side| config.feed_forward_width(side)), [256, 512]);
    assert_eq!(config.cost(9, 7) - cost, (4 * 7 * 2 * 128 * 256) as f64);
    assert_eq!(
        config.sizes(),
        "d_model 128, heads 4 and 8, d_ff 256 and 512, encoder layers 4, decoder layers 4"
    );
    assert!(refusal(|c| c.decoder_heads = Some(3)).starts_with("decoder_heads: 3 does not divide"));
    assert!(refusal(|c| c.decoder_d_ff = Some(0)).starts_with("decoder_d_ff: 0 is too few"));
}
