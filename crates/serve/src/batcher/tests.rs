use super::*;
use regard_core::translator::Candidate;
use std::sync::mpsc as channel;

/// Turns text round; waits where it is told to, and panics at `panic`.
struct Reverse {
    batches: Mutex<Vec<Vec<String>>>,
    hold: Mutex<Option<channel::Receiver<()>>>,
    begun: channel::Sender<()>,
}

impl Engine for Reverse {
    fn beam(&self, nbest: usize) -> usize {
        nbest.max(4)
    }

    fn translate(
        &self,
        lines: &[&str],
        search: Search,
        _: usize,
        watch: &dyn WatchLines,
    ) -> regard_core::Result<Vec<Line>> {
        let _ = self.begun.send(());
        if let Some(hold) = self.hold.lock().unwrap().take() {
            let _ = hold.recv();
        }
        self.batches.lock().unwrap().push(lines.iter().map(|l| l.to_string()).collect());
        assert!(!lines.contains(&"panic"), "told to");
        let line = |(i, text): (usize, &&str)| {
            let reversed: String = text.chars().rev().collect();
            watch.grown(i, 0, &reversed);
            let candidate = Candidate {
                text: if watch.wanted(i) { reversed } else { String::new() },
                score: 0.0,
                tokens: vec![String::new()],
                token_scores: Vec::new(),
                alignment: Vec::new(),
            };
            Line { candidates: vec![candidate; search.nbest], ..Line::default() }
        };
        Ok(lines.iter().enumerate().map(line).collect())
    }
}

struct Bench {
    engine: Arc<Reverse>,
    batcher: Batcher,
    begun: channel::Receiver<()>,
    metrics: Arc<ModelMetrics>,
}

/// With `held`, the first batch waits for the sender that comes back.
fn bench(batching: Batching, held: bool) -> (Bench, channel::Sender<()>) {
    let (go, hold) = channel::channel();
    let (begun, began) = channel::channel();
    let hold = Mutex::new(held.then_some(hold));
    let engine = Arc::new(Reverse { batches: Mutex::default(), hold, begun });
    let metrics = Arc::new(ModelMetrics::default());
    let batcher = Batcher::new(engine.clone(), batching, metrics.clone()).unwrap();
    (Bench { engine, batcher, begun: began, metrics }, go)
}

fn one_worker(queue: usize) -> Batching {
    Batching { most: 4, wait: Duration::ZERO, queue, workers: 1, cores: 1 }
}

fn sentences(texts: &[&str]) -> Vec<Sentence> {
    let search = Search { nbest: 1, attention: false };
    let sentence = |text: &&str| Sentence::new(text.to_string(), search);
    texts.iter().map(sentence).collect()
}

fn wait(ticket: Ticket) -> Result<Vec<String>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    Ok(runtime.block_on(ticket.wait())?.iter().map(|line| line.best().text).collect())
}

#[test]
fn sentences_of_several_requests_are_one_batch() {
    let (bench, go) = bench(one_worker(100), true);
    let first = bench.batcher.submit(sentences(&["ab"])).unwrap();
    bench.begun.recv().unwrap();
    let others: Vec<Ticket> =
        ["cd", "ef", "gh", "ij", "kl"].map(|t| bench.batcher.submit(sentences(&[t])).unwrap()).into();
    go.send(()).unwrap();
    assert_eq!(wait(first), Ok(vec!["ba".into()]));
    let texts: Vec<String> = others.into_iter().flat_map(|t| wait(t).unwrap()).collect();
    assert_eq!(texts, ["dc", "fe", "hg", "ji", "lk"]);
    let sizes: Vec<usize> = bench.engine.batches.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 4, 1]);
}

