//! The hypotheses of a sentence, and how a step changes them. Memory is reused: a step that only
//! extends them allocates nothing.

use super::constraints::{Constraints, Progress};
use super::{BeamEntry, BeamRule, EarlyStopping, Hypothesis, SearchOptions};
use regard_kernels::Key;
use std::cmp::Ordering;
use std::ops::Range;

/// A hypothesis that can still be extended.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningHypothesis {
    pub(super) tokens: Vec<u32>,
    pub(super) log_p: Vec<f32>,
    /// The sum of `log_p`.
    pub(super) total: f32,
    /// The cache rows of its tokens.
    pub(super) rows: Vec<u32>,
    /// If recorded: the attention of each token over the source, contiguous.
    pub(super) attention: Vec<f32>,
    /// The random stream it samples from.
    pub(super) key: Key,
    /// Its progress on the constraints of its sentence.
    pub(super) progress: Progress,
}

impl RunningHypothesis {
    fn with_capacity(tokens: usize) -> Self {
        RunningHypothesis {
            tokens: Vec::with_capacity(tokens),
            log_p: Vec::with_capacity(tokens),
            rows: Vec::with_capacity(tokens),
            ..RunningHypothesis::default()
        }
    }

    /// Becomes the extension of another hypothesis.
    fn extend_from(&mut self, other: &RunningHypothesis, extension: Extension) {
        self.tokens.clone_from(&other.tokens);
        self.log_p.clone_from(&other.log_p);
        self.rows.clone_from(&other.rows);
        self.attention.clone_from(&other.attention);
        self.key = other.key;
        self.tokens.push(extension.token);
        self.log_p.push(extension.log_p);
        self.total = extension.total;
    }
}

/// An extension of a running hypothesis by one token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extension {
    pub(super) from: usize,
    pub(super) token: u32,
    log_p: f32,
    total: f32,
}

/// The hypotheses of one sentence.
#[derive(Debug)]
pub(super) struct Beam {
    /// Its rows in the encoder's output, one for each source token.
    pub(super) source: Range<usize>,
    /// The maximum number of tokens, including the end.
    pub(super) limit: usize,
    /// Sorted, best first.
    pub(super) running: Vec<RunningHypothesis>,
    pub(super) finished: Vec<Hypothesis>,
    pub(super) done: bool,
    /// The phrases that its translations must contain.
    pub(super) constraints: Constraints,
    /// Former hypotheses, for reuse.
    spare: Vec<RunningHypothesis>,
    pub(super) next: Vec<RunningHypothesis>,
}

impl Beam {
    /// A beam before its first step, with one hypothesis for each key.
    pub(super) fn new(source: Range<usize>, limit: usize, keys: impl Iterator<Item = Key>) -> Self {
        let running = keys.map(|key| RunningHypothesis { key, ..RunningHypothesis::with_capacity(limit) });
        Beam {
            source,
            limit,
            running: running.collect(),
            finished: Vec::new(),
            done: false,
            constraints: Constraints::default(),
            spare: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Extends the hypotheses by one token: those that end become finished, the others keep
    /// running. `words` has the candidate words of each running hypothesis with their
    /// log-probabilities; `extensions` is scratch memory.
    pub(super) fn extend<'w>(
        &mut self,
        options: &SearchOptions,
        words: impl Iterator<Item = &'w [(u32, f32)]>,
        extensions: &mut Vec<Extension>,
    ) {
        extensions.clear();
        for (from, (running, words)) in self.running.iter().zip(words).enumerate() {
            let extension = |&(token, log_p)| Extension { from, token, log_p, total: running.total + log_p };
            extensions.extend(words.iter().map(extension));
        }
        match (options.sampling, options.rule) {
            (None, _) if !self.constraints.is_empty() => self.step_constrained(options, extensions),
            (Some(_), _) => self.step_sampling(options, extensions),
            (None, BeamRule::Transformers | BeamRule::Ctranslate2) => self.step_beam(options, extensions),
            (None, BeamRule::Marian) => self.step_marian(options, extensions),
        }
    }

    /// Marian's beam search: takes as many of the best extensions as there are open slots; those
    /// that end leave the beam.
    fn step_marian(&mut self, options: &SearchOptions, extensions: &mut Vec<Extension>) {
        extensions.sort_unstable_by(best_first);
        extensions.truncate(options.beam - self.finished.len());
        let last = self.running[0].tokens.len() + 1 >= self.limit;
        for &extension in extensions.iter() {
            match extension.token == options.end || last {
                true => self.finish(options, extension),
                false => self.grow(extension, Progress::default()),
            }
        }
        self.done = self.next.is_empty();
        self.advance();
    }

    /// Beam search: `k` of the best `2k` extensions keep running.
    fn step_beam(&mut self, options: &SearchOptions, extensions: &mut Vec<Extension>) {
        let beam = options.beam;
        extensions.sort_unstable_by(best_first);
        extensions.truncate(2 * beam);
        let length = self.running[0].tokens.len() + 1;
        if options.rule == BeamRule::Ctranslate2 && options.forced_first.is_some() && length == 2 {
            let mut rank = 0;
            extensions.retain(|extension| {
                rank += 1;
                rank == 1 || extension.token != options.end
            });
        }

        let last = length >= self.limit;
        for (rank, &extension) in extensions.iter().enumerate() {
            let ended = extension.token == options.end;
            if ended || last {
                // An end token among the lower candidates does not finish a hypothesis.
                if rank < beam {
                    self.finish(options, extension);
                }
            } else if self.next.len() < beam {
                self.grow(extension, Progress::default());
            }
            if beam == 1 && rank == 0 && ended {
                break;
            }
        }
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.finished.truncate(beam);
        self.done = last || self.next.is_empty() || self.stops_early(options, length);
        self.advance();
    }

    /// Sampling: each hypothesis takes the one token that it has drawn.
    fn step_sampling(&mut self, options: &SearchOptions, extensions: &[Extension]) {
        for &extension in extensions {
            let length = self.running[extension.from].tokens.len() + 1;
            if extension.token == options.end || length >= self.limit {
                self.finish(options, extension);
            } else {
                self.grow(extension, Progress::default());
            }
        }
        self.done = self.next.is_empty();
        self.advance();
    }

    /// Forced decoding: each hypothesis takes the one word that it is given, up to the limit.
    pub(super) fn force<'w>(&mut self, words: impl Iterator<Item = &'w [(u32, f32)]>) {
        for (running, words) in self.running.iter_mut().zip(words) {
            running.tokens.extend(words.iter().map(|&(token, _)| token));
            running.log_p.extend(words.iter().map(|&(_, log_p)| log_p));
            self.done = running.tokens.len() == self.limit;
        }
    }

