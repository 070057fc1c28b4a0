//! All settings of a training run, field by field. The defaults are those of a preset: the paper's,
//! except for `tiny`, whose recipe is for corpora of some ten thousand pairs.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::precision::auto;
use crate::batches::BatchSettings;
use crate::corpus::Filters;
use crate::distributed::Overlap;
use crate::optimizer::{Schedule, ScheduleKind};
use crate::step::StepSettings;
use regard_core::model::{ModelConfig, Preset};
use regard_core::text::{Segmentation, TokenizerSettings};
use regard_core::{DType, Error, Result};

/// The settings of a training run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// The size of the model, and the recipe with the defaults of the other settings.
    pub preset: Preset,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of cores to use; all of them if not given. A different number changes the result
    /// in the last digits.
    pub threads: Option<usize>,
    /// The number format of the matmuls: auto, f32 or bf16.
    #[serde(with = "auto")]
    pub precision: Option<DType>,
    /// Number of training steps after which the run ends.
    pub steps: Option<u64>,
    /// Number of passes over the corpus after which the run ends.
    pub epochs: Option<u64>,
    /// The number of minutes that the whole run should take, instead of `steps` and `epochs`.
    pub minutes: Option<f64>,
    /// The number of steps between two lines of the log.
    pub log_every: u64,
    /// The training and validation text.
    pub data: DataConfig,
    /// The model.
    pub model: ModelConfig,
    /// The vocabulary.
    pub tokenizer: TokenizerConfig,
    /// Which pairs to leave out.
    pub filters: Filters,
    /// The batches.
    pub batch: BatchConfig,
    /// Adam, loss and gradients.
    pub optimizer: OptimizerConfig,
    /// The learning rate.
    pub schedule: Schedule,
    /// When and how to validate, and when to stop early.
    pub validation: ValidationConfig,
    /// What to save during the run.
    pub checkpoints: CheckpointConfig,
    /// Annotated terms that the model learns to use.
    #[serde(default)]
    pub terms: TermsConfig,
}

/// The training and validation text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// Files of the source language, one sentence per line; plain, gzip or zstd.
    pub src: Vec<PathBuf>,
    /// The corresponding files of the target language.
    pub tgt: Vec<PathBuf>,
    /// Instead of these, one file of source, tab, target.
    pub tsv: Option<PathBuf>,
    /// Instead of these, files that hold both sides: .tsv, .jsonl or .po.
    #[serde(default)]
    pub pairs: Vec<PathBuf>,
    /// The source side of the validation set; without it, pairs of the corpus are held out.
    pub valid_src: Option<PathBuf>,
    /// The target side of the validation set.
    pub valid_tgt: Option<PathBuf>,
    /// Instead of these, a file that holds both sides.
    #[serde(default)]
    pub valid_pairs: Option<PathBuf>,
    /// The source language; by default the extension of the files.
    pub source_lang: Option<String>,
    /// The target language; by default the extension of the files.
    pub target_lang: Option<String>,
    /// For a model with several target languages, the language of each pair of files, in their
    /// order. A token before the source tells the model which language to write.
    pub target_langs: Vec<String>,
    /// How evenly the files are sampled: a file with a share p of the pairs is sampled in
    /// proportion to p^(1/temperature). 1 takes every pair once; high values sample all files
    /// equally.
    pub temperature: f32,
    /// A model folder to start from: its weights, shape and tokenizers.
    pub init: Option<PathBuf>,
    /// The licence of the model, for its card.
    #[serde(default)]
    pub license: Option<String>,
}

impl Default for DataConfig {
    fn default() -> Self {
        DataConfig {
            src: Vec::new(),
            tgt: Vec::new(),
            tsv: None,
            pairs: Vec::new(),
            valid_src: None,
            valid_tgt: None,
            valid_pairs: None,
            source_lang: None,
            target_lang: None,
            target_langs: Vec::new(),
            temperature: 1.0,
            init: None,
            license: None,
        }
    }
}

