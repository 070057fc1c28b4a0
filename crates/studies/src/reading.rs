//! Reading comprehension: the question provides queries, the article keys and values, and the
//! answer is a span of the article.

mod articles;
mod model;

use crate::net::{self, Fitted, Net as _, Recipe};
use crate::{Cell, Column, Report, Setup, Study, Table};
use articles::{Article, Kind};
use model::{Answer, Model, Size, WINDOW};
use regard_core::{Key, Result};
use regard_plot::{HeatMap, LineChart, Matrix, Series};

pub(crate) const STUDY: Study = Study {
    name: "reading",
    title: "A question as the query, an article as keys and values",
    question: "Can attention find the answer to a question in a text that it has never seen?",
    zh: ["问题作为查询，文章作为键和值", "注意力能在从未见过的文章里找到问题的答案吗？"],
    about: "reading comprehension by cross-attention: exact match on unseen articles, and the attention over them",
    body: run,
};

/// The number of people in a training article.
const PEOPLE: usize = 3;
/// The number of articles for measuring progress during training.
const WATCHED: usize = 300;
/// The random stream for all articles of the study.
const ARTICLES: u64 = 11;

struct Sizes {
    model: Size,
    recipe: Recipe,
    tested: usize,
    /// The number of people in articles longer than those in training.
    longer: Vec<usize>,
}

fn sizes(setup: &Setup<'_>) -> Sizes {
    let small = Size { d: 16, heads: 2, article: 1, question: 1, reading: 1 };
    let medium = Size { d: 64, heads: 4, article: 2, question: 1, reading: 2 };
    let large = Size { d: 128, heads: 8, article: 3, question: 2, reading: 2 };
    Sizes {
        model: setup.choose(small, medium, large),
        recipe: Recipe {
            steps: setup.choose(20, 2000, 8000),
            batch: setup.choose(8, 32, 64),
            losses: 1,
            peak: setup.choose(0.004, 0.002, 0.001),
        },
        tested: setup.choose(60, 2000, 5000),
        longer: setup.choose(vec![4], vec![4, 5, 6], vec![4, 5, 6]),
    }
}

/// A trained model, and its exact match during training against the number of training questions.
struct Trained {
    model: Model,
    fitted: Fitted,
    learning_curve: Vec<(f64, f64)>,
}

fn run(setup: &Setup<'_>, report: &mut Report) -> Result<()> {
    let sizes = sizes(setup);
    let key = Key::new(setup.seed).child(ARTICLES);
    let unseen = |people: usize, count: usize| -> Vec<Article> {
        let key = key.child(people as u64);
        (0..count as u64).map(|i| Article::write(people, true, key.child(i))).collect()
    };
    let tested = unseen(PEOPLE, sizes.tested);
    let trained = train(setup, &sizes, key.child(0), &tested)?;
    let said = answers(setup, &trained, &tested)?;
    describe(report, &sizes, &trained, &tested);
    results(report, &tested, &said);
    lengths(setup, report, &sizes, &trained, unseen, (&tested, &said))?;
    learning_curve(report, &trained);
    attention(report, &tested, &said)
}

fn train(setup: &Setup<'_>, sizes: &Sizes, key: Key, tested: &[Article]) -> Result<Trained> {
    let (model, recipe) = (Model::new(sizes.model), sizes.recipe);
    let watched = &tested[..WATCHED.min(tested.len())];
    let mut learning_curve = Vec::new();
    let watch = |step: u64, loss: f64, weights: &[f32]| {
        if step.is_multiple_of((recipe.steps / 20).max(1)) {
            let right = exact(watched, &net::answers(setup, &model, weights, watched)?);
            learning_curve.push(((step * recipe.batch as u64) as f64, right));
            setup.progress(format!(
                "step {step} of {}, loss {loss:.2}, exact match {right:.1} %",
                recipe.steps
            ));
        }
        Ok(())
    };
    let write = |i: u64| Article::write(PEOPLE, false, key.child(i));
    let fitted = net::fit(setup, &model, recipe, write, watch)?;
    Ok(Trained { model, fitted, learning_curve })
}