    /// The running and the finished hypotheses, for a [`SearchObserver`](super::SearchObserver).
    pub(super) fn entries(&self, options: &SearchOptions) -> Vec<BeamEntry> {
        let running = self.running.iter().map(|running| BeamEntry {
            tokens: running.tokens.clone(),
            log_probability: running.total,
            score: running.total / options.length_penalty_of(running.tokens.len().max(1)),
            ended: false,
        });
        let finished = self.finished.iter().map(|h| BeamEntry {
            tokens: h.ids.iter().copied().chain(h.ended.then_some(options.end)).collect(),
            log_probability: h.log_probability,
            score: h.score,
            ended: true,
        });
        running.chain(finished).collect()
    }

    /// All hypotheses, best first.
    pub(super) fn into_ranked(mut self, options: &SearchOptions) -> Vec<Hypothesis> {
        // If nothing has ended, return what is still running.
        if self.finished.is_empty() {
            let unfinished =
                self.running.iter().map(|running| hypothesis(options, running, false, self.source.len()));
            self.finished.extend(unfinished);
        }
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.finished.truncate(options.nbest);
        self.finished
    }

    pub(super) fn grow(&mut self, extension: Extension, progress: Progress) {
        let mut grown = self.spare.pop().unwrap_or_else(|| RunningHypothesis::with_capacity(self.limit));
        grown.extend_from(&self.running[extension.from], extension);
        grown.progress = progress;
        self.next.push(grown);
    }

    pub(super) fn finish(&mut self, options: &SearchOptions, extension: Extension) {
        let mut grown = self.spare.pop().unwrap_or_else(|| RunningHypothesis::with_capacity(self.limit));
        grown.extend_from(&self.running[extension.from], extension);
        let ended = extension.token == options.end;
        self.finished.push(hypothesis(options, &grown, ended, self.source.len()));
        self.spare.push(grown);
    }

    /// The extended hypotheses become the running ones; if there are none, the running ones stay.
    pub(super) fn advance(&mut self) {
        if !self.next.is_empty() {
            self.spare.append(&mut self.running);
            std::mem::swap(&mut self.running, &mut self.next);
        }
    }

    /// Whether no running hypothesis can still matter, after a step to `length` tokens.
    fn stops_early(&self, options: &SearchOptions, length: usize) -> bool {
        if self.finished.len() < options.beam {
            return false;
        }
        // Greedy search stops at the first end token.
        if options.early_stopping == EarlyStopping::Yes || options.beam == 1 {
            return true;
        }
        let reach = match options.early_stopping {
            // The log-probability can only fall, and a longer sentence is divided by more: this is
            // the best possible score.
            EarlyStopping::Never if options.length_penalty > 0.0 => self.limit,
            _ => length,
        };
        let worst = self.finished[options.beam - 1].score;
        self.next[0].total / options.length_penalty_of(reach) <= worst
    }
}

/// Orders extensions best first, deterministically.
pub(super) fn best_first(a: &Extension, b: &Extension) -> Ordering {
    b.total.total_cmp(&a.total).then((a.from, a.token).cmp(&(b.from, b.token)))
}

/// The running hypotheses of all beams, each with the index of its sentence and its beam: the `r`
/// rows of a step.
pub(super) fn running(beams: &[Beam]) -> impl Iterator<Item = (usize, &Beam, &RunningHypothesis)> {
    let open = beams.iter().enumerate().filter(|(_, beam)| !beam.done);
    open.flat_map(|(i, beam)| beam.running.iter().map(move |hypothesis| (i, beam, hypothesis)))
}

/// The result for a hypothesis over a source of this many tokens.
fn hypothesis(
    options: &SearchOptions,
    running: &RunningHypothesis,
    ended: bool,
    source: usize,
) -> Hypothesis {
    let RunningHypothesis { tokens, log_p, total, attention, .. } = running;
    Hypothesis {
        ids: tokens[..tokens.len() - usize::from(ended)].to_vec(),
        score: total / options.length_penalty_of(tokens.len().max(1)),
        log_probability: *total,
        token_log_probabilities: log_p.clone(),
        ended,
        attention: attention.chunks_exact(source.max(1)).map(normalised).collect(),
    }
}

/// The row, normalised to a sum of one.
fn normalised(row: &[f32]) -> Vec<f32> {
    let sum: f32 = row.iter().sum();
    row.iter().map(|x| x / sum).collect()
}
