//! The metrics against sacreBLEU 2.6; the goldens come from tools/goldens/metrics.py.

use regard_metrics::{
    Bleu, Bootstrap, Chrf, Details, Metric, Scores, Smoothing, Ter, Tokenizer, is_unspaced, lines,
    paired_bootstrap, score_all, select,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct BleuConfig {
    tokenize: String,
    lowercase: bool,
    effective_order: bool,
    smooth_method: String,
    smooth_value: Option<f64>,
    max_ngram_order: usize,
}

impl Default for BleuConfig {
    fn default() -> Self {
        BleuConfig {
            tokenize: "13a".into(),
            lowercase: false,
            effective_order: false,
            smooth_method: "exp".into(),
            smooth_value: None,
            max_ngram_order: 4,
        }
    }
}

impl BleuConfig {
    fn metric(&self) -> Bleu {
        let smoothing = match self.smooth_value {
            Some(value) => format!("{}:{value}", self.smooth_method),
            None => self.smooth_method.clone(),
        };
        Bleu {
            tokenizer: self.tokenize.parse().unwrap(),
            lowercase: self.lowercase,
            smoothing: smoothing.parse().unwrap(),
            max_order: self.max_ngram_order,
            effective_order: self.effective_order,
        }
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ChrfConfig {
    char_order: usize,
    word_order: usize,
    beta: u32,
    lowercase: bool,
    whitespace: bool,
    eps_smoothing: bool,
}

impl Default for ChrfConfig {
    fn default() -> Self {
        ChrfConfig {
            char_order: 6,
            word_order: 0,
            beta: 2,
            lowercase: false,
            whitespace: false,
            eps_smoothing: false,
        }
    }
}

impl ChrfConfig {
    fn metric(&self) -> Chrf {
        let ChrfConfig { char_order, word_order, beta, lowercase, whitespace, eps_smoothing } = *self;
        Chrf { char_order, word_order, beta, lowercase, whitespace, eps_smoothing }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TerConfig {
    normalized: bool,
    no_punct: bool,
    asian_support: bool,
    case_sensitive: bool,
}

impl TerConfig {
    fn metric(&self) -> Ter {
        let TerConfig { normalized, no_punct, asian_support, case_sensitive } = *self;
        Ter { normalized, no_punct, asian_support, case_sensitive }
    }
}

#[derive(Deserialize)]
struct Configs {
    bleu: Vec<BleuConfig>,
    chrf: Vec<ChrfConfig>,
    ter: Vec<TerConfig>,
}

impl Configs {
    fn metric(&self, name: &str, config: usize) -> Box<dyn Metric> {
        match name {
            "bleu" => Box::new(self.bleu[config].metric()),
            "chrf" => Box::new(self.chrf[config].metric()),
            "ter" => Box::new(self.ter[config].metric()),
            _ => panic!("no metric {name}"),
        }
    }
}

fn golden(name: &str) -> Value {
    let path = format!("{}/tests/goldens/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn part<T: for<'a> Deserialize<'a>>(golden: &Value, key: &str) -> T {
    T::deserialize(&golden[key]).unwrap_or_else(|e| panic!("{key}: {e}"))
}

fn agree(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1e-3)
}

#[test]
fn a_thousand_perturbed_sentences_score_as_in_sacrebleu() {
    let golden = golden("metrics_perturbed.json");
    let configs: Configs = part(&golden, "configs");
    let sentences: Vec<String> = part(&golden, "sentences");
    let rows: Vec<(usize, String, [f64; 7])> = part(&golden, "perturbed");
    assert_eq!(rows.len(), 1000);
    let mut wrong = Vec::new();
    for (i, (reference, hyp, scores)) in rows.iter().enumerate() {
        let metrics: [Box<dyn Metric>; 7] = [
            Box::new(Bleu { effective_order: true, ..Bleu::default() }),
            Box::new(Chrf::default()),
            Box::new(Chrf::plus_plus()),
            Box::new(Ter::default()),
            configs.metric("bleu", i % configs.bleu.len()),
            configs.metric("chrf", i % configs.chrf.len()),
            configs.metric("ter", i % configs.ter.len()),
        ];
        for (metric, &theirs) in metrics.iter().zip(scores) {
            let ours = metric.sentence(hyp, &[&sentences[*reference]]).unwrap();
            if !agree(ours.score, theirs) {
                wrong.push(format!("row {i} {hyp:?}: {theirs} but {}", ours));
            }
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[derive(Deserialize)]
struct Corpus {
    name: String,
    hyps: Vec<String>,
    refs: Vec<Vec<String>>,
    results: Vec<CorpusResult>,
}

#[derive(Deserialize)]
struct CorpusResult {
    metric: String,
    config: usize,
    score: f64,
    signature: String,
    line: String,
    counts: Option<Vec<u64>>,
    totals: Option<Vec<u64>>,
    precisions: Option<Vec<f64>>,
    bp: Option<f64>,
    sys_len: Option<u64>,
    ref_len: Option<u64>,
    num_edits: Option<u64>,
    ref_length: Option<f64>,
}

#[test]
fn corpora_score_as_in_sacrebleu_with_every_setting() {
    let golden = golden("metrics_corpora.json");
    let configs: Configs = part(&golden, "configs");
    let corpora: Vec<Corpus> = part(&golden, "corpora");
    assert_eq!(corpora.len(), 10);
    for corpus in corpora {
        assert_eq!(corpus.results.len(), configs.bleu.len() + configs.chrf.len() + configs.ter.len());
        for expected in corpus.results {
            let score =
                configs.metric(&expected.metric, expected.config).corpus(&corpus.hyps, &corpus.refs).unwrap();
            let place = format!("{}: {} {}", corpus.name, expected.metric, expected.config);
            assert!(agree(score.score, expected.score), "{place}: {} but {score}", expected.score);
            assert_eq!(score.signature, expected.signature, "{place}");
            assert_eq!(score.to_string(), expected.line, "{place}");
            match score.details {
                Details::Bleu { counts, totals, precisions, brevity_penalty, hyp_len, ref_len } => {
                    let Some(bp) = expected.bp else { continue };
                    assert!(agree(brevity_penalty, bp), "{place}: {brevity_penalty} but {bp}");
                    assert_eq!(Some(counts), expected.counts, "{place}");
                    assert_eq!(Some(totals), expected.totals, "{place}");
                    assert_eq!(
                        (Some(hyp_len), Some(ref_len)),
                        (expected.sys_len, expected.ref_len),
                        "{place}"
                    );
                    let theirs = expected.precisions.unwrap();
                    assert_eq!(precisions.len(), theirs.len(), "{place}");
                    assert!(precisions.iter().zip(theirs).all(|(&o, t)| agree(o, t)), "{place}");
                }
                Details::Chrf {} => assert_eq!(expected.metric, "chrf"),
                Details::Ter { edits, ref_len } => {
                    assert_eq!(Some(edits), expected.num_edits, "{place}");
                    assert!(agree(ref_len, expected.ref_length.unwrap()), "{place}");
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct Paired {
    metric: String,
    baseline: i64,
    system: i64,
    samples: usize,
    seed: u64,
    p: f64,
    means: [f64; 2],
    cis: [f64; 2],
    signature: String,
}

#[test]
fn bootstrap_intervals_and_p_values_are_those_of_sacrebleu() {
    let golden = golden("metrics_perturbed.json");
    let sentences: Vec<String> = part(&golden, "sentences");
    let rows: Vec<Value> = part(&golden, "perturbed");
    let system = |k: i64| -> Vec<String> {
        if k < 0 {
            return sentences.clone();
        }
        let start = k as usize * sentences.len();
        rows[start..start + sentences.len()].iter().map(|row| row[1].as_str().unwrap().to_owned()).collect()
    };
    let references = [sentences.clone()];
    // sacreBLEU resamples in 32-bit floats.
    let near = |ours: f64, theirs: f64| (ours - theirs).abs() < 1e-4;

    let cases: Vec<Paired> = part(&golden["significance"], "paired");
    assert_eq!(cases.len(), 10);
    for case in cases {
        let metric = &select(&case.metric, Tokenizer::V13a, false).unwrap()[0];
        let bootstrap = Bootstrap { samples: case.samples, seed: case.seed };
        let (baseline, system) = (system(case.baseline), system(case.system));
        let got = paired_bootstrap(metric.as_ref(), &baseline, &system, &references, &bootstrap).unwrap();
        let place = format!("{} {} {}", case.metric, case.baseline, case.system);
        // One draw may tie with the real difference in one precision and not in the other.
        assert!((got.p_value - case.p).abs() < 1.5 / 301.0, "{place}: p {} but {}", case.p, got.p_value);
        for (ours, (mean, ci)) in
            [&got.baseline, &got.system].into_iter().zip(case.means.into_iter().zip(case.cis))
        {
            let ours = ours.interval.unwrap();
            assert!(near(ours.mean, mean), "{place}: mean {mean} but {}", ours.mean);
            assert!(near(ours.half_width, ci), "{place}: interval {ci} but {}", ours.half_width);
        }
        assert_eq!(got.system.signature, case.signature);
        assert_eq!(
            got,
            paired_bootstrap(metric.as_ref(), &baseline, &system, &references, &bootstrap).unwrap()
        );
    }

    let expected = &golden["significance"]["interval"];
    let bootstrap =
        Bootstrap { samples: expected["samples"].as_u64().unwrap() as usize, ..Bootstrap::default() };
    let score = Bleu::default().corpus_with_interval(&system(0), &references, &bootstrap).unwrap();
    let interval = score.interval.unwrap();
    assert!(near(interval.mean, expected["mean"].as_f64().unwrap()));
    assert!(near(interval.half_width, expected["ci"].as_f64().unwrap()));
    assert_eq!(
        score.signature,
        "nrefs:1|bs:500|seed:12345|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    );
    let json = serde_json::to_value(&score).unwrap();
    assert_eq!(json["confidence_mean"].as_f64(), Some(interval.mean));
    assert_eq!(json["confidence_var"].as_f64(), Some(interval.half_width));
}

fn crc32(bytes: &[u8], start: u32) -> u32 {
    !bytes.iter().fold(!start, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

#[test]
fn every_character_of_unicode_14_is_tokenized_as_in_sacrebleu() {
    let golden = golden("metrics_unicode.json");
    let assigned: Vec<(u32, u32)> = part(&golden, "assigned");
    let characters: Vec<char> =
        assigned.iter().flat_map(|&(start, end)| start..end).filter_map(char::from_u32).collect();
    assert_eq!(characters.len(), 144_762, "Unicode 14 without surrogates and private use");
    let python_space = |c: char| c.is_whitespace() || ('\x1c'..='\x1f').contains(&c);
    let ter = Ter { normalized: true, asian_support: true, ..Ter::default() };
    let no_punct = Ter { no_punct: true, asian_support: true, case_sensitive: true, ..Ter::default() };
    let blocks = golden["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), characters.chunk_by(|a, b| *a as u32 >> 12 == *b as u32 >> 12).count());
    for (block, expected) in characters.chunk_by(|a, b| *a as u32 >> 12 == *b as u32 >> 12).zip(blocks) {
        let place = format!("block {:x}000", expected["block"].as_u64().unwrap());
        for tokenizer in Tokenizer::ALL {
            let crc = block.iter().fold(0, |crc, c| {
                let text = tokenizer.apply(&format!("a{c}1{c}{c}b {c}"));
                let words: Vec<&str> = text.split(python_space).filter(|w| !w.is_empty()).collect();
                crc32(format!("{}\n", words.join(" ")).as_bytes(), crc)
            });
            assert_eq!(
                Some(u64::from(crc)),
                expected["crc"][tokenizer.name()].as_u64(),
                "{place}: {tokenizer}"
            );
        }
        let crc =
            block.iter().fold(0, |crc, c| crc32(format!("{c} a{c} {c}b").to_lowercase().as_bytes(), crc));
        assert_eq!(Some(u64::from(crc)), expected["crc"]["lower"].as_u64(), "{place}: lower case");
        for (i, metric) in [&ter, &no_punct].into_iter().enumerate() {
            let edits: f64 = block
                .iter()
                .map(|c| metric.segment(&format!("a{c}1{c}{c}b {c}"), &[&format!("a {c} 1 {c} {c} b")])[0])
                .sum();
            assert_eq!(Some(edits as u64), expected["edits"][i].as_u64(), "{place}: TER {i}");
        }
    }
}

fn strings(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| line.to_string()).collect()
}

#[test]
fn json_has_an_object_for_each_metric() {
    let metrics = select("bleu,chrf, chrf++,ter", Tokenizer::Intl, true).unwrap();
    let (hypotheses, references) = (strings(&["A b c d", "e"]), [strings(&["x y z w", "v"])]);
    let scores: Scores = score_all(&metrics, &hypotheses, &references).unwrap();
    let json = serde_json::to_string(&scores).unwrap();
    assert_eq!(
        json,
        concat!(
            r#"{"bleu":{"score":0.0,"signature":"nrefs:1|case:lc|eff:no|tok:intl|smooth:exp|version:2.6.0"},"#,
            r#""chrf":{"score":0.0,"signature":"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0"},"#,
            r#""chrf++":{"score":0.0,"signature":"nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:2.6.0"},"#,
            r#""ter":{"score":100.0,"signature":"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:2.6.0"}}"#
        )
    );
    assert_eq!(scores.get("ter").unwrap().score, 100.0);
    assert!(scores.get("meteor").is_none());
}

#[test]
fn wrong_input_is_refused_with_the_numbers() {
    let metric = Bleu::default();
    let message = |hypotheses: &[&str], references: &[&[&str]]| {
        let references: Vec<_> = references.iter().map(|r| strings(r)).collect();
        metric.corpus(&strings(hypotheses), &references).unwrap_err().to_string()
    };
    assert_eq!(
        message(&["a", "b"], &[&["a", "b"], &["a", "b", "c"]]),
        "score: the hypotheses have 2 lines and reference 2 has 3; a reference needs one line for each hypothesis"
    );
    assert_eq!(message(&[], &[&[]]), "score: no sentence to score: hypotheses and references are empty");
    assert_eq!(message(&["a"], &[]), "score: no reference; at least one is needed");
    assert_eq!(
        metric.sentence("a", &[]).unwrap_err().to_string(),
        "score: no reference; at least one is needed"
    );
    let bootstrap = Bootstrap { samples: 1, seed: 1 };
    assert_eq!(
        metric
            .corpus_with_interval(&strings(&["a"]), &[strings(&["a"])], &bootstrap)
            .unwrap_err()
            .to_string(),
        "bootstrap samples: 1 drawn corpora make no interval; at least 2 are needed"
    );
}

#[test]
fn wrong_settings_are_refused_with_what_is_accepted() {
    let error = |result: regard_metrics::Result<()>| result.unwrap_err().to_string();
    assert_eq!(
        error("mecab".parse::<Tokenizer>().map(drop)),
        r#"tokenize: unknown tokenizer "mecab"; accepted: 13a, intl, char, zh, none"#
    );
    assert_eq!(
        error(select("bleu,comet", Tokenizer::V13a, false).map(drop)),
        r#"metric: unknown metric "comet"; accepted: bleu, chrf, chrf++, ter"#
    );
    assert_eq!(error(select("ter,ter", Tokenizer::V13a, false).map(drop)), r#"metric: "ter" is given twice"#);
    for text in ["add-one", "exp:1", "floor:x", ""] {
        let message = format!(
            "smoothing: unknown smoothing {text:?}; accepted: none, exp, floor, add-k, floor:NUMBER, add-k:NUMBER"
        );
        assert_eq!(error(text.parse::<Smoothing>().map(drop)), message);
    }
    for value in [-0.5, f64::NAN, f64::INFINITY] {
        let metric = Bleu { smoothing: Smoothing::Floor(value), ..Bleu::default() };
        let message = format!("smoothing: {value} is not a smoothing value; at least 0 is needed");
        assert_eq!(error(metric.sentence("a", &["b"]).map(drop)), message);
    }
    for max_order in [0, 65, usize::MAX] {
        assert_eq!(
            error(Bleu { max_order, ..Bleu::default() }.sentence("a", &["a"]).map(drop)),
            format!("max_order: {max_order} is not an n-gram order; accepted: 1 to 64")
        );
    }
    assert_eq!(
        error(Chrf { word_order: 65, ..Chrf::default() }.sentence("a", &["a"]).map(drop)),
        "word_order: 65 is not an n-gram order; accepted: 0 to 64"
    );
    assert_eq!(
        error(Chrf { char_order: 0, ..Chrf::default() }.sentence("a", &["a"]).map(drop)),
        "char_order: 0 and word_order 0 leave nothing to count; one must be at least 1"
    );
}

#[test]
fn a_file_is_read_as_sacrebleu_reads_it() {
    assert_eq!(lines("one \r\n\n  two\u{2028}x\u{3000}\n"), ["one", "", "  two\u{2028}x"]);
}

/// A corpus of usual size; the bound is far above what an optimised build needs and far below a
/// quadratic mistake.
#[test]
fn three_thousand_sentences_take_seconds_at_most() {
    let golden = golden("metrics_perturbed.json");
    let sentences: Vec<String> = part(&golden, "sentences");
    let rows: Vec<Value> = part(&golden, "perturbed");
    let pairs = || rows.iter().cycle().take(3000);
    let hypotheses: Vec<String> = pairs().map(|row| row[1].as_str().unwrap().to_owned()).collect();
    let references: Vec<String> =
        pairs().map(|row| sentences[row[0].as_u64().unwrap() as usize].clone()).collect();
    let start = std::time::Instant::now();
    let mut report = String::new();
    for metric in select("bleu,chrf,chrf++,ter", Tokenizer::V13a, false).unwrap() {
        let begin = start.elapsed();
        metric.corpus(&hypotheses, std::slice::from_ref(&references)).unwrap();
        report += &format!("{} {:.2?} ", metric.name(), start.elapsed() - begin);
    }
    println!("{report}");
    assert!(start.elapsed().as_secs() < 60, "{report}");
}

#[test]
fn the_target_language_chooses_the_tokenizer() {
    for (codes, tokenizer) in [
        (&["zh", "zh-CN", "zh_TW", "zho_Hans", "cmn", "yue_Hant", "ZH"][..], Tokenizer::Zh),
        (&["ja", "jpn_Jpan", "ko", "kor_Hang", "th", "tha_Thai", "lo", "km", "my", "bo"], Tokenizer::Char),
        (&["de", "en-GB", "fra_Latn", "ar", "hi", "vi", "zh-Latn", "", "-"], Tokenizer::V13a),
    ] {
        for code in codes {
            assert_eq!(Tokenizer::for_language(code), tokenizer, "{code}");
        }
    }
    assert!(is_unspaced("我喜欢猫和狗 ok") && is_unspaced("สวัสดี") && is_unspaced("猫は寝ている"));
    assert!(!is_unspaced("Ein Hund, 犬") && !is_unspaced("") && !is_unspaced("강아지가 달린다"));
}