/// The vocabulary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenizerConfig {
    /// The kind of vocabulary to train.
    #[serde(flatten)]
    pub vocabulary: TokenizerSettings,
    /// An existing joint `tokenizer.json` to use instead of training one.
    pub file: Option<PathBuf>,
    /// BPE-dropout: the probability of skipping each merge, in training only.
    pub bpe_dropout: f32,
}

/// The batches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchConfig {
    /// How pairs are grouped into batches.
    #[serde(flatten)]
    pub plan: BatchSettings,
    /// The number of batches whose gradients are summed for one step.
    pub accumulate: usize,
}

/// Adam, loss and gradients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptimizerConfig {
    /// Loss, clipping and Adam.
    #[serde(flatten)]
    pub step: StepSettings,
    /// The format in which MPI ranks exchange gradients and weights: f32 or bf16.
    pub wire: DType,
    /// Whether to exchange gradients while the backward pass still runs: auto (measures which is
    /// faster), on or off. The result is the same.
    #[serde(default)]
    pub overlap: Overlap,
    /// Decay of an exponential moving average of the weights, which is then validated and saved
    /// instead of them; 0.999 is usual.
    pub ema: Option<f32>,
    /// The number of epochs before R-Drop begins: at first a model learns faster without, and it
    /// only repeats itself once it has seen all pairs some times.
    #[serde(default)]
    pub r_drop_after: u64,
    /// Whether new weights start closer to the identity: the last matrix of each sub-layer is
    /// smaller by the factor that DeepNorm (Wang et al., 2022) gives for the number of layers. A
    /// post-norm model then learns its attention earlier.
    #[serde(default)]
    pub deepnorm: bool,
}

impl OptimizerConfig {
    /// R-Drop's weight in this epoch, counted from 0.
    pub(crate) fn r_drop_in(&self, epoch: u64) -> Option<f32> {
        self.step.r_drop.filter(|_| epoch >= self.r_drop_after)
    }

    /// The factors of the last matrix of each sub-layer in the encoder and the decoder, if
    /// `deepnorm` is set: β/α of the paper. Its norms see αx + f(x), which is the same as x + f(x)/α,
    /// so that α needs no place in the model.
    pub(crate) fn residual_factors(&self, model: &ModelConfig) -> Option<(f32, f32)> {
        let (n, m) = (model.encoder_layers as f32, model.decoder_layers as f32);
        let both = (n.powi(4) * m).powf(1.0 / 16.0);
        let encoder = (0.87 / both) / (0.81 * both);
        let decoder = (12.0 * m).powf(-0.25) / (3.0 * m).powf(0.25);
        self.deepnorm.then_some((encoder, decoder))
    }
}

/// When and how to validate, and when to stop early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidationConfig {
    /// How often: `"500 steps"` or `"1 epochs"`.
    pub every: Every,
    /// The metric that decides which model is best: bleu, chrf or loss.
    pub metric: ValidationMetric,
    /// The number of validations without improvement after which the run ends.
    pub patience: Option<u64>,
    /// The beam size of the translations.
    pub beam: usize,
    /// The maximum number of sentences, taken from the start of the files; also the number of pairs
    /// to hold out if there are no files.
    pub max_sentences: usize,
    /// The number of translations to show each time.
    pub samples: usize,
}

/// What to save during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointConfig {
    /// How often: `"500 steps"` or `"1 epochs"`.
    pub every: Every,
    /// The number of last and of best weights to keep; their averages are evaluated at the end. 0:
    /// none.
    pub average: usize,
    /// The dtype of the weights in the model folder: f32, bf16 or f16. Checkpoints are always in
    /// f32.
    #[serde(default)]
    pub store: DType,
    /// For a run that starts from another model: the share of that model's weights in what is
    /// validated and saved. It preserves what the model knew and the new text lacks. The final
    /// model omits them if that is far better.
    #[serde(default)]
    pub init_share: f32,
}