fn answers(setup: &Setup<'_>, trained: &Trained, articles: &[Article]) -> Result<Vec<Answer>> {
    net::answers(setup, &trained.model, &trained.fitted.weights, articles)
}

/// Whether the predicted span has the same words as the answer.
fn right(article: &Article, answer: &Answer) -> bool {
    article.words[answer.span.clone()] == article.words[article.answer.clone()]
}

fn exact(articles: &[Article], answers: &[Answer]) -> f64 {
    percent(articles.iter().zip(answers).map(|(a, s)| f64::from(u8::from(right(a, s)))))
}

/// 100 times the mean of the values; NaN if there are none.
fn percent(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), v| (sum + v, count + 1));
    100.0 * sum / f64::from(count)
}

/// The expected accuracy of guessing among the spans of the right kind.
fn guessed(articles: &[&Article]) -> f64 {
    percent(articles.iter().map(|a| 1.0 / a.candidates.max(1) as f64))
}

fn describe(report: &mut Report, sizes: &Sizes, trained: &Trained, tested: &[Article]) {
    let Size { d, heads, article, question, reading } = sizes.model;
    report.text(format!(
        "Articles of several sentences about {PEOPLE} people are written by the program: where they live, what they own, do and like \
         to eat, the name often replaced by \"he\" or \"she\". An encoder of {article} layers reads the article, one of {question} the \
         question, each {d} wide with {heads} heads and with relative positions; the first layer over the article sees {WINDOW} words to \
         each side. Then {reading} layers of cross-attention, whose queries are the tokens of the \
         question and whose keys and values are the words of the article. Then every word of the question votes on where the answer \
         begins, and on where it ends: a softmax over the words of the article, which is attention again, and whose weights are the \
         answer. The model has {} weights and was \
         trained on {} questions in {:.0} seconds.",
        trained.model.parameters().len(),
        sizes.recipe.steps * sizes.recipe.batch as u64,
        trained.fitted.seconds,
    ));
    report.text(
        "The unseen articles are new in more than their order: a sixth of all combinations of a person with a city, thing, job or food \
         is kept from training, and each question in the test asks for one of these.",
    );
    if let Some(article) = tested.first() {
        report.text(format!(
            "For example: \"{}\" Question: \"{}\" Answer: \"{}\".",
            article.words.join(" ").replace(" .", "."),
            article.question_text(),
            article.answer_text(),
        ));
    }
}

