//! Beam search over a batch, by the rules of `transformers`; greedy search and sampling are its one-beam forms.

use super::constraints::{Rules, best, hide, normalise};
use super::executor::{Inference, Lists, Step};
use super::hypotheses::{Candidate, Running, Sentence};
use super::{Engine, Hypothesis, SearchOptions, Shortlist, Watch};
use crate::batch::Packed;
use crate::model::{ModelConfig, Positions, Side};
use regard_kernels::{Bans, BestWords, Key, MatMut, Packed as Matrix, Vocabulary, log_probabilities};

/// Searches batch after batch with the same memory.
#[derive(Debug)]
pub(super) struct BatchSearch<'a> {
    members: Vec<Inference<'a>>,
    options: &'a SearchOptions,
    rules: Rules<'a>,
    step: Step,
    cache: CacheRows,
    best: BestWords,
    /// With a shortlist: the words that this batch can come to.
    choice: Option<Choice>,
    /// The words that each hypothesis must not take.
    bans: Lists,
    /// Whether nothing more is asked of it.
    only_bans: Vec<bool>,
    logits: Vec<f32>,
    mixed: Vec<f32>,
    /// The best words of each hypothesis, where they are not looked for in all the vocabulary.
    ranked: Vec<Vec<(u32, f32)>>,
    candidates: Vec<Candidate>,
}