/// Translations of words inside source sentences, in the form that a glossary uses later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TermsConfig {
    /// The share of annotated sentences, drawn anew in each epoch; 0: the model does not learn to
    /// use terms.
    pub share: f32,
    /// The maximum number of annotated words per sentence.
    pub max_words: usize,
    /// How often to use a different form of the translation than the target sentence has, if one is
    /// known: the model then learns to inflect.
    pub other_forms: f32,
    /// How often another word of the source language stands in place of an annotated word: the
    /// model then has only the annotation to translate from. Without this, it ignores the
    /// annotations of words that it can translate.
    pub other_words: f32,
}

impl Default for TermsConfig {
    fn default() -> Self {
        TermsConfig { share: 0.0, max_words: 3, other_forms: 0.5, other_words: 0.2 }
    }
}

/// The metric that decides which model is best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValidationMetric {
    /// BLEU of translations.
    Bleu,
    /// chrF of translations.
    Chrf,
    /// The loss without label smoothing.
    Loss,
}

/// The interval between two events of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Every {
    /// A number of steps.
    Steps(u64),
    /// A number of passes over the corpus.
    Epochs(u64),
}

impl Every {
    /// Whether it is due after step `step`; `epochs_done` is given if the step was the last of an
    /// epoch.
    pub(crate) fn due(self, step: u64, epochs_done: Option<u64>) -> bool {
        match self {
            Every::Steps(n) => step.is_multiple_of(n),
            Every::Epochs(n) => epochs_done.is_some_and(|e| e.is_multiple_of(n)),
        }
    }

    pub(super) fn check(self, field: &str) -> Result<()> {
        match self {
            Every::Steps(0) | Every::Epochs(0) => {
                Err(Error::config(field, "0 is not an interval; give at least 1"))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Every::Steps(n) => write!(f, "{n} steps"),
            Every::Epochs(n) => write!(f, "{n} epochs"),
        }
    }
}

impl Serialize for Every {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Every {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u64),
            Text(String),
        }
        let refuse = |what: &dyn fmt::Display| {
            de::Error::custom(format!("{what} is not an interval; write \"500 steps\" or \"1 epochs\""))
        };
        match Written::deserialize(from).map_err(|_| refuse(&"this"))? {
            Written::Number(n) => Ok(Every::Steps(n)),
            Written::Text(text) => {
                let (number, unit) = text.trim().split_once(' ').unwrap_or((text.trim(), "steps"));
                match (number.parse(), unit.trim()) {
                    (Ok(n), "step" | "steps") => Ok(Every::Steps(n)),
                    (Ok(n), "epoch" | "epochs") => Ok(Every::Epochs(n)),
                    _ => Err(refuse(&format!("{text:?}"))),
                }
            }
        }
    }
}

/// The share of a model's own weights that fine-tuning keeps, and its peak learning rate:
/// docs/firefox.md lists gains and losses of other values.
const INIT_SHARE: f32 = 0.5;
const FINE_TUNING_PEAK: f64 = 0.0002;
/// The limit of the sum of the learning rates in fine-tuning, which 1,000 steps reach. With 1,785
/// steps at the same peak, FLORES lost 3.3 BLEU instead of 1.2.
const FINE_TUNING_SUM: f64 = 0.1;
/// The maximum number of pairs per document in fine-tuning: more of a large document only teaches
/// its own words.
const MAX_PER_DOCUMENT: usize = 400;

