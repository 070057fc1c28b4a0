//! Text to text: splits lines that are too long, encodes, searches, decodes and joins the parts.
//!
//! ```no_run
//! use regard_core::{Isa, translator::Translator};
//! # fn main() -> regard_core::Result<()> {
//! let translator = Translator::load(&["model"], Isa::best(), 2)?;
//! let lines = translator.translate(&["A dog runs.", "Two men talk."], &translator.options())?;
//! println!("{}", lines[0].best().text);
//! # Ok(())
//! # }
//! ```

mod phrases;
mod substitutes;
mod terms;

pub use phrases::Phrase;
pub use terms::{Annotation, LineTerms};

use crate::decode::{
    Ablation, BeamSteps, Constraint, Engine, Hypothesis, SearchObserver, SearchOptions, Tracer,
    attention_maps, beam_steps, score_pairs, search_constrained,
};
use crate::formats::Model;
use crate::model::AttentionMap;
use crate::parallel;
use crate::text::{AnnotatedIds, Tokenizer, sentence_ranges};
use crate::{DType, Error, Isa, Result};
use phrases::WholeWords;
use std::borrow::Cow;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use substitutes::Substitutes;

/// The number of sentences per batch with a shortlist, where each sentence has its own words: those
/// of more sentences do not fit the caches of two cores that work side by side.
const SHORTLISTED: usize = 16;

/// One or several models with the same vocabulary, ready to translate; threads can share it.
#[derive(Debug)]
pub struct Translator {
    /// Their weights are in the engines.
    models: Vec<Model>,
    engines: Vec<Arc<Engine>>,
    threads: usize,
    longest: usize,
    /// Created on first use.
    whole_words: OnceLock<WholeWords>,
    /// Created on first use.
    substitutes: OnceLock<Substitutes>,
}

/// One of the translations of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The text: one line without tabs, whatever the model generates.
    pub text: String,
    /// The score by which it is ranked; for a line that was split, the mean of its parts.
    pub score: f32,
    /// The tokens that the model generated.
    pub tokens: Vec<String>,
    /// The log-probability of each token and of the end.
    pub token_scores: Vec<f32>,
    /// Pairs of words, counted from 0: (source, target); empty unless the search options request
    /// attention.
    pub alignment: Vec<(usize, usize)>,
}

/// The translations of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// Best first; none for an empty line.
    pub candidates: Vec<Candidate>,
    /// The source pieces.
    pub source: Vec<String>,
    /// The number of parts in which the line was translated.
    pub parts: usize,
    /// The number of parts that end inside a sentence.
    pub cut: usize,
}

impl Line {
    /// The best translation; an empty text for an empty line.
    pub fn best(&self) -> Candidate {
        self.candidates.first().cloned().unwrap_or(Candidate {
            text: String::new(),
            score: 0.0,
            tokens: Vec::new(),
            token_scores: Vec::new(),
            alignment: Vec::new(),
        })
    }
}

/// A part of a line.
struct Part {
    ids: Vec<u32>,
    /// Whether it ends in the middle of a sentence.
    cut: bool,
    /// The annotated ids, if the part contains translations of terms.
    annotated: Option<AnnotatedIds>,
}

impl Part {
    fn new(ids: Vec<u32>, cut: bool) -> Self {
        Part { ids, cut, annotated: None }
    }

    /// The input of the model.
    fn read(&self) -> &[u32] {
        self.annotated.as_ref().map_or(&self.ids, |annotated| &annotated.ids)
    }
}

/// Observes the translation of lines; several threads call it concurrently.
pub trait LineObserver: Sync {
    /// Whether line `index` is still wanted; if not, it is returned unfinished.
    fn is_active(&self, index: usize) -> bool;

    /// Whether [`LineObserver::on_progress`] should be called for line `index`.
    fn follows(&self, index: usize) -> bool;

    /// Receives the text of part `part` of line `index` so far; a line has one part unless it is
    /// longer than the model's limit.
    fn on_progress(&self, index: usize, part: usize, text: &str);
}

/// Never cancels and ignores progress.
impl LineObserver for () {
    fn is_active(&self, _: usize) -> bool {
        true
    }

