//! Logits processors: they modify the log-probabilities of the next token before the search
//! chooses, in the order of `transformers`.
//!
//! Most processors only ban words. As long as that is true for all processors and hypotheses, whole
//! rows of log-probabilities are not needed: the scorer takes the lists of banned words and skips
//! them while it looks for the best ones. So each processor answers two questions about a
//! hypothesis: which words it bans, and whether that is all it does. A processor at the end of the
//! list masks what the others ban.

use super::SearchOptions;
use super::hypotheses::{Beam, running};
use super::normalization::{Normalization, renormalize};
use super::ragged_vec::RaggedVec;
use std::fmt::Debug;
use std::ops::ControlFlow;

/// A hypothesis whose next token is to be chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    /// Its tokens so far, without the start.
    pub(super) tokens: &'a [u32],
    /// The maximum number of tokens, including the end.
    pub(super) limit: usize,
    /// The words that the processors ban; empty while they are being collected.
    pub(super) banned: &'a [u32],
}

/// Modifies which tokens can come next, or how likely they are.
pub(super) trait LogitsProcessor: Debug {
    /// Appends the words that must not come next.
    fn ban(&self, _: Context<'_>, _banned: &mut Vec<u32>) {}

    /// Whether it only bans words for this hypothesis.
    fn only_bans(&self, _: Context<'_>) -> bool {
        true
    }

    /// Modifies a row of log-probabilities, one for each word. After a `Break`, no other processor
    /// changes the row.
    fn process(&self, _: Context<'_>, _log_p: &mut [f32]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Makes tokens that have already occurred less likely (Keskar et al., 2019).
#[derive(Debug)]
struct RepetitionPenalty(f32);

impl LogitsProcessor for RepetitionPenalty {
    fn only_bans(&self, _: Context<'_>) -> bool {
        false
    }

    fn process(&self, at: Context<'_>, log_p: &mut [f32]) -> ControlFlow<()> {
        for (i, id) in at.tokens.iter().enumerate() {
            if let Some(p) = log_p.get_mut(*id as usize).filter(|_| !at.tokens[..i].contains(id)) {
                *p = if *p < 0.0 { *p * self.0 } else { *p / self.0 };
            }
        }
        ControlFlow::Continue(())
    }
}

/// Turns logits into log-probabilities.
#[derive(Debug)]
struct LogSoftmax;

impl LogitsProcessor for LogSoftmax {
    fn only_bans(&self, _: Context<'_>) -> bool {
        false
    }

    fn process(&self, _: Context<'_>, logits: &mut [f32]) -> ControlFlow<()> {
        renormalize(logits);
        ControlFlow::Continue(())
    }
}

/// Forces given first tokens, at the log-probability that the model assigns.
#[derive(Debug)]
struct ForcedPrefix(Vec<u32>);

impl LogitsProcessor for ForcedPrefix {
    fn only_bans(&self, at: Context<'_>) -> bool {
        at.tokens.len() >= self.0.len()
    }

    fn process(&self, at: Context<'_>, log_p: &mut [f32]) -> ControlFlow<()> {
        let Some(&token) = self.0.get(at.tokens.len()) else { return ControlFlow::Continue(()) };
        let p = log_p.get(token as usize).copied().unwrap_or(f32::NEG_INFINITY);
        force(token, p, log_p)
    }
}

/// Forces the end token at the length limit, with log-probability 0.
#[derive(Debug)]
struct ForcedEnd(u32);

impl LogitsProcessor for ForcedEnd {
    fn only_bans(&self, at: Context<'_>) -> bool {
        at.tokens.len() + 1 != at.limit
    }

    fn process(&self, at: Context<'_>, log_p: &mut [f32]) -> ControlFlow<()> {
        if self.only_bans(at) { ControlFlow::Continue(()) } else { force(self.0, 0.0, log_p) }
    }
}

/// Forces the first token, with log-probability 0.
#[derive(Debug)]
struct ForcedFirst(u32);

impl LogitsProcessor for ForcedFirst {
    fn only_bans(&self, at: Context<'_>) -> bool {
        !at.tokens.is_empty()
    }

    fn process(&self, at: Context<'_>, log_p: &mut [f32]) -> ControlFlow<()> {
        if self.only_bans(at) { ControlFlow::Continue(()) } else { force(self.0, 0.0, log_p) }
    }
}

/// Words that are never generated.
#[derive(Debug)]
struct BannedWords(Vec<u32>);

impl LogitsProcessor for BannedWords {
    fn ban(&self, _: Context<'_>, banned: &mut Vec<u32>) {
        banned.extend_from_slice(&self.0);
    }
}

/// No n-gram of this order occurs twice.
#[derive(Debug)]
struct NoRepeatNgram(usize);

impl LogitsProcessor for NoRepeatNgram {
    fn ban(&self, Context { tokens, .. }: Context<'_>, banned: &mut Vec<u32>) {
        let size = self.0;
        if tokens.len() + 1 >= size {
            let last = &tokens[tokens.len() + 1 - size..];
            let again = tokens.windows(size).filter(|window| window[..size - 1] == *last);
            banned.extend(again.map(|window| window[size - 1]));
        }
    }
}

/// Token sequences that are never generated: after all tokens but the last, the last is banned.
#[derive(Debug)]
struct BannedSequences {
    sequences: Vec<Vec<u32>>,
    /// The decoder's start token counts as a token.
    start: u32,
}

impl LogitsProcessor for BannedSequences {
    fn ban(&self, Context { tokens, .. }: Context<'_>, banned: &mut Vec<u32>) {
        let has_come = |before: &[u32]| match before.split_first() {
            Some((first, rest)) if before.len() == tokens.len() + 1 => *first == self.start && rest == tokens,
            _ => tokens.ends_with(before),
        };
        let split = self.sequences.iter().filter_map(|sequence| sequence.split_last());
        banned.extend(split.filter(|(_, before)| has_come(before)).map(|(last, _)| *last));
    }
}

/// No end token before this many tokens.
#[derive(Debug)]
struct MinLength {
    min_length: usize,
    end: u32,
}

impl LogitsProcessor for MinLength {
    fn ban(&self, at: Context<'_>, banned: &mut Vec<u32>) {
        if at.tokens.len() < self.min_length {
            banned.push(self.end);
        }
    }
}

/// Sets banned words to −∞.
#[derive(Debug)]
struct MaskBanned;

impl LogitsProcessor for MaskBanned {
    fn process(&self, at: Context<'_>, log_p: &mut [f32]) -> ControlFlow<()> {
        mask(at.banned, log_p);
        ControlFlow::Continue(())
    }
}

/// Renormalises the remaining probabilities after bans.
#[derive(Debug)]
struct Renormalize;

impl LogitsProcessor for Renormalize {
    fn process(&self, at: Context<'_>, log_p: &mut [f32]) -> ControlFlow<()> {
        if !at.banned.is_empty() {
            renormalize(log_p);
        }
        ControlFlow::Continue(())
    }
}

/// The processors of a search, and their bans in the current step. By default there are none.
#[derive(Debug, Default)]
pub(super) struct LogitsProcessors {
    list: Vec<Box<dyn LogitsProcessor>>,
    /// For each hypothesis of the step, its banned words.
    bans: RaggedVec<u32>,
    /// For each hypothesis of the step, whether the processors only ban words.
    only_bans: Vec<bool>,
}

impl LogitsProcessors {
    /// The processors of a search; `start` is the decoder's start token, `pad` the last word if it
    /// is padding.
    pub(super) fn new(
        options: &SearchOptions,
        normalization: Normalization,
        start: u32,
        pad: Option<u32>,
    ) -> Self {
        let mut list: Vec<Box<dyn LogitsProcessor>> = Vec::new();
        if options.repetition_penalty != 1.0 {
            list.push(Box::new(RepetitionPenalty(options.repetition_penalty)));
        }
        if normalization.on_logits {
            list.push(Box::new(LogSoftmax));
        }
        if !options.prefix.is_empty() {
            list.push(Box::new(ForcedPrefix(options.prefix.clone())));
        }
        if options.forced_end {
            list.push(Box::new(ForcedEnd(options.end)));
        }
        if let Some(first) = options.forced_first {
            list.push(Box::new(ForcedFirst(first)));
        }
        let pad = pad.filter(|_| normalization.with_padding);
        let banned: Vec<u32> = options.banned.iter().copied().chain(pad).collect();
        if !banned.is_empty() {
            list.push(Box::new(BannedWords(banned)));
        }
        if options.no_repeat_ngram > 0 {
            list.push(Box::new(NoRepeatNgram(options.no_repeat_ngram)));
        }
        if !options.banned_sequences.is_empty() {
            list.push(Box::new(BannedSequences { sequences: options.banned_sequences.clone(), start }));
        }
        if options.min_length > 0 {
            list.push(Box::new(MinLength { min_length: options.min_length, end: options.end }));
        }
        list.push(Box::new(MaskBanned));
        if normalization.after_bans {
            list.push(Box::new(Renormalize));
        }
        LogitsProcessors { list, ..LogitsProcessors::default() }
    }

    /// Collects the bans for each running hypothesis.
    pub(super) fn begin_step(&mut self, beams: &[Beam]) {
        self.bans.clear();
        self.only_bans.clear();
        for (_, beam, hypothesis) in running(beams) {
            self.add(&hypothesis.tokens, beam.limit);
        }
    }

    fn add(&mut self, tokens: &[u32], limit: usize) {
        let at = Context { tokens, limit, banned: &[] };
        let LogitsProcessors { list, bans, .. } = self;
        bans.push_with(|banned| list.iter().for_each(|p| p.ban(at, banned)));
        self.only_bans.push(list.iter().all(|p| p.only_bans(at)));
    }

    /// Whether the processors only ban words for this hypothesis.
    pub(super) fn only_ban(&self, row: usize) -> bool {
        self.only_bans[row]
    }

    /// Whether the processors only ban words for all hypotheses.
    pub(super) fn all_only_ban(&self) -> bool {
        self.only_bans.iter().all(|&only| only)
    }

    /// The banned words of each hypothesis.
    pub(super) fn bans(&self) -> &RaggedVec<u32> {
        &self.bans
    }

    /// Applies the processors to the log-probabilities of hypothesis `row`, which has these tokens.
    pub(super) fn process(&self, row: usize, tokens: &[u32], limit: usize, log_p: &mut [f32]) {
        let at = Context { tokens, limit, banned: self.bans.row(row) };
        // `Break` means that a processor has forced a token.
        let _ = self.list.iter().try_for_each(|p| p.process(at, log_p));
    }
}

/// Leaves only one token, with this log-probability.
fn force(token: u32, p: f32, log_p: &mut [f32]) -> ControlFlow<()> {
    log_p.fill(f32::NEG_INFINITY);
    if let Some(forced) = log_p.get_mut(token as usize) {
        *forced = p;
    }
    ControlFlow::Break(())
}

/// Sets the words to −∞.
pub(super) fn mask(words: &[u32], log_p: &mut [f32]) {
    for &id in words {
        if let Some(p) = log_p.get_mut(id as usize) {
            *p = f32::NEG_INFINITY;
        }
    }
}

#[cfg(test)]
mod tests;
