//! The models of `regard translate`: one, an ensemble, or two in sequence (pivot translation).

use super::Arguments;
use crate::commands::search::languages_for;
use regard::decode::SearchOptions;
use regard::translator::Translator;
use regard_documents::pipeline::Stage;
use regard_documents::{Glossary, GlossaryMethod, Memory, Pipeline, TranslatedLine, language};
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// The maximum number of texts whose language is checked: detection takes time.
const CHECKS: usize = 20;

/// The number of weights times lines to translate between two checks for signals: a few seconds of
/// work.
const PART_WORK: usize = 120_000_000_000;

/// A model of the route and its search settings.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) translator: Arc<Translator>,
    pub(super) options: SearchOptions,
}

/// The models and resources that translate lines and documents.
#[derive(Debug)]
pub(crate) struct Route {
    models: Vec<Model>,
    memory: Option<Arc<Memory>>,
    glossary: Option<Arc<Glossary>>,
    glossary_method: GlossaryMethod,
    /// The fingerprints of the files of glossary and memory.
    resource_fingerprints: String,
    no_split: bool,
    /// How many more texts to check for another language; 0 after a warning.
    unchecked: AtomicUsize,
}

/// Loaded models; those with the same language pair form an ensemble.
#[derive(Debug)]
pub(crate) struct LoadedModels {
    pairs: Vec<(Pair, Arc<Translator>)>,
}

impl LoadedModels {
    /// Groups these models; there must be at least one.
    pub(crate) fn new(models: Vec<Translator>) -> regard::Result<Self> {
        let mut pairs: Vec<(Pair, Vec<Translator>)> = Vec::new();
        for translator in models {
            let pair = Pair::of(&translator);
            match pairs.iter_mut().find(|(other, _)| *other == pair) {
                Some((_, together)) => together.push(translator),
                None => pairs.push((pair, vec![translator])),
            }
        }
        let ensemble = |(pair, list): (Pair, Vec<Translator>)| {
            Translator::ensemble(list).map(|translator| (pair, Arc::new(translator)))
        };
        Ok(LoadedModels { pairs: pairs.into_iter().map(ensemble).collect::<regard::Result<_>>()? })
    }

    /// The model that was named first, before a language pair is chosen.
    pub(crate) fn first(&self) -> Option<&Arc<Translator>> {
        self.pairs.first().map(|(_, translator)| translator)
    }

    /// The models that lead from one language to another, in order: a multilingual model is set to
    /// the pair, and two models are used in sequence if the second reads what the first writes.
    fn route(&self, wanted: (Option<&str>, Option<&str>)) -> Result<Vec<Arc<Translator>>, Box<dyn Error>> {
        if let [(_, one)] = &self.pairs[..] {
            let told = languages_for(one, wanted.0, wanted.1)?;
            return Ok(vec![told.map_or_else(|| Arc::clone(one), Arc::new)]);
        }
        let pairs: Vec<Pair> = self.pairs.iter().map(|(pair, _)| pair.clone()).collect();
        Ok(order(&pairs, wanted)?.into_iter().map(|i| Arc::clone(&self.pairs[i].1)).collect())
    }
}

impl Route {
    /// Loads the models, the glossary and the memory.
    pub(super) fn load(arguments: &Arguments) -> Result<Self, Box<dyn Error>> {
        Self::new(arguments, &LoadedModels::new(arguments.load_models()?)?)
    }

    /// A route through loaded models.
    pub(super) fn new(arguments: &Arguments, models: &LoadedModels) -> Result<Self, Box<dyn Error>> {
        let wanted = arguments.wanted_languages();
        let translators = models.route(wanted)?;
        let (glossary, memory) = arguments.known(&translators)?;
        let glossary_method = GlossaryMethod::from(arguments.glossary_method);
        let reads_terms: Vec<bool> = translators.iter().map(|t| t.reads_terms()).collect();
        if let Some(fault) = glossary_method.fault(&reads_terms) {
            let next = "`regard train --terms` trains a model that reads terms";
            return Err(format!("--glossary-method annotate: {fault}; {next}").into());
        }
        let last = translators.len() - 1;
        let mut models = Vec::new();
        for (i, translator) in translators.into_iter().enumerate() {
            let options = super::route_options(arguments, &translator, i == last)?;
            models.push(Model { translator, options });
        }
        let mut resource_fingerprints = String::new();
        for file in arguments.glossary.iter().chain(&arguments.memory) {
            let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
            resource_fingerprints += &format!(", {:016x}", xxh3_64(&bytes));
        }
        let (no_split, unchecked) = (arguments.no_split, AtomicUsize::new(CHECKS));
        Ok(Route { models, memory, glossary, glossary_method, resource_fingerprints, no_split, unchecked })
    }

    /// Uses these terms instead of the glossary of the flags.
    pub(super) fn set_glossary(&mut self, glossary: Option<Arc<Glossary>>) {
        self.glossary = glossary;
    }

    /// Identifies the glossary and the memory in use.
    pub(super) fn resource_fingerprints(&self) -> &str {
        &self.resource_fingerprints
    }

    /// The first model of the route.
    pub(super) fn first(&self) -> &Model {
        &self.models[0]
    }

    /// All models in order.
    pub(super) fn models(&self) -> &[Model] {
        &self.models
    }

    /// The number of lines to translate between two checks for signals: enough for batches of
    /// similar length, fewer with a large model, so that progress is visible.
    pub(super) fn part(&self) -> usize {
        let weights = |model: &Model| {
            let transformer = &model.translator.model().transformer;
            transformer.parameters().len().saturating_mul(model.options.beam)
        };
        let work = self.models.iter().map(weights).fold(1, usize::saturating_add);
        (PART_WORK / work).clamp(256, 2048)
    }

