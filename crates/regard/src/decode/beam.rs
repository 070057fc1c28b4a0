//! Beam search over a batch, by the rules of `transformers`; greedy search and sampling are its one-beam forms.

use super::constraints::{Rules, best, draw, hide};
use super::executor::{Inference, Lists, Step};
use super::{EarlyStopping, Engine, Hypothesis, SearchOptions, Watch};
use crate::batch::Packed;
use crate::model::{ModelConfig, Positions};
use regard_kernels::{Bans, BestWords, Key, MatMut, Vocabulary, log_probabilities};

/// A hypothesis that is still growing.
#[derive(Clone, Debug)]
struct Running {
    tokens: Vec<u32>,
    log_p: Vec<f32>,
    total: f32,
    /// The cache rows of its tokens, in each member alike.
    past: Vec<u32>,
    attention: Vec<Vec<f32>>,
    /// The stream it draws from, when sampling.
    key: Key,
}

/// A sentence under way.
#[derive(Debug)]
struct Sentence {
    /// Its rows in the encoder's output.
    source: Vec<u32>,
    limit: usize,
    running: Vec<Running>,
    finished: Vec<Hypothesis>,
    done: bool,
}

/// One way to go on: which running hypothesis, with which token.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    from: usize,
    token: u32,
    log_p: f32,
    total: f32,
}

/// Searches batch after batch with the same memory.
#[derive(Debug)]
pub(super) struct BatchSearch<'a> {
    members: Vec<Inference<'a>>,
    options: &'a SearchOptions,
    rules: Rules<'a>,
    step: Step,
    cache: CacheRows,
    best: BestWords,
    /// The words that each hypothesis must not take.
    bans: Lists,
    /// Whether nothing more is asked of it.
    only_bans: Vec<bool>,
    logits: Vec<f32>,
    mixed: Vec<f32>,
}

/// Which rows of the cache are free: those of hypotheses that have been given up are used again.
#[derive(Debug, Default)]
struct CacheRows {
    /// Whether somebody still needs it, row by row.
    needed: Vec<bool>,
    free: Vec<u32>,
}

impl CacheRows {
    fn reset(&mut self) {
        self.needed.clear();
        self.free.clear();
    }

    /// Finds out again which rows are free.
    fn release<'r>(&mut self, live: impl Iterator<Item = &'r Running>) {
        self.needed.fill(false);
        for running in live {
            running.past.iter().for_each(|&row| self.needed[row as usize] = true);
        }
        self.free.clear();
        // The last are taken first.
        self.free.extend((0..self.needed.len() as u32).rev().filter(|&row| !self.needed[row as usize]));
    }

    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.needed.push(true);
            self.needed.len() as u32 - 1
        })
    }
}

impl<'a> BatchSearch<'a> {
    pub(super) fn new(engines: &[&'a Engine], options: &'a SearchOptions, threads: usize) -> Self {
        let rules = Rules::new(options, engines.len(), engines[0].model().config().target_pad());
        let members = engines
            .iter()
            .map(|engine| {
                let mut inference = Inference::new(engine, threads);
                if options.attention {
                    inference.cross_weights = Some(Vec::new());
                }
                inference
            })
            .collect();
        BatchSearch {
            members,
            options,
            rules,
            step: Step::default(),
            cache: CacheRows::default(),
            best: BestWords::default(),
            bans: Lists::default(),
            only_bans: Vec::new(),
            logits: Vec::new(),
            mixed: Vec::new(),
        }
    }

    fn config(&self) -> &'a ModelConfig {
        self.members[0].engine.model().config()
    }

    /// The hypotheses of each sentence of the batch, best first.
    pub(super) fn run(
        &mut self,
        batch: &[usize],
        sources: &[Vec<u32>],
        watch: &dyn Watch,
    ) -> Vec<Vec<Hypothesis>> {
        let packed = Packed::new(batch.iter().map(|&i| sources[i].as_slice()));
        let mut sentences = self.sentences(batch, &packed);
        let mut begun = false;
        loop {
            for (sentence, &i) in sentences.iter_mut().zip(batch) {
                sentence.done |= !watch.wanted(i);
            }
            if sentences.iter().all(|s| s.done) {
                break;
            }
            if !begun {
                self.begin(&packed);
                begun = true;
            }
            self.advance(&mut sentences);
            for (sentence, &i) in sentences.iter().zip(batch).filter(|(s, _)| !s.done) {
                watch.grown(i, &sentence.running[0].tokens);
            }
            self.step.position += 1;
        }
        sentences.into_iter().map(|s| self.ranked(s)).collect()
    }