impl TrainConfig {
    /// The recipe of a preset.
    pub fn new(preset: Preset) -> Self {
        let tiny = preset == Preset::Tiny;
        let small = tiny || preset == Preset::Student;
        let model = ModelConfig { source_vocabulary: 0, target_vocabulary: 0, ..preset.config(0) };
        TrainConfig {
            preset,
            seed: 1,
            threads: None,
            precision: None,
            steps: Some(match preset {
                Preset::Tiny => 4_000,
                Preset::Student => 50_000,
                Preset::Small | Preset::Base => 100_000,
                Preset::Big => 300_000,
            }),
            epochs: None,
            minutes: None,
            log_every: if tiny { 50 } else { 10 },
            data: DataConfig::default(),
            model: ModelConfig { dropout: if tiny { 0.2 } else { model.dropout }, ..model },
            // fxtranslate, one of Firefox's engines, reads only unigram vocabularies.
            tokenizer: TokenizerConfig {
                vocabulary: TokenizerSettings {
                    segmentation: match preset {
                        Preset::Student => Segmentation::Unigram,
                        _ => Segmentation::default(),
                    },
                    ..TokenizerSettings::default()
                },
                ..TokenizerConfig::default()
            },
            filters: Filters::default(),
            // Six batches of 4,096 tokens are about the paper's 25,000, in a sixth of the memory.
            batch: BatchConfig { plan: BatchSettings::default(), accumulate: if small { 1 } else { 6 } },
            optimizer: OptimizerConfig {
                step: StepSettings {
                    muon: tiny.then_some(0.2),
                    r_drop: tiny.then_some(5.0),
                    ..StepSettings::default()
                },
                wire: DType::F32,
                overlap: Overlap::Auto,
                ema: None,
                r_drop_after: if tiny { 8 } else { 0 },
                deepnorm: tiny,
            },
            // On Multi30k, linear decay to 0 reaches in 5,000 steps what the inverse square root
            // takes far longer for.
            schedule: match preset {
                Preset::Tiny => {
                    Schedule { kind: ScheduleKind::Linear, peak: Some(0.006), warmup: 600, max_sum: None }
                }
                Preset::Student => {
                    Schedule { kind: ScheduleKind::Linear, peak: Some(0.002), warmup: 1500, max_sum: None }
                }
                _ => Schedule { kind: ScheduleKind::Paper, peak: None, warmup: 4000, max_sum: None },
            },
            validation: ValidationConfig {
                every: Every::Steps(if tiny { 500 } else { 1000 }),
                metric: ValidationMetric::Bleu,
                patience: if tiny { None } else { Some(10) },
                beam: 4,
                max_sentences: 2000,
                samples: 3,
            },
            checkpoints: CheckpointConfig {
                every: Every::Steps(if tiny { 100 } else { 1000 }),
                average: match preset {
                    Preset::Tiny => 10,
                    Preset::Small | Preset::Base | Preset::Student => 5,
                    Preset::Big => 20,
                },
                store: DType::F32,
                init_share: 0.0,
            },
            terms: TermsConfig::default(),
        }
    }

    /// The recipe for fine-tuning a trained model: small steps for a short time, a share of the
    /// original weights, and no pairs that its vocabulary cannot write.
    pub fn fine_tuning(self) -> Self {
        TrainConfig {
            steps: Some(2_000),
            log_every: 50,
            model: ModelConfig { dropout: 0.0, ..self.model },
            filters: Filters { drop_unknown: true, max_per_document: Some(MAX_PER_DOCUMENT), ..self.filters },
            batch: BatchConfig {
                plan: BatchSettings { max_tokens: 2_048, ..self.batch.plan },
                accumulate: 1,
            },
            // Label smoothing would shift the probabilities of all words for reasons unrelated to
            // the new text.
            optimizer: OptimizerConfig {
                step: StepSettings { label_smoothing: 0.0, muon: None, r_drop: None, ..self.optimizer.step },
                ..self.optimizer
            },
            schedule: Schedule {
                kind: ScheduleKind::Linear,
                peak: Some(FINE_TUNING_PEAK),
                warmup: 50,
                max_sum: Some(FINE_TUNING_SUM),
            },
            validation: ValidationConfig { every: Every::Steps(200), patience: None, ..self.validation },
            checkpoints: CheckpointConfig {
                every: Every::Steps(100),
                average: 3,
                init_share: INIT_SHARE,
                ..self.checkpoints
            },
            ..self
        }
    }

    /// A preset for a corpus of `pairs` pairs, if the number is known, on `cores` cores.
    pub fn choose_preset(pairs: Option<u64>, cores: usize) -> Preset {
        match (pairs.unwrap_or(0), cores) {
            (0..300_000, _) | (_, 0..4) => Preset::Tiny,
            (300_000..3_000_000, _) | (_, 4..16) => Preset::Small,
            _ => Preset::Base,
        }
    }