    /// The source language, if the model states it.
    pub(super) fn source_language(&self) -> Option<&str> {
        self.first().translator.model().languages.source.as_deref()
    }

    /// The target language, if the model states it.
    pub(super) fn target_language(&self) -> Option<&str> {
        self.models.last()?.translator.model().languages.target.as_deref()
    }

    pub(super) fn pipeline(&self) -> Pipeline<'_> {
        let stages =
            self.models.iter().map(|model| Stage { translator: &model.translator, options: &model.options });
        Pipeline::new(stages.collect())
            .with_memory(self.memory.clone())
            .with_glossary(self.glossary.clone())
            .with_glossary_method(self.glossary_method)
    }

    /// Translates sentence by sentence or, with `--no-split`, line by line.
    pub(super) fn translate<T: AsRef<str> + Sync>(&self, lines: &[T]) -> regard::Result<Vec<TranslatedLine>> {
        if !self.no_split {
            return self.pipeline().lines(lines);
        }
        let mut found: Option<Vec<regard::translator::Line>> = None;
        for Model { translator, options } in &self.models {
            found = Some(match found {
                None => translator.translate(lines, options)?,
                Some(before) => {
                    let texts: Vec<String> = before.iter().map(|line| line.best().text).collect();
                    translator.translate(&texts, options)?
                }
            });
        }
        let line = |line| TranslatedLine { line, ..TranslatedLine::default() };
        Ok(found.unwrap_or_default().into_iter().map(line).collect())
    }

    /// Warns once if a text looks like another language than the model's source language.
    pub(super) fn check_language(&self, text: &str) -> Option<String> {
        let left = self.unchecked.load(Ordering::Relaxed);
        self.unchecked.store(left.checked_sub(1)?, Ordering::Relaxed);
        let expected = self.source_language()?;
        let other = language::other_than(text, expected)?;
        self.unchecked.store(0, Ordering::Relaxed);
        Some(language::warning(other, expected))
    }
}

/// The languages of a model, in canonical codes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pair {
    source: Option<String>,
    target: Option<String>,
}

impl Pair {
    fn of(translator: &Translator) -> Self {
        let languages = &translator.model().languages;
        let code = |code: &Option<String>| code.as_deref().map(language::canonical);
        Pair { source: code(&languages.source), target: code(&languages.target) }
    }

    fn describe(&self) -> String {
        let name = |code: &Option<String>| code.clone().unwrap_or_else(|| "?".into());
        format!("{}-{}", name(&self.source), name(&self.target))
    }

    fn leads_to(&self, next: &Pair) -> bool {
        self.target.is_some() && self.target == next.source
    }
}

/// The sequence of pairs that a text passes through.
fn order(pairs: &[Pair], wanted: (Option<&str>, Option<&str>)) -> Result<Vec<usize>, String> {
    if pairs.len() == 1 {
        return Ok(vec![0]);
    }
    let (source, target) = (wanted.0.map(language::canonical), wanted.1.map(language::canonical));
    let begins = |pair: &Pair| source.is_none() || pair.source == source;
    let ends = |pair: &Pair| target.is_none() || pair.target == target;
    if source.is_some()
        && target.is_some()
        && let Some(direct) = pairs.iter().position(|pair| begins(pair) && ends(pair))
    {
        return Ok(vec![direct]);
    }
    let mut ways = Vec::new();
    for (i, first) in pairs.iter().enumerate().filter(|(_, pair)| begins(pair)) {
        for (j, second) in pairs.iter().enumerate().filter(|(_, pair)| ends(pair)) {
            if i != j && first.leads_to(second) && first.source != second.target {
                ways.push(vec![i, j]);
            }
        }
    }
    let names: Vec<String> = pairs.iter().map(Pair::describe).collect();
    let names = names.join(", ");
    match ways.len() {
        1 => Ok(ways.remove(0)),
        0 => Err(format!(
            "--model: these models translate {names}; several must be of one pair of languages, or two in a row of which \
             the second reads what the first writes"
        )),
        _ => Err(format!(
            "--model: these models translate {names}, and there is more than one way; name it with --source-lang and \
             --target-lang"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[&str]) -> Vec<Pair> {
        let pair = |text: &&str| {
            let (source, target) = text.split_once('-').unwrap();
            let code = |code: &str| (code != "?").then(|| code.to_owned());
            Pair { source: code(source), target: code(target) }
        };
        list.iter().map(pair).collect()
    }

    #[test]
    fn two_models_are_used_in_a_row_where_their_languages_say_so() {
        let of = |list: &[&str], source, target| order(&pairs(list), (source, target));
        assert_eq!(of(&["?-?"], None, None), Ok(vec![0]));
        assert_eq!(of(&["de-en", "en-fr"], None, None), Ok(vec![0, 1]));
        assert_eq!(of(&["en-fr", "de-en"], None, None), Ok(vec![1, 0]));
        assert_eq!(of(&["de-en", "en-fr", "de-fr"], Some("de"), Some("fr")), Ok(vec![2]));
        assert_eq!(of(&["de-en", "en-fr", "en-de"], Some("deu"), Some("fr")), Ok(vec![0, 1]));
        for (list, says) in [
            (&["de-en", "fr-en"][..], "several must be of one pair"),
            (&["de-en", "en-de"], "several must be of one pair"),
            (&["de-en", "en-fr", "fr-pt"], "more than one way"),
        ] {
            let error = of(list, None, None).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