    fn follows(&self, _: usize) -> bool {
        false
    }

    fn on_progress(&self, _: usize, _: usize, _: &str) {}
}

/// Maps the part indices of the search to lines.
struct PartObserver<'a> {
    places: Vec<(usize, usize)>,
    translator: &'a Translator,
    observer: &'a dyn LineObserver,
}

impl SearchObserver for PartObserver<'_> {
    fn is_active(&self, index: usize) -> bool {
        self.observer.is_active(self.places[index].0)
    }

    fn on_progress(&self, index: usize, ids: &[u32]) {
        let (line, part) = self.places[index];
        if self.observer.follows(line) {
            self.observer.on_progress(line, part, &self.translator.decode(ids));
        }
    }
}

impl Translator {
    /// Loads one model, or several as an ensemble, each in the number format it is stored in.
    pub fn load<P: AsRef<Path>>(folders: &[P], isa: Isa, threads: usize) -> Result<Self> {
        Self::load_as(folders, None, isa, threads)
    }

    /// The same with matmuls in `dtype`: `Int8`, or `F32` for every other format.
    pub fn load_as<P: AsRef<Path>>(
        folders: &[P],
        dtype: Option<DType>,
        isa: Isa,
        threads: usize,
    ) -> Result<Self> {
        let loaded = folders.iter().map(|folder| Model::load_engine(folder.as_ref(), dtype, isa));
        let shared = |(model, engine)| (model, Arc::new(engine));
        let (models, engines) = loaded.collect::<Result<Vec<_>>>()?.into_iter().map(shared).unzip();
        Self::with_engines(models, engines, threads)
    }

    /// Combines several translators with the same vocabulary; uses as many cores as the first.
    pub fn ensemble(translators: Vec<Translator>) -> Result<Self> {
        let threads = translators.first().map_or(1, Translator::threads);
        let (mut models, mut engines) = (Vec::new(), Vec::new());
        for translator in translators {
            models.extend(translator.models);
            engines.extend(translator.engines);
        }
        Self::with_engines(models, engines, threads)
    }

    /// Translates with models that are already loaded.
    pub fn new(mut models: Vec<Model>, dtype: DType, isa: Isa, threads: usize) -> Result<Self> {
        let engine = |model: &mut Model| {
            let weights = std::mem::take(&mut model.weights);
            Arc::new(Engine::new(&model.transformer, &weights, dtype, isa))
        };
        let engines = models.iter_mut().map(engine).collect();
        Self::with_engines(models, engines, threads)
    }

    fn with_engines(models: Vec<Model>, engines: Vec<Arc<Engine>>, threads: usize) -> Result<Self> {
        let Some(first) = models.first() else {
            return Err(Error::Input {
                operation: "translator",
                message: "no model; at least one is needed".into(),
            });
        };
        let longest = first.transformer.config().max_positions;
        for other in &models[1..] {
            let (ours, theirs) = (&first.tokenizers, &other.tokenizers);
            let is_same = ours.source().is_same_as(theirs.source());
            if !is_same || !ours.target().is_same_as(theirs.target()) {
                let message = "the models of an ensemble have different tokenizers".into();
                return Err(Error::Input { operation: "translator", message });
            }
        }
        if threads == 0 {
            return Err(Error::config("threads", "0 is too few, at least 1 is needed"));
        }
        Ok(Translator {
            models,
            engines,
            threads,
            longest,
            whole_words: OnceLock::new(),
            substitutes: OnceLock::new(),
        })
    }

    /// A translator from one language of its models to another, which shares the weights in memory;
    /// a language that is not given stays unchanged. All spellings of codes are accepted
    /// ([`languages`](crate::languages)).
    pub fn for_languages(&self, source: Option<&str>, target: Option<&str>) -> Result<Self> {
        let models = self.models.iter().map(|model| model.for_languages(source, target));
        let models = models.collect::<Result<Vec<_>>>()?;
        Self::with_engines(models, self.engines.clone(), self.threads)
    }

