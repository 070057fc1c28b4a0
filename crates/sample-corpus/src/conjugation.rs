//! French verb forms.

use super::lexicon::Gender;
use super::syntax::{Agreement, Person};
use super::verbs::Conjugation;

/// The place of a person in the tables: je, il, nous, vous, ils.
fn person_index(person: Person) -> usize {
    match person {
        Person::I => 0,
        Person::He | Person::She => 1,
        Person::We => 2,
        Person::You => 3,
        Person::They => 4,
    }
}

pub(super) fn present(conjugation: &Conjugation, infinitive: &str, person: Person) -> String {
    match conjugation {
        Conjugation::Listed(forms, ..) => forms[person_index(person)].to_owned(),
        Conjugation::Er => {
            let stem = stem(infinitive);
            let ending = ["e", "e", "ons", "ez", "ent"][person_index(person)];
            // mangeons keeps its soft g.
            let soft = if stem.ends_with('g') && ending == "ons" { "e" } else { "" };
            format!("{stem}{soft}{ending}")
        }
    }
}

pub(super) fn future(conjugation: &Conjugation, infinitive: &str, person: Person) -> String {
    let stem = match conjugation {
        Conjugation::Listed(_, stem, _) => stem,
        Conjugation::Er => infinitive,
    };
    format!("{stem}{}", ["ai", "a", "ons", "ez", "ont"][person_index(person)])
}

/// Built on the first person plural, except for être.
pub(super) fn imperfect(conjugation: &Conjugation, infinitive: &str, person: Person) -> String {
    let plural = present(conjugation, infinitive, Person::We);
    let stem = if infinitive == "être" { "ét" } else { plural.strip_suffix("ons").unwrap_or(&plural) };
    let ending = ["ais", "ait", "ions", "iez", "aient"][person_index(person)];
    let stem = match stem.strip_suffix("ge") {
        Some(_) if ending.starts_with('i') => &stem[..stem.len() - 1],
        _ => stem,
    };
    format!("{stem}{ending}")
}

pub(super) fn participle(conjugation: &Conjugation, infinitive: &str, with: Option<Agreement>) -> String {
    let mut form = match conjugation {
        Conjugation::Listed(_, _, participle) => (*participle).to_owned(),
        Conjugation::Er => format!("{}é", stem(infinitive)),
    };
    if let Some(with) = with {
        if with.gender == Gender::Feminine {
            form.push('e');
        }
        if with.plural && !form.ends_with('s') {
            form.push('s');
        }
    }
    form
}

fn stem(infinitive: &str) -> &str {
    infinitive.strip_suffix("er").unwrap_or(infinitive)
}