    /// Makes the paths absolute, so that they do not depend on the working directory.
    pub fn absolute_paths(&mut self) -> Result<()> {
        let data = &mut self.data;
        let optional = [
            &mut data.tsv,
            &mut data.valid_src,
            &mut data.valid_tgt,
            &mut data.valid_pairs,
            &mut data.init,
            &mut self.tokenizer.file,
        ];
        let lists = data.src.iter_mut().chain(&mut data.tgt).chain(&mut data.pairs);
        for path in optional.into_iter().flatten().chain(lists) {
            *path = std::path::absolute(&*path).map_err(|e| Error::io(&*path, e))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound() {
        for preset in Preset::ALL {
            let config = TrainConfig::new(preset);
            config.check().unwrap();
            let [muon, r_drop] = [0.2, 5.0].map(|value| (preset == Preset::Tiny).then_some(value));
            assert_eq!(config.optimizer.step, StepSettings { muon, r_drop, ..StepSettings::default() });
        }
        let tiny = TrainConfig::new(Preset::Tiny);
        assert_eq!((tiny.model.dropout, tiny.model.attention_dropout, tiny.steps), (0.2, 0.0, Some(4000)));
        assert_eq!((tiny.batch.plan.max_tokens, tiny.checkpoints.average), (4096, 10));
        assert_eq!(TrainConfig::new(Preset::Big).model.dropout, 0.3);
    }

    #[test]
    fn nonsense_is_refused_by_its_key() {
        let refusal = |change: fn(&mut TrainConfig)| {
            let mut config = TrainConfig::new(Preset::Tiny);
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(refusal(|c| c.model.heads = 3).starts_with("model.heads: 3 does not divide"));
        assert_eq!(refusal(|c| c.steps = Some(0)), "steps: 0 is too few, at least 1 is needed");
        assert!(refusal(|c| c.batch.plan.max_tokens = 0).starts_with("batch.max_tokens: 0 makes no batch"));
        assert!(
            refusal(|c| c.optimizer.step.adam.beta2 = 1.0).starts_with("optimizer.beta2: 1 is not a rate")
        );
        assert!(refusal(|c| c.minutes = Some(f64::NAN)).starts_with("minutes: NaN"));
        assert_eq!(
            refusal(|c| c.threads = Some(99_999_999)),
            "threads: 99999999 is too many, at most 1024 is possible"
        );
        assert!(
            refusal(|c| c.model.encoder_layers = 1_000_000)
                .starts_with("model.encoder_layers: 1000000 is too")
        );
        assert!(refusal(|c| c.minutes = Some(1e19)).starts_with("minutes: 10000000000000000000 is too long"));
        assert!(refusal(|c| c.steps = Some(u64::MAX)).starts_with("steps: 18446744073709551615 is too many"));
        assert!(refusal(|c| c.steps = None).starts_with("steps: the run has no end"));
        assert!(refusal(|c| c.validation.every = Every::Epochs(0)).starts_with("validation.every: 0"));
    }

    #[test]
    fn presets_are_chosen_by_size_and_cores() {
        assert_eq!(TrainConfig::choose_preset(Some(29_000), 64), Preset::Tiny);
        assert_eq!(TrainConfig::choose_preset(None, 64), Preset::Tiny);
        assert_eq!(TrainConfig::choose_preset(Some(7_000_000), 2), Preset::Tiny);
        assert_eq!(TrainConfig::choose_preset(Some(700_000), 8), Preset::Small);
        assert_eq!(TrainConfig::choose_preset(Some(7_000_000), 64), Preset::Base);
    }

    #[test]
    fn intervals() {
        let read = |text: &str| serde_json::from_str::<Every>(text);
        assert_eq!(read("500").unwrap(), Every::Steps(500));
        assert_eq!(read("\"2 epochs\"").unwrap(), Every::Epochs(2));
        assert_eq!(read("\"1 epoch\"").unwrap(), Every::Epochs(1));
        assert!(read("\"often\"").unwrap_err().to_string().contains("\"often\" is not an interval"));
        assert!(Every::Epochs(2).due(7, Some(4)) && !Every::Epochs(2).due(7, Some(3)));
        assert!(Every::Steps(7).due(14, None) && !Every::Epochs(1).due(14, None));
    }
}