    /// Checks that the languages of a multilingual model are set.
    fn check_languages(&self) -> Result<()> {
        let Some(tokens) = self.model().tokenizers.languages() else { return Ok(()) };
        let languages = &self.model().languages;
        let missing = [
            ("source_lang", tokens.needs_source() && languages.source.is_none()),
            ("target_lang", languages.target.is_none()),
        ];
        match missing.iter().find(|(_, missing)| *missing) {
            Some((field, _)) => {
                let count = tokens.list.len();
                let message =
                    format!("is not known; the model has {count} languages, and must be told which");
                Err(Error::config(*field, message))
            }
            None => Ok(()),
        }
    }

    /// The first model, without its weights, which are packed.
    pub fn model(&self) -> &Model {
        &self.models[0]
    }

    /// The unpacked weights of the first model; from int8, the dequantized values.
    pub fn weights(&self) -> Vec<f32> {
        self.engines[0].weights()
    }

    /// All attention maps of the first model for `source` and a given `target`, ids with their end
    /// token.
    pub fn attention_maps(&self, source: &[u32], target: &[u32]) -> Result<Vec<AttentionMap>> {
        attention_maps(&self.engines[0], source, target)
    }

    /// Traces a sentence, ids with the end token, through the first model, parts of which may be
    /// switched off; `layer` is the layer to record.
    pub fn trace(&self, source: &[u32], ablation: Ablation, layer: usize) -> Result<Tracer<'_>> {
        Tracer::new(&self.engines[0], source, ablation, layer)
    }

    /// The beam search of a sentence, ids with the end token, step by step; stops when `wanted`
    /// returns false.
    pub fn beam_steps(
        &self,
        source: &[u32],
        options: &SearchOptions,
        wanted: &(dyn Fn() -> bool + Sync),
    ) -> Result<BeamSteps> {
        beam_steps(&self.engines.iter().map(Arc::as_ref).collect::<Vec<_>>(), source, options, wanted)
    }

    /// The instruction set it runs on.
    pub fn isa(&self) -> Isa {
        self.engines[0].isa()
    }

    /// The number format of the matmuls: `F32` or `Int8`.
    pub fn dtype(&self) -> DType {
        self.engines[0].dtype()
    }

    /// The number of cores it uses.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The search settings of the model's `generation_config.json`, with defaults for missing ones.
    pub fn options(&self) -> SearchOptions {
        let generation = &self.model().generation;
        let eos = self.target().eos();
        let mut options = SearchOptions { end: eos, ..SearchOptions::default() };
        if let Some(beam) = generation.num_beams {
            options.beam = beam;
        }
        if let Some(penalty) = generation.length_penalty {
            options.length_penalty = penalty;
        }
        // Their lengths include the start token; those of new tokens, which take precedence, do
        // not.
        let most = generation.max_length.map(|n| n.saturating_sub(1).max(1));
        options.max_length = generation.max_new_tokens.or(most);
        let least = generation.min_length.map(|n| n.saturating_sub(1));
        options.min_length = least.max(generation.min_new_tokens).unwrap_or(0);
        if let Some(n) = generation.no_repeat_ngram_size {
            options.no_repeat_ngram = n;
        }
        if let Some(penalty) = generation.repetition_penalty {
            options.repetition_penalty = penalty;
        }
        options.length_factor = generation.max_length_factor;
        options.rule = generation.beam_rule.unwrap_or_default();
        options.shortlist = self.model().shortlist.clone();
        if options.shortlist.is_some() {
            options.batch = SHORTLISTED;
        }
        if let Some(rule) = generation.early_stopping {
            options.early_stopping = rule;
        }
        if let Some(renormalize) = generation.renormalize_logits {
            options.renormalize = renormalize;
        }
        options.forced_first = self.target().prefix_ids().first().copied().or(generation.forced_bos_token_id);
        options.forced_end = generation.forced_eos_token_id == Some(eos);
        let pad = self.model().transformer.config().target_pad();
        for word in generation.bad_words_ids.iter().flatten() {
            match word[..] {
                [] => {}
                // Padding is never generated anyway, and the end cannot be banned.
                [id] if Some(id) == pad || id == eos => {}
                [id] => options.banned.push(id),
                _ => options.banned_sequences.push(word.clone()),
            }
        }
        options
    }

    /// The tokenizer of the target side.
    pub fn target(&self) -> &Tokenizer {
        self.model().tokenizers.target()
    }

    /// The tokenizer of the source side.
    pub fn source(&self) -> &Tokenizer {
        self.model().tokenizers.source()
    }

    /// The text of target tokens, as one line without tabs: a vocabulary with byte fallback can
    /// spell any character.
    fn decode(&self, ids: &[u32]) -> String {
        let text = self.target().decode(ids);
        let breaks = |c: char| c == '\t' || is_line_break(c);
        if text.contains(breaks) { text.replace(breaks, " ") } else { text }
    }

    /// Translates each line; returns one result per line.
    pub fn translate<T: AsRef<str> + Sync>(&self, lines: &[T], options: &SearchOptions) -> Result<Vec<Line>> {
        self.translate_observed(lines, options, self.threads, &())
    }

    /// The same on `threads` cores, observed by `observer`, which can cancel lines and sees their
    /// progress.
    pub fn translate_observed<T: AsRef<str> + Sync>(
        &self,
        lines: &[T],
        options: &SearchOptions,
        threads: usize,
        observer: &dyn LineObserver,
    ) -> Result<Vec<Line>> {
        self.translate_with_terms(lines, &[], options, threads, observer)
    }

    fn translate_constrained<T: AsRef<str> + Sync>(
        &self,
        lines: &[T],
        terms: &[LineTerms],
        constraints: &[Vec<Constraint>],
        options: &SearchOptions,
        threads: usize,
        observer: &dyn LineObserver,
    ) -> Result<Vec<Line>> {
        self.check_languages()?;
        let numbered: Vec<(usize, &T)> = lines.iter().enumerate().collect();
        let parts: Vec<Vec<Part>> = parallel::map(threads, &numbered, |(i, line)| {
            let parts = self.split(&self.readable(line.as_ref(), options))?;
            match terms.get(*i) {
                Some(terms) => self.annotate(parts, line.as_ref(), &terms.annotations, options),
                None => Ok(parts),
            }
        })
        .into_iter()
        .collect::<Result<_>>()?;
        let places =
            parts.iter().enumerate().flat_map(|(line, p)| (0..p.len()).map(move |part| (line, part)));
        let part_observer = PartObserver { places: places.collect(), translator: self, observer };
        let sources: Vec<Vec<u32>> = parts.iter().flatten().map(|p| p.read().to_vec()).collect();
        let engines: Vec<&Engine> = self.engines.iter().map(Arc::as_ref).collect();
        // It is unknown to which part of a split line a phrase belongs.
        let whole = parts.iter().enumerate().flat_map(|(line, parts)| {
            let of_line = constraints.get(line).filter(|_| parts.len() == 1);
            std::iter::repeat_n(of_line.cloned().unwrap_or_default(), parts.len())
        });
        let constraints: Vec<Vec<Constraint>> =
            if constraints.is_empty() { Vec::new() } else { whole.collect() };
        let found = search_constrained(&engines, &sources, &constraints, options, threads, &part_observer)?;
        let mut found = found.into_iter();
        let of_parts = |parts: &Vec<Part>| found.by_ref().take(parts.len()).collect::<Vec<_>>();
        let found: Vec<Vec<Vec<Hypothesis>>> = parts.iter().map(of_parts).collect();
        let lines: Vec<_> = lines.iter().zip(&parts).zip(&found).collect();
        Ok(parallel::map(threads, &lines, |((line, parts), hypotheses)| {
            let mut joined = self.join(parts, hypotheses);
            if options.substitute {
                let candidates = joined.candidates.iter_mut();
                candidates.for_each(|candidate| self.substitutes().restore(line.as_ref(), candidate));
            }
            joined
        }))
    }

    /// The line in the form that the model reads.
    fn readable<'a>(&self, line: &'a str, options: &SearchOptions) -> Cow<'a, str> {
        if options.substitute { self.substitutes().replace(line) } else { Cow::Borrowed(line) }
    }

    fn substitutes(&self) -> &Substitutes {
        let language = || self.model().languages.target.as_deref();
        self.substitutes.get_or_init(|| Substitutes::new(self.source(), language()))
    }

    /// Forced decoding: the log-probability of each token of given translations, including their
    /// ends, and the score of each.
    pub fn score<T: AsRef<str>>(&self, pairs: &[(T, T)], options: &SearchOptions) -> Result<Vec<Candidate>> {
        self.check_languages()?;
        let encode = |(source, target): &(T, T)| -> Result<(Vec<u32>, Vec<u32>)> {
            Ok((self.source().encode(source.as_ref())?, self.target().encode(target.as_ref())?))
        };
        let ids = pairs.iter().map(encode).collect::<Result<Vec<_>>>()?;
        let engines: Vec<&Engine> = self.engines.iter().map(Arc::as_ref).collect();
        let scores = score_pairs(&engines, &ids, self.threads)?;
        let mut candidates = Vec::with_capacity(pairs.len());
        // The language token has no cost, and is not shown.
        let first = self.target().prefix_ids().len();
        for (((_, text), (_, target)), mut token_scores) in pairs.iter().zip(&ids).zip(scores) {
            token_scores.drain(..first.min(token_scores.len()));
            let total: f32 = token_scores.iter().sum();
            let words = &target[first.min(target.len())..target.len().saturating_sub(1)];
            candidates.push(Candidate {
                text: single_line(text.as_ref().trim_end_matches(['\r', '\n'])).into_owned(),
                score: total / options.length_penalty_of(token_scores.len()),
                tokens: words.iter().filter_map(|&id| self.target().piece(id)).collect(),
                token_scores,
                alignment: Vec::new(),
            });
        }
        Ok(candidates)
    }

    /// The parts in which a line is translated: one, unless it is longer than the model's limit.
    /// Each part has the language token that the line begins with.
    fn split(&self, line: &str) -> Result<Vec<Part>> {
        let text = self.source().prepare(line);
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let ids = self.source().encode(&text)?;
        let (language, text) = self.source().split_language(&text);
        if ids.len() <= language.iter().len() + self.source_frame() {
            return Ok(Vec::new());
        }
        if ids.len() <= self.longest {
            return Ok(vec![Part::new(ids, false)]);
        }
        // Group sentences as long as they fit together.
        let language = language.unwrap_or_default();
        let mut parts: Vec<Part> = Vec::new();
        let mut open = String::new();
        let source_language = self.model().languages.source.as_deref();
        for sentence in sentence_ranges(text, source_language).into_iter().map(|range| &text[range]) {
            let joined =
                if open.is_empty() { format!("{language}{sentence}") } else { format!("{open} {sentence}") };
            if !open.is_empty() && self.source().encode(&joined)?.len() > self.longest {
                self.close(&open, &mut parts)?;
                open = format!("{language}{sentence}");
            } else {
                open = joined;
            }
        }
        self.close(&open, &mut parts)?;
        Ok(parts)
    }

    /// Adds the text as one part, or splits it if even a sentence is too long.
    fn close(&self, text: &str, parts: &mut Vec<Part>) -> Result<()> {
        let mut ids = self.source().encode(text)?;
        if ids.len() <= self.longest {
            parts.push(Part::new(ids, false));
            return Ok(());
        }
        let end = ids.split_off(ids.len() - self.source_end());
        let (language, _) = self.source().split_language(text);
        let (language, rest) = ids.split_at(self.source().prefix_ids().len() + language.iter().len());
        let room = self.longest.saturating_sub(end.len() + language.len()).max(1);
        for piece in rest.chunks(room) {
            parts.push(Part::new([language, piece, &end].concat(), true));
        }
        Ok(())
    }

    /// The number of tokens after every source text: its end, and possibly a language token.
    fn source_end(&self) -> usize {
        usize::from(self.source().ends()) + self.source().suffix_ids().len()
    }

    /// The number of tokens around every source text.
    fn source_frame(&self) -> usize {
        self.source().prefix_ids().len() + self.source_end()
    }

    /// A hypothesis without its language token.
    fn without_language(&self, mut hypothesis: Hypothesis) -> Hypothesis {
        let first = self.target().prefix_ids();
        if !first.is_empty() && hypothesis.ids.starts_with(first) {
            hypothesis.ids.drain(..first.len());
            hypothesis.token_log_probabilities.drain(..first.len());
            hypothesis.attention.drain(..first.len().min(hypothesis.attention.len()));
        }
        // The source's language tokens are not words that can be attended to.
        let n = self.source().prefix_ids().len();
        hypothesis.attention.iter_mut().for_each(|row| drop(row.drain(..n.min(row.len()))));
        hypothesis
    }

    fn join(&self, parts: &[Part], hypotheses: &[Vec<Hypothesis>]) -> Line {
        let count = hypotheses.iter().map(Vec::len).min().unwrap_or(0);
        let pieces = |t: &Tokenizer, ids: &[u32]| -> Vec<String> {
            ids.iter().map(|&id| t.piece(id).unwrap_or_default()).collect()
        };
        let (before, behind) = (self.source().prefix_ids().len(), self.source_end());
        let text = |p: &Part| pieces(self.source(), &p.ids[before..p.ids.len() - behind]);
        let source: Vec<Vec<String>> = parts.iter().map(text).collect();
        let candidates = (0..count)
            .map(|n| {
                let chosen: Vec<Hypothesis> = hypotheses
                    .iter()
                    .zip(parts)
                    .map(|(h, part)| self.without_language(without_terms(h[n].clone(), part)))
                    .collect();
                let texts: Vec<String> = chosen.iter().map(|h| self.decode(&h.ids)).collect();
                let mut alignment = Vec::new();
                let (mut words_before, mut target_before) = (0, 0);
                for (h, source) in chosen.iter().zip(&source) {
                    let target = pieces(self.target(), &h.ids);
                    let (s, t) = (words(source), words(&target));
                    for (a, b) in align(&h.attention, &s, &t) {
                        alignment.push((words_before + a, target_before + b));
                    }
                    words_before += s.last().map_or(0, |w| w + 1);
                    target_before += t.last().map_or(0, |w| w + 1);
                }
                Candidate {
                    text: texts.iter().filter(|t| !t.is_empty()).cloned().collect::<Vec<_>>().join(" "),
                    score: chosen.iter().map(|h| h.score).sum::<f32>() / chosen.len() as f32,
                    tokens: chosen.iter().flat_map(|h| pieces(self.target(), &h.ids)).collect(),
                    token_scores: chosen.iter().flat_map(|h| h.token_log_probabilities.clone()).collect(),
                    alignment,
                }
            })
            .collect();
        let cut = parts.iter().filter(|p| p.cut).count();
        Line { candidates, source: source.concat(), parts: parts.len(), cut }
    }
}

