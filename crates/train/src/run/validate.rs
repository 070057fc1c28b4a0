//! Validation: the loss without dropout, BLEU and chrF of actual translations, and a few samples.

use super::data::ValidationPair;
use crate::autograd::Tape;
use crate::taped::{LossSettings, loss};
use regard_core::batch::Batch;
use regard_core::decode::{SearchOptions, search};
use regard_core::model::Transformer;
use regard_core::text::TokenizerPair;
use regard_core::{Error, Isa, Result};
use regard_metrics::{Bleu, Chrf, Metric, Tokenizer};

/// The validation set.
#[derive(Debug)]
pub(super) struct Validator {
    source_texts: Vec<String>,
    references: Vec<Vec<String>>,
    sources: Vec<Vec<u32>>,
    batches: Vec<Batch>,
    tokens: usize,
    tokenizers: TokenizerPair,
    search: SearchOptions,
    bleu: Bleu,
    samples: usize,
    isa: Isa,
    threads: usize,
}

/// The result of a validation.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValidationResult {
    pub(super) loss: f64,
    pub(super) bleu: f64,
    pub(super) chrf: f64,
    /// Source, translation, reference.
    pub(super) samples: Vec<(String, String, String)>,
}

/// The maximum number of tokens per batch on either side: each thread has one batch on its tape,
/// which keeps all values of a pass. Larger batches would not be faster.
const BATCH: usize = 512;

impl Validator {
    /// Groups the pairs into batches, leaving out those with more than `max_tokens` tokens; returns
    /// the number of these. `tokenizer` is BLEU's.
    pub(super) fn new(
        pairs: Vec<ValidationPair>,
        tokenizers: &TokenizerPair,
        (beam, samples, max_tokens): (usize, usize, usize),
        tokenizer: Tokenizer,
        start: u32,
        isa: Isa,
        threads: usize,
    ) -> Result<(Self, usize)> {
        let all = pairs.len();
        let (mut source_texts, mut references, mut sources, mut targets) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for pair in pairs {
            if pair.source_ids.len().max(pair.target_ids.len()) <= max_tokens {
                source_texts.push(pair.source);
                references.push(pair.target);
                sources.push(pair.source_ids);
                targets.push(pair.target_ids);
            }
        }
        let mut order: Vec<usize> = (0..sources.len()).collect();
        order.sort_by_key(|&i| (targets[i].len(), sources[i].len()));
        let mut batches = Vec::new();
        let mut rest = &order[..];
        while !rest.is_empty() {
            let mut tokens = 0;
            let fits = rest.iter().take_while(|&&i| {
                tokens += targets[i].len().max(sources[i].len());
                tokens <= BATCH
            });
            let (batch, after) = rest.split_at(fits.count().max(1));
            batches.push(Batch::new(batch.iter().map(|&i| (&sources[i][..], &targets[i][..])), start)?);
            rest = after;
        }
        let dropped = all - sources.len();
        let validator = Validator {
            source_texts,
            references: vec![references],
            tokens: targets.iter().map(Vec::len).sum(),
            sources,
            batches,
            tokenizers: tokenizers.clone(),
            search: SearchOptions {
                beam,
                end: tokenizers.target().eos(),
                forced_first: tokenizers.target().prefix_ids().first().copied(),
                ..SearchOptions::default()
            },
            bleu: Bleu { tokenizer, ..Bleu::default() },
            samples,
            isa,
            threads: threads.max(1),
        };
        Ok((validator, dropped))
    }

    /// The number of sentences.
    pub(super) fn len(&self) -> usize {
        self.sources.len()
    }

    /// Validates; equal weights give equal results.
    pub(super) fn run(&self, model: &Transformer, weights: &[f32]) -> Result<ValidationResult> {
        let loss = self.loss(model, weights)?;
        let found = search(model, weights, &self.sources, &self.search, self.isa, self.threads)?;
        let target = self.tokenizers.target();
        let translations: Vec<String> = found
            .iter()
            .map(|best| best.first().map(|h| target.decode(&h.ids)).unwrap_or_default())
            .collect();
        let bleu = self.bleu.corpus(&translations, &self.references).map_err(Error::other)?.score;
        let chrf = Chrf::default().corpus(&translations, &self.references).map_err(Error::other)?.score;
        let (count, n) = (self.samples.min(self.len()), self.len());
        let samples = (0..count)
            // Always the same samples, spread over the files, so that progress is visible.
            .map(|k| k * n / count)
            .map(|i| (self.source_texts[i].clone(), translations[i].clone(), self.references[0][i].clone()))
            .collect();
        Ok(ValidationResult { loss, bleu, chrf, samples })
    }

    /// The tapes are dropped at the end: training gets the memory.
    fn loss(&self, model: &Transformer, weights: &[f32]) -> Result<f64> {
        let (isa, threads, batches) = (self.isa, self.threads, &self.batches);
        let shares: Vec<Result<Vec<f64>>> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads)
                .map(|t| {
                    scope.spawn(move || {
                        let (mut tape, mine) = (Tape::new(isa, 1), batches.iter().skip(t).step_by(threads));
                        let plain = LossSettings::PLAIN;
                        mine.map(|b| loss(&mut tape, model, weights, None, b, plain, None)).collect()
                    })
                })
                .collect();
            handles.into_iter().map(|h| h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
        });
        let mut total = 0.0;
        for share in shares {
            total += share?.iter().sum::<f64>();
        }
        Ok(total / self.tokens.max(1) as f64)
    }
}
