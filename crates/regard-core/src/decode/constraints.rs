//! Phrases that a translation must contain: lexically constrained beam search by dynamic beam
//! allocation (Post and Vilar, 2018).
//!
//! Each hypothesis tracks how much of its constraints it has met. The slots of a beam are divided
//! among *banks*, groups of hypotheses that have met equally many constraint tokens, so that a
//! hypothesis that has just begun a phrase competes with others that have, not with those that
//! still defer it. Each hypothesis may always continue with the next token of a phrase, however
//! unlikely that is, and ends only when it contains all phrases.

use super::SearchOptions;
use super::hypotheses::{Beam, Extension, best_first};

/// A phrase that a translation must contain, in one of several forms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraint {
    /// Token sequences, one of which must occur.
    pub forms: Vec<Vec<u32>>,
}

impl Constraint {
    /// The number of tokens of its longest form.
    fn longest(&self) -> usize {
        self.forms.iter().map(Vec::len).max().unwrap_or(0)
    }
}

/// The maximum number of constraints per sentence, and of their tokens; further ones are ignored.
const MAX_CONSTRAINTS: usize = 64;
const MAX_TOKENS: usize = 40;

/// The maximum number of hypotheses in a constrained beam.
const MAX_BEAM: usize = 64;

/// The constraints of one sentence.
#[derive(Clone, Debug, Default)]
pub(super) struct Constraints(Vec<Constraint>);

/// How much of the constraints a hypothesis has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// One bit for each constraint.
    met: u64,
    /// The constraint that its last tokens begin, and the number of these tokens.
    open: Option<(usize, usize)>,
}

impl Constraints {
    /// The non-empty constraints, as far as a beam can hold them.
    pub(super) fn new(constraints: &[Constraint]) -> Self {
        let mut tokens = 0;
        let mut kept = Vec::new();
        for constraint in constraints {
            let forms: Vec<_> = constraint.forms.iter().filter(|form| !form.is_empty()).cloned().collect();
            let constraint = Constraint { forms };
            tokens += constraint.longest();
            if !constraint.forms.is_empty() && tokens <= MAX_TOKENS && kept.len() < MAX_CONSTRAINTS {
                kept.push(constraint);
            }
        }
        Constraints(kept)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The constraints that are not met, with their indices.
    fn unmet(&self, progress: Progress) -> impl Iterator<Item = (usize, &Constraint)> {
        self.0.iter().enumerate().filter(move |(i, _)| progress.met & (1 << i) == 0)
    }

    fn all_met(&self, progress: Progress) -> bool {
        self.unmet(progress).next().is_none()
    }

    /// The forms that the last tokens begin.
    fn open_forms<'a>(
        &'a self,
        tokens: &'a [u32],
        open: Option<(usize, usize)>,
    ) -> impl Iterator<Item = &'a [u32]> {
        let open = open.and_then(|(i, length)| Some((self.0.get(i)?, length)));
        open.into_iter().flat_map(move |(constraint, length)| {
            let begun = tokens.len().checked_sub(length).map(|at| &tokens[at..]);
            let forms = constraint.forms.iter().filter(move |form| form.len() > length);
            forms.filter(move |form| Some(&form[..length]) == begun).map(Vec::as_slice)
        })
    }

    /// The progress of a hypothesis with these tokens after it is extended by `token`.
    fn advance(&self, progress: Progress, tokens: &[u32], token: u32) -> Progress {
        if let Some((i, length)) = progress.open {
            let mut grows = false;
            for form in self.open_forms(tokens, progress.open).filter(|form| form[length] == token) {
                if form.len() == length + 1 {
                    return Progress { met: progress.met | 1 << i, open: None };
                }
                grows = true;
            }
            if grows {
                return Progress { open: Some((i, length + 1)), ..progress };
            }
        }
        let mut open = None;
        for (i, constraint) in self.unmet(progress) {
            for form in constraint.forms.iter().filter(|form| form[0] == token) {
                if form.len() == 1 {
                    return Progress { met: progress.met | 1 << i, open: None };
                }
                open = open.or(Some((i, 1)));
            }
        }
        Progress { open, ..progress }
    }

    /// The tokens that begin a phrase or continue the current one.
    pub(super) fn next_tokens(&self, progress: Progress, tokens: &[u32]) -> Vec<u32> {
        let mut next: Vec<u32> = match progress.open {
            Some((_, length)) => self.open_forms(tokens, progress.open).map(|form| form[length]).collect(),
            None => self.unmet(progress).flat_map(|(_, c)| c.forms.iter().map(|form| form[0])).collect(),
        };
        next.sort_unstable();
        next.dedup();
        next
    }

    /// The bank of a hypothesis: the number of constraint tokens that it contains.
    fn bank(&self, progress: Progress) -> usize {
        let has = |i: &usize| progress.met & (1 << i) != 0;
        let met = (0..self.0.len()).filter(has).map(|i| self.0[i].longest());
        met.sum::<usize>() + progress.open.map_or(0, |(_, length)| length)
    }

    /// The number of banks.
    fn banks(&self) -> usize {
        1 + self.0.iter().map(Constraint::longest).sum::<usize>()
    }
}

