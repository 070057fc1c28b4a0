//! The resources of `regard serve` besides its models: glossaries and translation memories.

use super::languages;
use regard_documents::language::canonical;
use regard_documents::{Glossary, Memory};
use regard_serve::ModelSource;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

/// Glossaries by name, from `NAME=FILE`.
pub(super) fn glossaries(arguments: &[String]) -> Result<BTreeMap<String, Arc<Glossary>>, Box<dyn Error>> {
    let mut found = BTreeMap::new();
    for argument in arguments {
        let named = argument.split_once('=').filter(|(name, file)| !name.is_empty() && !file.is_empty());
        let Some((name, file)) = named else {
            return Err(format!("--glossary {argument}: expected NAME=FILE, as in it=terms.tsv").into());
        };
        let glossary = Arc::new(Glossary::load(Path::new(file))?);
        if found.insert(name.to_owned(), glossary).is_some() {
            return Err(format!("--glossary: there are two with the name {name}").into());
        }
    }
    Ok(found)
}

/// A source and a target language, in canonical codes.
type Pair = (String, String);

/// Memories by language pair: the pair that `SOURCE-TARGET=FILE` names, or those pairs of the
/// models that the file has.
pub(super) fn memories(
    arguments: &[String],
    models: &[ModelSource],
) -> Result<BTreeMap<Pair, Arc<Memory>>, Box<dyn Error>> {
    let of_models: Vec<Pair> = models.iter().filter_map(pair_of).collect();
    let mut found: BTreeMap<Pair, Arc<Memory>> = BTreeMap::new();
    for argument in arguments {
        let (named, file) = languages(argument);
        let pairs = named.map_or_else(|| of_models.clone(), |pair| vec![pair]);
        let mut failed: Option<regard::Error> = None;
        let mut loaded = 0;
        for (source, target) in pairs {
            match Memory::load(file, &source, &target) {
                Ok(memory) => {
                    let pair = (canonical(&source), canonical(&target));
                    if found.insert(pair, Arc::new(memory)).is_some() {
                        let message = "there are two for this pair of languages";
                        return Err(format!("--memory {argument}: {message}, {source}-{target}").into());
                    }
                    loaded += 1;
                }
                Err(error) => failed = Some(error),
            }
        }
        // A file need not have the languages of all models.
        if let Some(error) = failed.filter(|_| loaded == 0) {
            return Err(error.into());
        }
    }
    Ok(found)
}

fn pair_of(model: &ModelSource) -> Option<Pair> {
    let own = &model.translator.model().languages;
    model.languages.clone().or_else(|| Some((own.source.clone()?, own.target.clone()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glossary_has_a_name() {
        for argument in ["terms.tsv", "=terms.tsv", "it="] {
            let error = glossaries(&[argument.to_owned()]).unwrap_err().to_string();
            assert!(error.contains("expected NAME=FILE"), "{error}");
        }
        let error = glossaries(&["it=no-such-file.tsv".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("no-such-file.tsv: "), "{error}");
    }
}