/// Maps the attention of a hypothesis to the source without the translations of terms: attention to
/// a translation counts for its term.
fn without_terms(mut hypothesis: Hypothesis, part: &Part) -> Hypothesis {
    let Some(annotated) = &part.annotated else { return hypothesis };
    for row in &mut hypothesis.attention {
        let mut plain = vec![0.0; part.ids.len()];
        for (weight, &origin) in row.iter().zip(&annotated.origins) {
            plain[origin] += weight;
        }
        *row = plain;
    }
    hypothesis
}

/// Whether a character ends a line, for this program or for one that reads its output.
///
/// ```
/// use regard_core::translator::is_line_break;
/// assert!("\n\r\u{b}\u{c}\u{85}\u{2028}\u{2029}".chars().all(is_line_break));
/// assert!(!is_line_break(' ') && !is_line_break('\t'));
/// ```
pub fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Replaces every line break by a space.
pub fn single_line(text: &str) -> Cow<'_, str> {
    match text.contains(is_line_break) {
        true => text.replace(is_line_break, " ").into(),
        false => text.into(),
    }
}

/// The index of the word that each piece belongs to, where words are separated by spaces: `▁`
/// begins a word, and bytes that spell a line break or a tab, which become a space in the text, end
/// one.
fn words(pieces: &[String]) -> Vec<usize> {
    let mut word = 0;
    // The end of the pieces that spell a break.
    let mut break_end = 0;
    let mut found = Vec::with_capacity(pieces.len());
    for (i, piece) in pieces.iter().enumerate() {
        if i > 0 && piece.starts_with('▁') {
            word += 1;
        }
        found.push(word);
        if i >= break_end {
            break_end = i + spelt_break(&pieces[i..]);
        }
        if i + 1 == break_end {
            word += 1;
        }
    }
    found
}