impl Beam {
    /// Constrained beam search: the banks take turns, the most complete first.
    pub(super) fn step_constrained(&mut self, options: &SearchOptions, extensions: &mut [Extension]) {
        let width = options.beam.max(2 * self.constraints.banks()).min(MAX_BEAM.max(options.beam));
        extensions.sort_unstable_by(best_first);
        let last = self.running[0].tokens.len() + 1 >= self.limit;
        let mut banks: Vec<Vec<(Extension, Progress)>> = vec![Vec::new(); self.constraints.banks()];
        for &extension in extensions.iter() {
            let running = &self.running[extension.from];
            let (before, ends) = (running.progress, extension.token == options.end);
            if ends && !last && !self.constraints.all_met(before) {
                continue;
            }
            let progress = match ends {
                true => before,
                false => self.constraints.advance(before, &running.tokens, extension.token),
            };
            banks[self.constraints.bank(progress)].push((extension, progress));
        }
        if last {
            // At the length limit, accept an incomplete hypothesis only if there is nothing better.
            let most = banks.iter().rposition(|bank| !bank.is_empty()).unwrap_or(0);
            let enough = most + 1 == banks.len() || self.finished.is_empty();
            for (i, bank) in banks.iter_mut().enumerate() {
                if i != most || !enough {
                    bank.clear();
                }
            }
        }
        let mut turns: Vec<_> = banks.into_iter().rev().map(Vec::into_iter).collect();
        let mut taken = 0;
        while taken < width {
            let before = taken;
            for bank in &mut turns {
                let Some((extension, progress)) = bank.next().filter(|_| taken < width) else { continue };
                taken += 1;
                match extension.token == options.end || last {
                    true => self.finish(options, extension),
                    false => self.grow(extension, progress),
                }
            }
            if taken == before {
                break;
            }
        }
        self.finished.sort_by(|a, b| b.score.total_cmp(&a.score));
        self.done = last || self.next.is_empty() || self.is_decided(options);
        self.advance();
    }

    /// Whether enough hypotheses have ended and no running one is better.
    fn is_decided(&self, options: &SearchOptions) -> bool {
        let scores = self.next.iter().map(|next| next.total / options.length_penalty_of(next.tokens.len()));
        let best_running = scores.fold(f32::NEG_INFINITY, f32::max);
        let last_wanted = self.finished.get(options.nbest.max(1) - 1);
        last_wanted.is_some_and(|last| best_running <= last.score)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraints(list: &[&[&[u32]]]) -> Constraints {
        let constraint =
            |forms: &&[&[u32]]| Constraint { forms: forms.iter().map(|form| form.to_vec()).collect() };
        Constraints::new(&list.iter().map(constraint).collect::<Vec<_>>())
    }

    fn after(constraints: &Constraints, tokens: &[u32]) -> Progress {
        let mut progress = Progress::default();
        for (i, &token) in tokens.iter().enumerate() {
            progress = constraints.advance(progress, &tokens[..i], token);
        }
        progress
    }

    #[test]
    fn phrases_are_followed_token_by_token() {
        let of = constraints(&[&[&[5, 6], &[5, 7, 8]], &[&[9]], &[&[]]]);
        assert_eq!(of.banks(), 5);
        let next = |tokens: &[u32]| of.next_tokens(after(&of, tokens), tokens);
        let bank = |tokens: &[u32]| of.bank(after(&of, tokens));
        assert_eq!(next(&[]), [5, 9]);
        assert_eq!(next(&[1, 5]), [6, 7]);
        assert_eq!(next(&[5, 7]), [8]);
        // Another token abandons the phrase, and may begin another.
        assert_eq!(next(&[5, 1]), [5, 9]);
        assert_eq!(next(&[5, 9]), [5]);
        assert_eq!([bank(&[]), bank(&[5]), bank(&[5, 7]), bank(&[5, 6]), bank(&[5, 6, 9])], [0, 1, 2, 3, 4]);
        assert!(of.all_met(after(&of, &[9, 5, 7, 8])) && !of.all_met(after(&of, &[5, 7, 9, 8])));
        assert!(next(&[9, 1, 5, 6]).is_empty());
    }

    #[test]
    fn the_same_phrase_twice_is_met_twice() {
        let of = constraints(&[&[&[5]], &[&[5]]]);
        assert!(!of.all_met(after(&of, &[5])) && of.all_met(after(&of, &[5, 5])));
    }

    #[test]
    fn a_beam_holds_so_many_tokens() {
        let long: Vec<Constraint> = (0..100).map(|i| Constraint { forms: vec![vec![i; 3]] }).collect();
        assert_eq!(Constraints::new(&long).0.len(), MAX_TOKENS / 3);
        let short: Vec<Constraint> = (0..100).map(|i| Constraint { forms: vec![vec![i]] }).collect();
        assert!(Constraints::new(&short).0.len() <= MAX_CONSTRAINTS);
    }
}