    /// The log-probability of each token of the given translations.
    pub(super) fn force(&mut self, batch: &[usize], pairs: &[(Vec<u32>, Vec<u32>)]) -> Vec<Vec<f32>> {
        let packed = Packed::new(batch.iter().map(|&i| pairs[i].0.as_slice()));
        let mut sentences = self.sentences(batch, &packed);
        self.begin(&packed);
        let words = self.words();
        loop {
            for (sentence, &i) in sentences.iter_mut().zip(batch) {
                sentence.done = sentence.running[0].tokens.len() == pairs[i].1.len();
            }
            if sentences.iter().all(|s| s.done) {
                break;
            }
            self.prepare(&mut sentences);
            // No rule holds for what is given.
            self.only_bans.clear();
            self.log_probabilities();
            let live = sentences.iter_mut().zip(batch).filter(|(s, _)| !s.done);
            for ((sentence, &i), row) in live.zip(self.logits.chunks_exact(words)) {
                let running = &mut sentence.running[0];
                let token = pairs[i].1[running.tokens.len()];
                running.log_p.push(row.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY));
                running.tokens.push(token);
            }
            self.step.position += 1;
        }
        sentences.into_iter().map(|mut s| std::mem::take(&mut s.running[0].log_p)).collect()
    }

    /// Encodes a new batch.
    fn begin(&mut self, source: &Packed) {
        self.members.iter_mut().for_each(|member| member.encode(source.clone()));
        self.cache.reset();
        self.step.position = 0;
    }

    /// The sentences of a batch before their first step.
    fn sentences(&self, batch: &[usize], source: &Packed) -> Vec<Sentence> {
        let rows = source.offsets().windows(2).map(|w| (w[0] as u32..w[1] as u32).collect());
        batch.iter().zip(rows).map(|(&i, rows)| self.start(i, rows)).collect()
    }

    fn start(&self, index: usize, source: Vec<u32>) -> Sentence {
        let config = self.config();
        let mut limit = self.options.limit(source.len());
        if config.positions == Positions::Learned {
            limit = limit.min(config.max_positions);
        }
        // A sentence's draws are its own: they do not depend on what else is translated.
        let key = |n: usize| {
            Key::new(self.options.sampling.map_or(0, |s| s.seed)).child(index as u64).child(n as u64)
        };
        let count = if self.options.sampling.is_some() { self.options.nbest } else { 1 };
        let running = (0..count)
            .map(|n| Running {
                tokens: Vec::new(),
                log_p: Vec::new(),
                total: 0.0,
                past: Vec::new(),
                attention: Vec::new(),
                key: key(n),
            })
            .collect();
        Sentence { source, limit, running, finished: Vec::new(), done: false }
    }

    /// One step of every running hypothesis.
    fn advance(&mut self, sentences: &mut [Sentence]) {
        self.prepare(sentences);
        self.collect_bans(sentences);
        let best_only = self.options.sampling.is_none() && self.only_bans.iter().all(|&only| only);
        if best_only {
            self.find_best();
        } else {
            self.log_probabilities();
        }
        let mut at = 0;
        for sentence in sentences.iter_mut().filter(|s| !s.done) {
            let count = sentence.running.len();
            if self.options.attention {
                self.note_attention(sentence, at);
            }
            if best_only {
                let best = (0..count).map(|i| self.best.row(at + i));
                extend(self.options, sentence, best);
            } else {
                self.extend_by_rules(sentence, at);
            }
            at += count;
        }
    }

    /// The same step of a sentence from the log-probabilities of all words, its first hypothesis being row `at`.
    fn extend_by_rules(&mut self, sentence: &mut Sentence, at: usize) {
        let (words, wanted) = (self.words(), self.wanted());
        let log_p = &mut self.logits[at * words..][..sentence.running.len() * words];
        for (i, (running, row)) in sentence.running.iter().zip(log_p.chunks_exact_mut(words)).enumerate() {
            match self.only_bans[at + i] {
                true => hide(self.bans.of(at + i), row),
                false => self.rules.apply(&running.tokens, sentence.limit, row),
            }
        }
        if self.options.sampling.is_some() {
            sample(self.options, sentence, log_p, words);
        } else {
            let best: Vec<_> = log_p.chunks_exact(words).map(|row| best(row, wanted)).collect();
            extend(self.options, sentence, best.iter().map(Vec::as_slice));
        }
    }

    /// Gives every running hypothesis a row of the cache, and says what the step reads.
    fn prepare(&mut self, sentences: &mut [Sentence]) {
        let start = self.config().target_pad();
        self.cache.release(sentences.iter().filter(|s| !s.done).flat_map(|s| &s.running));
        let step = &mut self.step;
        step.ids.clear();
        step.rows.clear();
        for running in sentences.iter_mut().filter(|s| !s.done).flat_map(|s| &mut s.running) {
            let row = self.cache.take();
            running.past.push(row);
            step.rows.push(row);
            step.ids.push(running.tokens.last().copied().unwrap_or(start));
        }
        let live = || sentences.iter().filter(|s| !s.done);
        step.past.fill(live().flat_map(|s| s.running.iter().map(|r| r.past.as_slice())));
        step.source.fill(live().flat_map(|s| s.running.iter().map(|_| s.source.as_slice())));
    }

    /// Lists the words that each hypothesis must not take. An ensemble's probabilities are averaged before any rule.
    fn collect_bans(&mut self, sentences: &[Sentence]) {
        let single = self.members.len() == 1;
        let Lists { offsets, rows: words } = &mut self.bans;
        offsets.clear();
        words.clear();
        offsets.push(0);
        self.only_bans.clear();
        for sentence in sentences.iter().filter(|s| !s.done) {
            for running in &sentence.running {
                let only = self.rules.only_bans(&running.tokens, sentence.limit, words);
                self.only_bans.push(only && single);
                offsets.push(words.len());
            }
        }
    }

    /// Padding, the last word, is not among those that can come; some rules want it in the softmax all the same.
    fn words(&self) -> usize {
        self.config().target_vocabulary - usize::from(!self.rules.with_padding)
    }

    /// Twice as many candidates as beams: even if half of them end, the beam stays full.
    fn wanted(&self) -> usize {
        2 * self.options.beam
    }

    /// Finds the best words of each hypothesis, all logits at once being nowhere.
    fn find_best(&mut self) {
        let (words, wanted) = (self.words(), self.wanted());
        let member = &mut self.members[0];
        let engine = member.engine;
        let table = engine.matrix(engine.model().output());
        let (x, scratch, team) = member.advance(&self.step);
        let x = table.rows(x, scratch);
        let bans = Bans {
            offsets: &self.bans.offsets,
            words: &self.bans.rows,
            renormalise: self.options.renormalize,
        };
        let vocabulary = Vocabulary { table, words, bias: engine.bias() };
        self.best.find(team, vocabulary, x, bans, wanted);
    }

    /// Fills `self.logits [rows, words]` with the log-probabilities of the next token, averaged over the members; with logits, if
    /// the rules want those. Where words are banned and nothing else, the others are those that [`Self::find_best`] finds, to the bit.
    fn log_probabilities(&mut self) {
        let (rows, words) = (self.step.ids.len(), self.words());
        let members = self.members.len();
        for (n, member) in self.members.iter_mut().enumerate() {
            let engine = member.engine;
            let table = engine.matrix(engine.model().output());
            let (x, scratch, team) = member.advance(&self.step);
            let x = table.rows(x, scratch);
            let to = if n == 0 { &mut self.logits } else { &mut self.mixed };
            let all = table.outputs();
            to.resize(rows * all, 0.0);
            table.product_by(team, x, engine.bias(), MatMut::new(to, rows, all));
            // What takes no part, padding at the end of each row, is left out.
            for row in 1..rows {
                to.copy_within(row * all..row * all + words, row * words);
            }
            to.truncate(rows * words);
            for (row, logits) in to.chunks_exact_mut(words).enumerate() {
                if self.options.renormalize && self.only_bans.get(row) == Some(&true) {
                    hide(self.bans.of(row), logits);
                }
            }
            if !self.rules.on_logits {
                log_probabilities(engine.isa(), to, words);
            }
            if n > 0 {
                for (a, b) in self.logits.iter_mut().zip(&self.mixed) {
                    let top = a.max(*b);
                    *a = top + ((*a - top).exp() + (*b - top).exp()).ln();
                }
            }
        }
        if members > 1 {
            let shift = (members as f32).ln();
            self.logits.iter_mut().for_each(|x| *x -= shift);
        }
    }

    /// Adds the attention of this step to each hypothesis: all heads of one layer of the first member, on average.
    fn note_attention(&self, sentence: &mut Sentence, at: usize) {
        let Some(layers) = &self.members[0].cross_weights else { return };
        let last = layers.len() - 1;
        let layer = &layers[self.options.attention_layer.unwrap_or(last.saturating_sub(1)).min(last)];
        let heads = self.config().heads;
        // Before this sentence's rows come those of the others, each as long as its source.
        let n = sentence.source.len();
        let begin = self.step.source.offsets[at];
        for (i, running) in sentence.running.iter_mut().enumerate() {
            let weights = &layer[(begin + i * n) * heads..][..n * heads];
            let mean = (0..n).map(|j| (0..heads).map(|h| weights[h * n + j]).sum::<f32>() / heads as f32);
            running.attention.push(mean.collect());
        }
    }

    fn ranked(&self, sentence: Sentence) -> Vec<Hypothesis> {
        let mut found = sentence.finished;
        // If nothing came to an end, what is still running is all there is.
        if found.is_empty() {
            found.extend(sentence.running.into_iter().map(|r| finish(self.options, r, false)));
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(self.options.nbest);
        found
    }
}

