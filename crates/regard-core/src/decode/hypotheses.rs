//! The hypotheses of a sentence, and how a step changes them. Their memory is used again: a step that only grows them asks for none.

use super::constraints::draw;
use super::{EarlyStopping, Hypothesis, SearchOptions};
use regard_kernels::Key;

/// A hypothesis that is still growing.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    pub(super) tokens: Vec<u32>,
    pub(super) log_p: Vec<f32>,
    total: f32,
    /// The cache rows of its tokens, in each member alike.
    pub(super) past: Vec<u32>,
    /// If wanted: the attention of each token over the source, one behind the other.
    pub(super) attention: Vec<f32>,
    /// The stream it draws from, when sampling.
    key: Key,
}

impl Running {
    /// With memory for this many tokens.
    fn with_room(limit: usize) -> Self {
        Running {
            tokens: Vec::with_capacity(limit),
            log_p: Vec::with_capacity(limit),
            past: Vec::with_capacity(limit),
            ..Running::default()
        }
    }

    /// Becomes what a candidate makes of another.
    fn grow_from(&mut self, other: &Running, candidate: Candidate) {
        self.tokens.clone_from(&other.tokens);
        self.log_p.clone_from(&other.log_p);
        self.past.clone_from(&other.past);
        self.attention.clone_from(&other.attention);
        self.key = other.key;
        self.tokens.push(candidate.token);
        self.log_p.push(candidate.log_p);
        self.total = candidate.total;
    }
}

/// One way to go on: which running hypothesis, with which token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    from: usize,
    token: u32,
    log_p: f32,
    total: f32,
}

/// A sentence under way.
#[derive(Debug)]
pub(super) struct Sentence {
    /// Its rows in the encoder's output.
    pub(super) source: Vec<u32>,
    /// With a shortlist: its words, by their places in the list of the batch.
    pub(super) listed: Vec<u32>,
    /// The most tokens, the end included.
    pub(super) limit: usize,
    /// Best first.
    pub(super) running: Vec<Running>,
    pub(super) finished: Vec<Hypothesis>,
    pub(super) done: bool,
    /// What ran before, to be used again.
    spare: Vec<Running>,
    next: Vec<Running>,
}

impl Sentence {
    /// Before its first step, with one hypothesis for each key.
    pub(super) fn new(source: Vec<u32>, limit: usize, keys: impl Iterator<Item = Key>) -> Self {
        let running = keys.map(|key| Running { key, ..Running::with_room(limit) }).collect();
        Sentence {
            source,
            listed: Vec::new(),
            limit,
            running,
            finished: Vec::new(),
            done: false,
            spare: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Takes the best ways on: those that end become finished hypotheses, the others run on. `best` has words and their
    /// log-probabilities for each running hypothesis; `candidates` is memory.
    pub(super) fn extend<'b>(
        &mut self,
        options: &SearchOptions,
        best: impl Iterator<Item = &'b [(u32, f32)]>,
        candidates: &mut Vec<Candidate>,
    ) {
        let beam = options.beam;
        candidates.clear();
        for (from, (running, best)) in self.running.iter().zip(best).enumerate() {
            let candidate = |&(token, log_p)| Candidate { from, token, log_p, total: running.total + log_p };
            candidates.extend(best.iter().map(candidate));
        }
        let order = |a: &Candidate, b: &Candidate| {
            b.total.total_cmp(&a.total).then((a.from, a.token).cmp(&(b.from, b.token)))
        };
        candidates.sort_unstable_by(order);
        candidates.truncate(2 * beam);

        let length = self.running[0].tokens.len() + 1;
        let last = length >= self.limit;
        for (rank, &candidate) in candidates.iter().enumerate() {
            let ended = candidate.token == options.end;
            if ended || last {
                // An end among the lower candidates does not finish a hypothesis.
                if rank < beam {
                    self.finish(options, candidate);
                }
            } else if self.next.len() < beam {
                self.grow(candidate);
            }
            if beam == 1 && rank == 0 && ended {
                break;
            }
        }
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.finished.truncate(beam);
        self.done = last || self.next.is_empty() || self.is_settled(options, length);
        self.turn();
    }

    /// Each hypothesis draws its next token from its row of `log_p`.
    pub(super) fn sample(&mut self, options: &SearchOptions, log_p: &[f32], words: usize) {
        let Some(sampling) = &options.sampling else { return };
        for (from, row) in log_p.chunks_exact(words).enumerate() {
            let running = &self.running[from];
            let length = running.tokens.len() + 1;
            let token = draw(sampling, running.key, length, row).unwrap_or(options.end);
            let log_p = row[token as usize];
            let candidate = Candidate { from, token, log_p, total: running.total + log_p };
            if token == options.end || length >= self.limit {
                self.finish(options, candidate);
            } else {
                self.grow(candidate);
            }
        }
        self.done = self.next.is_empty();
        self.turn();
    }

    /// All hypotheses, best first.
    pub(super) fn ranked(mut self, options: &SearchOptions) -> Vec<Hypothesis> {
        // If nothing came to an end, what is still running is all there is.
        if self.finished.is_empty() {
            let unfinished =
                self.running.iter().map(|running| hypothesis(options, running, false, self.source.len()));
            self.finished.extend(unfinished);
        }
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.finished.truncate(options.nbest);
        self.finished
    }

    fn grow(&mut self, candidate: Candidate) {
        let mut grown = self.spare.pop().unwrap_or_else(|| Running::with_room(self.limit));
        grown.grow_from(&self.running[candidate.from], candidate);
        self.next.push(grown);
    }

    fn finish(&mut self, options: &SearchOptions, candidate: Candidate) {
        let mut grown = self.spare.pop().unwrap_or_else(|| Running::with_room(self.limit));
        grown.grow_from(&self.running[candidate.from], candidate);
        let ended = candidate.token == options.end;
        self.finished.push(hypothesis(options, &grown, ended, self.source.len()));
        self.spare.push(grown);
    }

    /// What has grown runs; if nothing has, what ran stays.
    fn turn(&mut self) {
        if !self.next.is_empty() {
            self.spare.append(&mut self.running);
            std::mem::swap(&mut self.running, &mut self.next);
        }
    }

    /// Whether nothing that runs can still matter, after a step to `length` tokens.
    fn is_settled(&self, options: &SearchOptions, length: usize) -> bool {
        if self.finished.len() < options.beam {
            return false;
        }
        // Greedy search ends with its first end.
        if options.early_stopping == EarlyStopping::Yes || options.beam == 1 {
            return true;
        }
        let reach = match options.early_stopping {
            // A longer sentence is divided by more: the best that a sum, which can only fall, can come to.
            EarlyStopping::Never if options.length_penalty > 0.0 => self.limit,
            _ => length,
        };
        let worst = self.finished[options.beam - 1].score;
        self.next[0].total / options.length_penalty_of(reach) <= worst
    }
}

/// What is told of a hypothesis over a source of this many tokens.
fn hypothesis(options: &SearchOptions, running: &Running, ended: bool, source: usize) -> Hypothesis {
    let Running { tokens, log_p, total, attention, .. } = running;
    Hypothesis {
        ids: tokens[..tokens.len() - usize::from(ended)].to_vec(),
        score: total / options.length_penalty_of(tokens.len().max(1)),
        log_probability: *total,
        token_log_probabilities: log_p.clone(),
        ended,
        attention: attention.chunks_exact(source.max(1)).map(shares).collect(),
    }
}

/// The row with a sum of one.
fn shares(row: &[f32]) -> Vec<f32> {
    let sum: f32 = row.iter().sum();
    row.iter().map(|x| x / sum).collect()
}
