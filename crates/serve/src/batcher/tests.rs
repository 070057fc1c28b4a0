use super::*;
use regard_core::translator::Candidate;
use std::sync::mpsc as channel;

/// Reverses text; waits when told to, and panics at `panic`.
struct Reverse {
    batches: Mutex<Vec<Vec<String>>>,
    hold: Mutex<Option<channel::Receiver<()>>>,
    begun: channel::Sender<()>,
}

impl BatchTranslator for Reverse {
    fn beam(&self, nbest: usize) -> usize {
        nbest.max(4)
    }

    fn translate(
        &self,
        lines: &[&str],
        _: &[LineTerms],
        search: Search,
        _: usize,
        observer: &dyn LineObserver,
    ) -> regard_core::Result<Vec<Line>> {
        let _ = self.begun.send(());
        if let Some(hold) = self.hold.lock().unwrap().take() {
            let _ = hold.recv();
        }
        self.batches.lock().unwrap().push(lines.iter().map(|l| l.to_string()).collect());
        assert!(!lines.contains(&"panic"), "told to");
        let line = |(i, text): (usize, &&str)| {
            let reversed: String = text.chars().rev().collect();
            observer.on_progress(i, 0, &reversed);
            let candidate = Candidate {
                text: if observer.is_active(i) { reversed } else { String::new() },
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

/// With `held`, the first batch waits until the returned sender sends.
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
    Batching { max_batch: 4, wait: Duration::ZERO, queue, workers: 1, cores: 1, ..Batching::default() }
}

fn sentences(texts: &[&str]) -> Vec<QueuedSentence> {
    let search = Search { nbest: 1, attention: false, attempt: Attempt::Plain, pair: None };
    let sentence = |text: &&str| QueuedSentence::new(text.to_string(), search);
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
    // Requests that were dropped make room.
    drop(second);
    let third = bench.batcher.submit(sentences(&["f"])).unwrap();
    go.send(()).unwrap();
    assert_eq!((wait(first), wait(third)), (Ok(vec!["ba".into()]), Ok(vec!["f".into()])));
}

#[test]
fn requests_take_turns() {
    let (bench, go) = bench(one_worker(10), true);
    let first = bench.batcher.submit(sentences(&["x"])).unwrap();
    bench.begun.recv().unwrap();
    let long: Vec<String> = (0..30).map(|n| format!("long {n}")).collect();
    let long = sentences(&long.iter().map(String::as_str).collect::<Vec<_>>());
    // The request is longer than the queue, but delays others by at most one batch.
    let long = bench.batcher.submit(long).unwrap();
    let short = bench.batcher.submit(sentences(&["a", "b", "c"])).unwrap();
    let single = bench.batcher.submit(sentences(&["d"])).unwrap();
    go.send(()).unwrap();
    wait(first).unwrap();
    assert_eq!(wait(short), Ok(["a", "b", "c"].map(str::to_owned).into()));
    assert_eq!(wait(single), Ok(vec!["d".to_owned()]));
    assert_eq!(wait(long).unwrap().len(), 30);
    let batches = bench.engine.batches.lock().unwrap();
    assert_eq!(batches[1], ["long 0", "a", "d", "long 1"]);
    assert_eq!(batches[2], ["b", "long 2", "c", "long 3"]);
    assert!(batches[1..].iter().rev().skip(1).all(|batch| batch.len() == 4), "{batches:?}");
}

#[test]
fn long_requests_do_not_lock_others_out() {
    let (bench, go) = bench(one_worker(10), true);
    let first = bench.batcher.submit(sentences(&["x"])).unwrap();
    bench.begun.recv().unwrap();
    let submit = |count: usize| bench.batcher.submit(sentences(&vec!["s"; count]));
    let long = submit(1000).unwrap();
    // Further long requests would only take memory; short ones are still accepted as long as the
    // queue has room.
    assert_eq!(submit(5).unwrap_err(), Failure::Full);
    let short: Vec<Ticket> = (0..6).map(|_| submit(1).unwrap()).collect();
    assert_eq!(submit(1).unwrap_err(), Failure::Full);
    assert_eq!(bench.batcher.waiting(), 1006);
    // A dropped request leaves the queue completely.
    drop(long);
    let last = submit(4).unwrap();
    assert_eq!((bench.batcher.waiting(), bench.metrics.cancelled.get()), (10, 1000));
    go.send(()).unwrap();
    for ticket in short.into_iter().chain([first, last]) {
        wait(ticket).unwrap();
    }
}

#[test]
fn a_request_that_would_wait_too_long_is_refused_at_once() {
    let batching = Batching { max_wait: Duration::from_secs(2), ..one_worker(100) };
    let (bench, go) = bench(batching.clone(), true);
    let first = bench.batcher.submit(sentences(&["x"])).unwrap();
    bench.begun.recv().unwrap();
    // Half a second per sentence: four may wait, and a long request counts as one batch at most.
    bench.batcher.shared.lock().seconds_per_sentence = Some(0.5);
    let mut waiting = vec![first, bench.batcher.submit(sentences(&["s"; 50])).unwrap()];
    waiting.push(bench.batcher.submit(sentences(&["a"])).unwrap());
    let refusal = bench.batcher.submit(sentences(&["b"])).unwrap_err();
    assert_eq!(refusal, Failure::WaitTooLong(Duration::from_millis(500)));
    assert_eq!(bench.batcher.reserve().err(), Some(refusal), "before any work is done for it");
    // Requests with earlier work continue, and dropped requests make room.
    waiting.push(bench.batcher.submit_as(Submission::Later, sentences(&["c"])).unwrap());
    drop(waiting.remove(1));
    waiting.push(bench.batcher.submit(sentences(&["d"])).unwrap());
    // Three wait; two more may be parsed, and a third when one of those is done.
    let two = [(); 2].map(|()| bench.batcher.reserve().unwrap());
    assert!(bench.batcher.reserve().is_err());
    drop(two);
    assert!(bench.batcher.reserve().is_ok());
    go.send(()).unwrap();
    for ticket in waiting {
        wait(ticket).unwrap();
    }
}

#[test]
fn the_pace_is_that_of_batches_behind_which_others_wait() {
    let mut queue = Queue::default();
    let batching = Batching { max_wait: Duration::from_secs(1), ..one_worker(100) };
    assert_eq!(queue.excess_wait(&batching, 0), None, "nothing is known");
    queue.ran(10, Duration::from_secs(4), 2);
    assert_eq!(queue.seconds_per_sentence, Some(0.2));
    queue.ran(1, Duration::from_millis(700), 1);
    assert!((queue.seconds_per_sentence.unwrap() - 0.3).abs() < 1e-9, "{:?}", queue.seconds_per_sentence);
    assert_eq!(queue.excess_wait(&batching, 0), None, "nobody waits");
}

#[test]
fn no_sentences_need_no_turn() {
    let (bench, _) = bench(one_worker(1), false);
    assert_eq!(wait(bench.batcher.submit(Vec::new()).unwrap()), Ok(Vec::new()));
    assert_eq!(bench.batcher.waiting(), 0);
}

#[test]
fn nobody_works_for_a_client_that_has_gone() {
    let (bench, go) = bench(one_worker(100), true);
    let first = bench.batcher.submit(sentences(&["ab"])).unwrap();
    bench.begun.recv().unwrap();
    drop(bench.batcher.submit(sentences(&["gone"])).unwrap());
    let third = bench.batcher.submit(sentences(&["cd"])).unwrap();
    // A running search that is cancelled sees that its result is no longer wanted.
    drop(first);
    go.send(()).unwrap();
    assert_eq!(wait(third), Ok(vec!["dc".into()]));
    assert_eq!(*bench.engine.batches.lock().unwrap(), [vec!["ab"], vec!["cd"]]);
    assert_eq!(bench.metrics.cancelled.get(), 1);
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
    assert_eq!(from.blocking_recv(), Some(Progress { sentence: 7, part: 0, text: "ba".into() }));
    assert_eq!(from.blocking_recv(), None);
}