/// Some words, ascending, and their rows of the output matrix.
#[derive(Debug)]
struct Choice {
    words: Vec<u32>,
    table: Matrix,
    bias: Option<Vec<f32>>,
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
            choice: None,
            bans: Lists::default(),
            only_bans: Vec::new(),
            logits: Vec::new(),
            mixed: Vec::new(),
            ranked: Vec::new(),
            candidates: Vec::new(),
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
        if let Some(list) = &self.options.shortlist {
            let sources = batch.iter().map(|&i| sources[i].as_slice());
            self.choice = Some(self.choose(list, sources, &mut sentences));
        }
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
        }
        sentences.into_iter().map(|s| s.ranked(self.options)).collect()
    }

    /// The words of all sentences of the batch together; each is told which of them are its own.
    fn choose<'s>(
        &self,
        list: &Shortlist,
        sources: impl Iterator<Item = &'s [u32]>,
        sentences: &mut [Sentence],
    ) -> Choice {
        let options = self.options;
        let mut words = Vec::new();
        for (source, sentence) in sources.zip(sentences.iter_mut()) {
            list.words(source, &mut sentence.listed);
            // What must be possible, and what takes part in the softmax before it is banned.
            let padding = self.rules.with_padding.then(|| self.config().target_pad());
            let needed =
                options.prefix.iter().chain(&options.forced_first).chain([&options.end]).chain(&padding);
            sentence.listed.extend(needed);
            sentence.listed.sort_unstable();
            sentence.listed.dedup();
            words.extend_from_slice(&sentence.listed);
        }
        words.sort_unstable();
        words.dedup();
        for word in sentences.iter_mut().flat_map(|s| &mut s.listed) {
            // It is there: all of them are.
            *word = words.binary_search(word).unwrap_or_default() as u32;
        }
        let engine = self.members[0].engine;
        let table = engine.matrix(engine.model().output()).select(&words);
        let bias = engine.bias().map(|bias| words.iter().map(|&w| bias[w as usize]).collect());
        Choice { words, table, bias }
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
        }
        sentences.into_iter().map(|mut s| std::mem::take(&mut s.running[0].log_p)).collect()
    }

    /// Encodes a new batch.
    fn begin(&mut self, source: &Packed) {
        self.members.iter_mut().for_each(|member| member.encode(source.clone()));
        self.cache.reset();
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
        Sentence::new(source, limit, (0..count).map(key))
    }

    /// One step of every running hypothesis.
    fn advance(&mut self, sentences: &mut [Sentence]) {
        self.prepare(sentences);
        self.collect_bans(sentences);
        let best_only = self.options.sampling.is_none() && self.only_bans.iter().all(|&only| only);
        match (best_only, self.choice.take()) {
            (true, Some(choice)) => {
                self.find_best_of(&choice, sentences);
                self.choice = Some(choice);
            }
            (true, None) => self.find_best(),
            (false, choice) => {
                self.choice = choice;
                self.log_probabilities();
            }
        }
        let mut at = 0;
        for sentence in sentences.iter_mut().filter(|s| !s.done) {
            let count = sentence.running.len();
            if self.options.attention {
                self.note_attention(sentence, at);
            }
            if best_only && self.choice.is_none() {
                let best = (at..at + count).map(|i| self.best.row(i));
                sentence.extend(self.options, best, &mut self.candidates);
            } else if best_only {
                let best = self.ranked[at..at + count].iter().map(Vec::as_slice);
                sentence.extend(self.options, best, &mut self.candidates);
            } else {
                self.extend_by_rules(sentence, at);
            }
            at += count;
        }
    }

    /// The same step of a sentence from the log-probabilities of all words, its first hypothesis being row `at`.
    fn extend_by_rules(&mut self, sentence: &mut Sentence, at: usize) {
        let (words, wanted, count) = (self.words(), self.wanted(), sentence.running.len());
        let log_p = &mut self.logits[at * words..][..count * words];
        for (i, (running, row)) in sentence.running.iter().zip(log_p.chunks_exact_mut(words)).enumerate() {
            if let Some(choice) = &self.choice {
                keep_listed(choice, &sentence.listed, row);
                if !self.rules.on_logits {
                    normalise(row);
                }
            }
            match self.only_bans[at + i] {
                true => hide(self.bans.of(at + i), row),
                false => self.rules.apply(&running.tokens, sentence.limit, row),
            }
        }
        if self.options.sampling.is_some() {
            return sentence.sample(self.options, log_p, words);
        }
        self.ranked.resize_with(count.max(self.ranked.len()), Vec::new);
        let ranked = &mut self.ranked[..count];
        ranked.iter_mut().zip(log_p.chunks_exact(words)).for_each(|(found, row)| best(row, wanted, found));
        sentence.extend(self.options, ranked.iter().map(Vec::as_slice), &mut self.candidates);
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

    /// The same among the words of a shortlist: each hypothesis among those of its sentence.
    fn find_best_of(&mut self, choice: &Choice, sentences: &[Sentence]) {
        let (rows, wanted, isa) = (self.step.ids.len(), self.wanted(), choice.table.isa());
        let member = &mut self.members[0];
        let (x, scratch, team) = member.advance(&self.step);
        let x = choice.table.rows(x, scratch);
        let all = choice.words.len();
        self.logits.resize(rows * all, 0.0);
        choice.table.product_by(team, x, choice.bias.as_deref(), MatMut::new(&mut self.logits, rows, all));
        self.ranked.resize_with(rows.max(self.ranked.len()), Vec::new);
        let listed = sentences.iter().filter(|s| !s.done).flat_map(|s| s.running.iter().map(|_| &s.listed));
        for ((row, listed), found) in listed.enumerate().zip(&mut self.ranked) {
            let logits = &self.logits[row * all..][..all];
            self.mixed.clear();
            self.mixed.extend(listed.iter().map(|&place| logits[place as usize]));
            let places = self.bans.of(row).iter().filter_map(|word| {
                let place = choice.words.binary_search(word).ok()? as u32;
                listed.binary_search(&place).ok()
            });
            if self.options.renormalize {
                places.for_each(|place| self.mixed[place] = f32::NEG_INFINITY);
                log_probabilities(isa, &mut self.mixed, listed.len());
            } else {
                log_probabilities(isa, &mut self.mixed, listed.len());
                places.for_each(|place| self.mixed[place] = f32::NEG_INFINITY);
            }
            best(&self.mixed, wanted, found);
            found.iter_mut().for_each(|(place, _)| {
                *place = choice.words[listed[*place as usize] as usize];
            });
        }
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

    /// Adds the attention of this step to each hypothesis: of the first member, all heads on average.
    ///
    /// The upper layers look at what the next token translates, the lower ones at what the last token did, which is what they read. So
    /// a token's row is its own step's of the upper half of the layers, and the next step's of the lower half.
    fn note_attention(&self, sentence: &mut Sentence, at: usize) {
        let Some(layers) = self.members[0].cross_weights.as_ref().filter(|l| !l.is_empty()) else { return };
        let (lower, upper) = match self.options.attention_layer {
            Some(layer) => (&layers[..0], &layers[layer.min(layers.len() - 1)..][..1]),
            None => layers.split_at(layers.len() / 2),
        };
        let heads = self.config().head_shape(Side::Target).heads;
        // Before this sentence's rows come those of the others, each as long as its source.
        let n = sentence.source.len();
        let begin = self.step.source.offsets[at];
        for (i, running) in sentence.running.iter_mut().enumerate() {
            let add = |layers: &[Vec<f32>], row: &mut [f32]| {
                let weights = layers.iter().map(|layer| &layer[(begin + i * n) * heads..][..n * heads]);
                for head in weights.flat_map(|weights| weights.chunks_exact(n)) {
                    row.iter_mut().zip(head).for_each(|(x, weight)| *x += weight);
                }
            };
            let at = running.attention.len();
            running.attention.resize(at + n, 0.0);
            let (before, row) = running.attention.split_at_mut(at);
            add(upper, row);
            if let Some(start) = before.len().checked_sub(n) {
                add(lower, &mut before[start..]);
            }
        }
    }
}

/// Leaves only the listed words of a row.
fn keep_listed(choice: &Choice, listed: &[u32], row: &mut [f32]) {
    let mut listed = listed.iter().map(|&place| choice.words[place as usize] as usize).peekable();
    for (word, log_p) in row.iter_mut().enumerate() {
        if listed.next_if_eq(&word).is_none() {
            *log_p = f32::NEG_INFINITY;
        }
    }
}