fn results(report: &mut Report, tested: &[Article], said: &[Answer]) {
    report.heading("Answers");
    let columns = || {
        let percent = |name: &str| Column::new(name).unit("%").decimals(1);
        [
            Column::new("questions such as"),
            Column::new("asked"),
            percent("exact match"),
            percent("first word right"),
            percent("pointed at the answer"),
            percent("cross-attention on its sentence"),
            percent("guessing"),
        ]
    };
    let row = |name: &str, keep: &dyn Fn(&Article) -> bool| -> Option<[Cell; 7]> {
        let kept = || tested.iter().zip(said).filter(|(a, _)| keep(a));
        let articles: Vec<&Article> = kept().map(|(a, _)| a).collect();
        let yes = |b: bool| f64::from(u8::from(b));
        (!articles.is_empty()).then(|| {
            [
                name.into(),
                articles.len().into(),
                percent(kept().map(|(a, s)| yes(right(a, s)))).into(),
                percent(kept().map(|(a, s)| yes(a.answer.start == s.span.start))).into(),
                percent(kept().map(|(a, s)| s.pointed_at(&a.answer))).into(),
                percent(kept().map(|(a, s)| s.looked_at(&a.sentences[a.answer_sentence()]))).into(),
                guessed(&articles).into(),
            ]
        })
    };
    let mut table = Table::new("kinds", "Questions about articles that were not trained on", columns());
    let rows = Kind::ALL.iter().filter_map(|&kind| row(kind.name(), &|a| a.kind == kind));
    rows.chain(row("all of them", &|_| true)).for_each(|cells| table.row(cells));
    let last = table.rows.len() - 1;
    if let (Some(all), Some(guess)) = (table.number(last, "exact match"), table.number(last, "guessing")) {
        let (en, zh) = if all > 2.0 * guess {
            (
                "Yes. With the question as queries and the article as keys and values, the weights of attention point at the words of the \
             answer, far more often than guessing would.",
                "能。问题作为查询，文章作为键和值，注意力的权重就指向答案所在的词，远比猜测准。",
            )
        } else {
            (
                "After this little training, it points at the right words no more often than guessing would.",
                "训练这么少，它指对词的次数并不比猜测多。",
            )
        };
        report.answer(en, zh);
        report.summary(format!(
            "A question can be the query and an article the keys and values: asked about articles it had not seen, whose facts it had not \
             been told in training, the model answered {all:.1} % of {} questions with exactly the right words; guessing among \
             the spans of the right kind would give {guess:.1} %.",
            tested.len(),
        ));
    }
    report.table(table);
    let part = |a: &Article| a.sentences[a.answer_sentence()].len() as f64 / a.words.len() as f64;
    report.text(format!(
        "\"Guessing\" chooses any span of the article that has the kind of the answer. \"Pointed at the answer\" is the probability that the \
         pointers give its first and its last word, on average. The sentence of the answer is {:.1} % of its article, which is what \
         cross-attention would give it if it looked at all words alike. Where that sentence says \"he\" or \"she\", the article's encoder \
         must have carried the name there.",
        percent(tested.iter().map(part)),
    ));
    let mut table =
        Table::new("subjects", "The same questions by how the sentence names its subject", columns());
    table.columns[0] = Column::new("the fact's subject is");
    for (name, pronoun) in [("the name", false), ("he or she", true)] {
        row(name, &|a| a.pronoun == pronoun).into_iter().for_each(|cells| table.row(cells));
    }
    report.table(table);
}

fn lengths(
    setup: &Setup<'_>,
    report: &mut Report,
    sizes: &Sizes,
    trained: &Trained,
    unseen: impl Fn(usize, usize) -> Vec<Article>,
    (tested, said): (&[Article], &[Answer]),
) -> Result<()> {
    report.heading("Longer articles than those trained on");
    let decimal = |name: &str| Column::new(name).decimals(1);
    let columns = [
        Column::new("people"),
        decimal("words of an article"),
        decimal("exact match").unit("%"),
        decimal("guessing").unit("%"),
    ];
    let mut table = Table::new("lengths", format!("Trained on articles about {PEOPLE} people"), columns);
    let mut row = |people: usize, articles: &[Article], exact: f64| {
        let words = articles.iter().map(|a| a.words.len()).sum::<usize>() as f64 / articles.len() as f64;
        let guess = guessed(&articles.iter().collect::<Vec<_>>());
        table.row([people.into(), words.into(), exact.into(), guess.into()]);
    };
    row(PEOPLE, tested, exact(tested, said));
    for &people in &sizes.longer {
        let articles = unseen(people, sizes.tested / 2);
        row(people, &articles, exact(&articles, &answers(setup, trained, &articles)?));
    }
    report.table(table);
    Ok(())
}

fn learning_curve(report: &mut Report, trained: &Trained) {
    let mut chart = LineChart::new(
        "Answers while training",
        "questions trained on",
        "exact match (% of unseen questions)",
    )
    .series(Series::new("exact match", trained.learning_curve.clone()).markers());
    chart.y.range = Some((0.0, 100.0));
    report.picture("course", format!("Measured on up to {WATCHED} of the unseen articles."), chart);
}