/// The number of pieces at the beginning of `pieces` that are bytes (`<0x0A>`) which spell a line
/// break or a tab; 0 if they do not.
fn spelt_break(pieces: &[String]) -> usize {
    let byte = |piece: &String| u8::from_str_radix(piece.strip_prefix("<0x")?.strip_suffix('>')?, 16).ok();
    let bytes: Vec<u8> = pieces.iter().take(3).map_while(byte).collect();
    match bytes[..] {
        [b'\t'..=b'\r', ..] => 1,
        [0xc2, 0x85, ..] => 2,
        [0xe2, 0x80, 0xa8 | 0xa9] => 3,
        _ => 0,
    }
}

/// For each target word, the source word that its pieces attended to most, as seen from both sides.
fn align(attention: &[Vec<f32>], source: &[usize], target: &[usize]) -> Vec<(usize, usize)> {
    let (Some(&last_source), Some(&last_target)) = (source.last(), target.last()) else { return Vec::new() };
    let mut sums = vec![vec![0.0f32; last_source + 1]; last_target + 1];
    for (row, &t) in attention.iter().zip(target) {
        for (weight, &s) in row.iter().zip(source) {
            sums[t][s] += weight;
        }
    }
    // Also weigh by the share of a source word's attention that comes from this target word,
    // because every word attends to the full stop.
    let totals: Vec<f32> = (0..=last_source).map(|s| sums.iter().map(|row| row[s]).sum()).collect();
    for row in &mut sums {
        row.iter_mut().zip(&totals).for_each(|(x, total)| *x *= *x / total.max(f32::MIN_POSITIVE));
    }
    let best = |row: &[f32]| (0..row.len()).max_by(|&a, &b| row[a].total_cmp(&row[b]).then(b.cmp(&a)));
    let found = sums.iter().enumerate().filter_map(|(t, row)| Some((best(row)?, t)));
    if attention.is_empty() { Vec::new() } else { found.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_spell_a_break_part_words() {
        let of = |list: &str| words(&list.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of("▁a <0x0A> b ▁c"), [0, 0, 1, 2]);
        assert_eq!(of("<0x0D> b"), [0, 1]);
        assert_eq!(of("▁a <0xE2> <0x80> <0xA8> b"), [0, 0, 0, 0, 1]);
        assert_eq!(of("▁a <0xC2> <0x85> ▁b"), [0, 0, 0, 2]);
        // Other bytes are letters.
        assert_eq!(of("▁a <0xC3> <0xA4> b <0x41>"), [0, 0, 0, 0, 0]);
        assert_eq!(single_line("a\r\nb\u{2028}c\td"), "a  b c\td");
    }

    #[test]
    fn words_are_aligned_by_the_sum_of_their_pieces() {
        let pieces = |x: &[&str]| x.iter().map(|s| s.to_string()).collect::<Vec<_>>();
        let source = words(&pieces(&["▁the", "▁hou", "se"]));
        let target = words(&pieces(&["▁das", "▁Ha", "us"]));
        assert_eq!((source.clone(), target.clone()), (vec![0, 1, 1], vec![0, 1, 1]));
        // The last row belongs to the end token; each row also has the source's end token.
        let attention = vec![
            vec![0.7, 0.1, 0.1, 0.1],
            vec![0.4, 0.3, 0.2, 0.1],
            vec![0.1, 0.1, 0.6, 0.2],
            vec![0.0, 0.0, 0.0, 1.0],
        ];
        assert_eq!(align(&attention, &source, &target), [(0, 0), (1, 1)]);
        assert_eq!(align(&[], &source, &target), []);
        // Both rows attend most to the second word, but it gets more of its weight from the second.
        let attention = vec![vec![0.4, 0.6], vec![0.1, 0.9]];
        assert_eq!(align(&attention, &[0, 1], &[0, 1]), [(0, 0), (1, 1)]);
    }
}