fn finish(options: &SearchOptions, running: Running, ended: bool) -> Hypothesis {
    let Running { mut tokens, log_p, total, attention, .. } = running;
    let score = total / options.divisor(tokens.len().max(1));
    if ended {
        tokens.pop();
    }
    Hypothesis {
        ids: tokens,
        score,
        log_probability: total,
        token_log_probabilities: log_p,
        ended,
        attention,
    }
}

/// The hypothesis that a candidate makes.
fn grown(running: &[Running], candidate: &Candidate) -> Running {
    let mut next = running[candidate.from].clone();
    next.tokens.push(candidate.token);
    next.log_p.push(candidate.log_p);
    next.total = candidate.total;
    next
}

/// Takes the best ways on: those that end become finished hypotheses, the others run on.
fn extend<'b>(
    options: &SearchOptions,
    sentence: &mut Sentence,
    best: impl Iterator<Item = &'b [(u32, f32)]>,
) {
    let beam = options.beam;
    let mut candidates: Vec<Candidate> = Vec::new();
    for (from, (running, best)) in sentence.running.iter().zip(best).enumerate() {
        let candidate = |&(token, log_p)| Candidate { from, token, log_p, total: running.total + log_p };
        candidates.extend(best.iter().map(candidate));
    }
    candidates.sort_by(|a, b| b.total.total_cmp(&a.total).then((a.from, a.token).cmp(&(b.from, b.token))));
    candidates.truncate(2 * beam);

    let length = sentence.running[0].tokens.len() + 1;
    let last = length >= sentence.limit;
    let mut next = Vec::with_capacity(beam);
    for (rank, candidate) in candidates.iter().enumerate() {
        let ended = candidate.token == options.end;
        if ended || last {
            // An end among the lower candidates does not finish a hypothesis.
            if rank < beam {
                sentence.finished.push(finish(options, grown(&sentence.running, candidate), ended));
            }
        } else if next.len() < beam {
            next.push(grown(&sentence.running, candidate));
        }
        if beam == 1 && rank == 0 && ended {
            break;
        }
    }
    sentence.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
    sentence.finished.truncate(beam);
    sentence.done = last || next.is_empty() || is_settled(options, sentence, &next, length);
    if !next.is_empty() {
        sentence.running = next;
    }
}