/// Plots how the questions attend to their articles, and tabulates one of them sentence by
/// sentence.
fn attention(report: &mut Report, tested: &[Article], said: &[Answer]) -> Result<()> {
    report.heading("Where a question looks");
    report.text(
        "The two pointers over the article: the probability of each word to be the first of the answer, and the last. Below them how each \
         word of the question votes: the softmax of its own scores for the first word, which the pointer adds up.",
    );
    // For each of three kinds the first correct answer, if possible with a pronoun.
    let chosen = [Kind::Thing, Kind::Owner, Kind::Home].map(|kind| {
        let fits = |right_only: bool, pronoun: bool| {
            (0..tested.len()).find(|&i| {
                let a = &tested[i];
                a.kind == kind && a.pronoun == pronoun && (!right_only || right(a, &said[i]))
            })
        };
        fits(true, true).or_else(|| fits(true, false)).or_else(|| fits(false, false))
    });
    let chosen: Vec<usize> = chosen.into_iter().flatten().collect();
    for (n, &i) in chosen.iter().enumerate() {
        let (article, answer) = (&tested[i], &said[i]);
        let rows: Vec<&Vec<f32>> = answer.pointed.iter().chain(&answer.votes).collect();
        let names: Vec<&str> =
            ["first word?", "last word?"].iter().chain(&article.question).copied().collect();
        let map = HeatMap::new(article.question_text(), Matrix::from_rows(&rows))
            .labels(&names, &article.words)
            .axes("pointers, question", "article")
            .scale_label("weight");
        let caption = format!(
            "The model said \"{}\"; the answer is \"{}\".",
            article.words[answer.span.clone()].join(" "),
            article.answer_text()
        );
        report.picture(format!("attention-{}", n + 1), caption, map);
    }
    if let Some(&i) = chosen.first() {
        let (article, answer) = (&tested[i], &said[i]);
        let map = HeatMap::new("Cross-attention of the last layer", Matrix::from_rows(&answer.attention))
            .labels(&article.question, &article.words)
            .axes("question", "article")
            .scale_label("attention weight");
        report.picture("cross-attention", "The first of these questions, all heads on average.", map);
        report.table(sentences(article, answer));
    }
    Ok(())
}

/// The share of the attention and of the pointers for each sentence.
fn sentences(article: &Article, answer: &Answer) -> Table {
    let caption = format!(
        "Where \"{}\" looks, sentence by sentence; the model said \"{}\"",
        article.question_text(),
        article.words[answer.span.clone()].join(" ")
    );
    let percent = |name: &str| Column::new(name).unit("%").decimals(1);
    let columns =
        [percent("cross-attention"), percent("pointed at"), Column::new(""), Column::new("sentence")];
    let mut table = Table::new("sentences", caption, columns);
    for (i, sentence) in article.sentences.iter().enumerate() {
        let pointed: f32 = answer.pointed.iter().flat_map(|p| &p[sentence.clone()]).sum::<f32>() / 2.0;
        let mark = if i == article.answer_sentence() { "  ← the answer" } else { "" };
        let text = article.words[sentence.clone()].join(" ").replace(" .", ".");
        table.row([
            (100.0 * answer.looked_at(sentence)).into(),
            (100.0 * f64::from(pointed)).into(),
            "█".repeat((20.0 * pointed).round() as usize).into(),
            format!("{text}{mark}").into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::smoke;

    #[test]
    fn questions_are_answered_and_drawn() {
        let report = smoke(&STUDY);
        let kinds = report.find_table("kinds").unwrap();
        let asked: f64 = (0..kinds.rows.len() - 1).filter_map(|i| kinds.number(i, "asked")).sum();
        assert_eq!(kinds.number(kinds.rows.len() - 1, "asked"), Some(asked));
        let table = report.find_table("sentences").unwrap();
        for column in ["cross-attention", "pointed at"] {
            let total: f64 = (0..table.rows.len()).filter_map(|i| table.number(i, column)).sum();
            assert!((total - 100.0).abs() < 0.01, "{column}: {total}");
        }
        assert!(report.find_table("lengths").unwrap().rows.len() == 2);
    }
}