#[test]
fn searches_of_another_width_wait_for_their_own_batch() {
    let (bench, go) = bench(one_worker(100), true);
    let first = bench.batcher.submit(sentences(&["x"])).unwrap();
    bench.begun.recv().unwrap();
    let mut wide = sentences(&["b"]);
    wide[0].search.nbest = 9;
    let tickets = [sentences(&["a"]), wide, sentences(&["c"])].map(|s| bench.batcher.submit(s).unwrap());
    go.send(()).unwrap();
    wait(first).unwrap();
    for (ticket, text) in tickets.into_iter().zip(["a", "b", "c"]) {
        assert_eq!(wait(ticket), Ok(vec![text.to_owned()]));
    }
    assert_eq!(*bench.engine.batches.lock().unwrap(), [vec!["x"], vec!["a", "c"], vec!["b"]]);
}

#[test]
fn a_full_queue_refuses_and_a_large_request_has_its_turn() {
    let (bench, go) = bench(one_worker(2), true);
    let first = bench.batcher.submit(sentences(&["ab"])).unwrap();
    bench.begun.recv().unwrap();
    let second = bench.batcher.submit(sentences(&["c", "d", "e"])).unwrap();
    assert_eq!(bench.batcher.submit(sentences(&["f"])).unwrap_err(), Failure::Full);
    // Room is made by those who went away.
    drop(second);
    let third = bench.batcher.submit(sentences(&["f"])).unwrap();
    go.send(()).unwrap();
    assert_eq!((wait(first), wait(third)), (Ok(vec!["ba".into()]), Ok(vec!["f".into()])));
}

#[test]
fn nobody_works_for_a_client_that_has_gone() {
    let (bench, go) = bench(one_worker(100), true);
    let first = bench.batcher.submit(sentences(&["ab"])).unwrap();
    bench.begun.recv().unwrap();
    drop(bench.batcher.submit(sentences(&["gone"])).unwrap());
    let third = bench.batcher.submit(sentences(&["cd"])).unwrap();
    // Under way and given up: the engine hears that it is not wanted.
    drop(first);
    go.send(()).unwrap();
    assert_eq!(wait(third), Ok(vec!["dc".into()]));
    assert_eq!(*bench.engine.batches.lock().unwrap(), [vec!["ab"], vec!["cd"]]);
    assert_eq!(bench.metrics.given_up.get(), 1);
}

#[test]
fn a_panic_costs_the_sentence_that_caused_it() {
    let (bench, go) = bench(one_worker(100), true);
    let first = bench.batcher.submit(sentences(&["ab"])).unwrap();
    bench.begun.recv().unwrap();
    let tickets = ["cd", "panic", "ef"].map(|t| bench.batcher.submit(sentences(&[t])).unwrap());
    go.send(()).unwrap();
    wait(first).unwrap();
    let outcomes = tickets.map(wait);
    assert_eq!(outcomes, [Ok(vec!["dc".into()]), Err(Failure::Panic), Ok(vec!["fe".into()])]);
    let after = bench.batcher.submit(sentences(&["gh"])).unwrap();
    assert_eq!(wait(after), Ok(vec!["hg".into()]));
    assert_eq!(bench.metrics.panics.get(), 2);
}

#[test]
fn closing_finishes_what_waits() {
    let (bench, go) = bench(one_worker(100), true);
    let tickets = ["ab", "cd"].map(|t| bench.batcher.submit(sentences(&[t])).unwrap());
    go.send(()).unwrap();
    bench.batcher.close();
    assert_eq!(tickets.map(wait), [Ok(vec!["ba".into()]), Ok(vec!["dc".into()])]);
    assert_eq!(bench.batcher.submit(sentences(&["ef"])).unwrap_err(), Failure::Closing);
}

#[test]
fn growth_is_told_to_who_follows() {
    let (bench, _) = bench(one_worker(100), false);
    let (to, mut from) = mpsc::channel(8);
    let mut followed = sentences(&["ab"]);
    followed[0].progress = Some((7, to));
    wait(bench.batcher.submit(followed).unwrap()).unwrap();
    assert_eq!(from.blocking_recv(), Some(Growth { sentence: 7, part: 0, text: "ba".into() }));
    assert_eq!(from.blocking_recv(), None);
}