/// Whether nothing that runs can still matter.
fn is_settled(options: &SearchOptions, sentence: &Sentence, next: &[Running], length: usize) -> bool {
    if sentence.finished.len() < options.beam {
        return false;
    }
    // Greedy search ends with its first end.
    if options.early_stopping == EarlyStopping::Yes || options.beam == 1 {
        return true;
    }
    let reach = match options.early_stopping {
        // A longer sentence is divided by more: the best that a sum, which can only fall, can come to.
        EarlyStopping::Never if options.length_penalty > 0.0 => sentence.limit,
        _ => length,
    };
    let worst = sentence.finished[options.beam - 1].score;
    next[0].total / options.divisor(reach) <= worst
}

/// Each hypothesis draws its next token.
fn sample(options: &SearchOptions, sentence: &mut Sentence, log_p: &[f32], words: usize) {
    let Some(sampling) = &options.sampling else { return };
    let mut next = Vec::new();
    for (from, row) in log_p.chunks_exact(words).enumerate() {
        let running = &sentence.running[from];
        let length = running.tokens.len() + 1;
        let token = draw(sampling, running.key, length, row).unwrap_or(options.end);
        let log_p = row[token as usize];
        let grown = grown(&sentence.running, &Candidate { from, token, log_p, total: running.total + log_p });
        if token == options.end || length >= sentence.limit {
            sentence.finished.push(finish(options, grown, token == options.end));
        } else {
            next.push(grown);
        }
    }
    sentence.done = next.is_empty();
    sentence.running = next;
}
