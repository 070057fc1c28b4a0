//! Logits processors: they change the log-probabilities of the next token before the search
//! chooses, in the order of `transformers`.
//!
//! Most processors only ban words. While all of them do, for all hypotheses, whole rows of
//! log-probabilities are not needed: the scorer gets the lists of banned words and leaves them out
//! while it looks for the best ones. So each processor says two things about a hypothesis: which
//! words it bans, and whether that is all. Processors at the end of the list mask what the others
//! ban.

use super::SearchOptions;
use super::hypotheses::{Beam, running};
use super::lists::Lists;
use super::normalization::{Normalization, renormalize};
use std::fmt::Debug;
use std::ops::ControlFlow;

/// A hypothesis whose next token is to be chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context<'a> {
    /// Its tokens so far, without the start.
    pub(super) tokens: &'a [u32],
    /// The most tokens it may have, the end included.
    pub(super) limit: usize,
    /// The words that the processors ban; none while they are still being asked.
    pub(super) banned: &'a [u32],
}

/// Changes which tokens can come next, or how likely they are.
pub(super) trait LogitsProcessor: Debug {
    /// Adds the words that must not come next.
    fn ban(&self, _: Context<'_>, _banned: &mut Vec<u32>) {}

    /// Whether banning is all that it does to this hypothesis.
    fn only_bans(&self, _: Context<'_>) -> bool {
        true
    }

    /// Changes a row of log-probabilities, one for each word. After a break nothing else changes
    /// the row.
    fn process(&self, _: Context<'_>, _log_p: &mut [f32]) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Makes tokens that are there already less likely (Keskar et al., 2019).
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

/// Makes logits into log-probabilities.
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

/// Begins with given tokens, which cost what the model says.
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

/// The last possible token is the end, at no cost.
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

/// The first token, at no cost.
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

/// Words that never come.
#[derive(Debug)]
struct BannedWords(Vec<u32>);

impl LogitsProcessor for BannedWords {
    fn ban(&self, _: Context<'_>, banned: &mut Vec<u32>) {
        banned.extend_from_slice(&self.0);
    }
}

/// No n-gram of this length occurs twice.
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

/// Sequences of tokens that never come: where all but the last have come, that one is banned.
#[derive(Debug)]
struct BannedSequences {
    sequences: Vec<Vec<u32>>,
    /// What the decoder starts with is a token too.
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

/// No end before this many tokens.
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

/// Sets the words that the processors ban to −∞.
#[derive(Debug)]
struct MaskBanned;

impl LogitsProcessor for MaskBanned {
    fn process(&self, at: Context<'_>, log_p: &mut [f32]) -> ControlFlow<()> {
        mask(at.banned, log_p);
        ControlFlow::Continue(())
    }
}

/// Makes the probabilities that bans leave sum to one again.
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

/// The processors of a search, and what they ask of the step at hand. By default there are none.
#[derive(Debug, Default)]
pub(super) struct LogitsProcessors {
    list: Vec<Box<dyn LogitsProcessor>>,
    /// For each hypothesis of the step: the words that it must not take.
    bans: Lists<u32>,
    /// For each hypothesis of the step: whether the processors do nothing but ban.
    only_bans: Vec<bool>,
}

impl LogitsProcessors {
    /// Those of a search; `start` is what the decoder starts with, `pad` the last word if it is
    /// padding.
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

    /// Finds out what the step asks of each running hypothesis.
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

    /// Whether the processors do nothing but ban words for this hypothesis.
    pub(super) fn only_ban(&self, row: usize) -> bool {
        self.only_bans[row]
    }

    /// Whether that is so of all hypotheses.
    pub(super) fn all_only_ban(&self) -> bool {
        self.only_bans.iter().all(|&only| only)
    }

    /// The words that the hypotheses must not take.
    pub(super) fn bans(&self) -> &Lists<u32> {
        &self.bans
    }

    /// Takes the log-probabilities of hypothesis `row`, which has these tokens, through the list.
    pub(super) fn process(&self, row: usize, tokens: &[u32], limit: usize, log_p: &mut [f32]) {
        let at = Context { tokens, limit, banned: self.bans.of(row) };
        // A processor that breaks has forced a token: nothing else changes the row.
        let _ = self.list.iter().try_for_each(|p| p.process(at, log_p));
    }
}

/// Leaves one token with this log-probability.
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
