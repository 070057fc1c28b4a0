//! The exact state of a run, and the files that hold it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::checkpoint;
use super::plan::{Plan, StepTimings};
use regard_core::{Error, Result};

/// The best validation so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Best {
    pub(super) step: u64,
    /// In the chosen metric; higher is better.
    pub(super) score: f64,
    pub(super) loss: f64,
    pub(super) bleu: f64,
    pub(super) chrf: f64,
}

impl Best {
    /// Whether this is better by more than `margin`; without a margin, the loss decides between
    /// equal scores (such as BLEU 0 in the beginning).
    pub(super) fn beats(&self, other: &Best, margin: f64) -> bool {
        let more = self.score - other.score;
        more > margin || (more == 0.0 && margin == 0.0 && self.loss < other.loss)
    }
}

/// Weights kept for averaging.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) step: u64,
    pub(super) score: Option<f64>,
}

/// The state of a run, except the vectors of weights and moments.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) step: u64,
    pub(super) epoch: u64,
    /// The number of completed batches of the epoch.
    pub(super) position: u64,
    pub(super) seed: u64,
    /// A hash of the corpus, which must be the same.
    pub(super) corpus: u64,
    pub(super) plan: Option<Plan>,
    /// The measured durations of a run with a time limit.
    #[serde(default, rename = "pace")]
    pub(super) timings: StepTimings,
    pub(super) best: Option<Best>,
    /// The number of validations since the best.
    #[serde(rename = "waited")]
    pub(super) validations_since_best: u64,
    pub(super) snapshots: Vec<Snapshot>,
    pub(super) log_length: u64,
    /// The training time so far, and the total time.
    pub(super) seconds: f64,
    pub(super) all_seconds: f64,
    /// The number of target tokens so far.
    pub(super) tokens: u64,
    /// Loss, tokens and seconds since the last line of the log.
    pub(super) pending: (f64, u64, f64),
    /// The same for the loss without label smoothing.
    #[serde(default)]
    pub(super) pending_nll: f64,
    /// The running mean of the loss and its minimum.
    pub(super) running: Option<(f64, f64)>,
    pub(super) finished: bool,
}

/// An upper bound of steps, epochs, batches and tokens; larger values are invalid.
const MAX_COUNT: u64 = 1 << 53;

impl State {
    /// Rejects impossible numbers: the file may be forged, and its numbers are used in
    /// calculations.
    fn check(&self) -> std::result::Result<(), String> {
        let counts = [
            ("step", self.step),
            ("epoch", self.epoch),
            ("position", self.position),
            ("tokens", self.tokens),
            ("waited", self.validations_since_best),
            ("pending tokens", self.pending.1),
            ("planned steps", self.plan.as_ref().map_or(0, |plan| plan.steps)),
            ("warm-up", self.plan.as_ref().map_or(0, |plan| plan.schedule.warmup)),
            ("next validation", self.plan.as_ref().map_or(0, |plan| plan.next_validation)),
            ("next checkpoint", self.plan.as_ref().map_or(0, |plan| plan.next_save)),
            ("validation interval", self.plan.as_ref().map_or(0, |plan| plan.interval)),
        ];
        if let Some((name, value)) = counts.iter().find(|(_, value)| *value > MAX_COUNT) {
            return Err(format!("{name} {value} is more than a run can have"));
        }
        let times =
            [self.seconds, self.all_seconds, self.pending.2, self.timings.per_step, self.timings.validation];
        if let Some(seconds) = times.iter().find(|s| !(s.is_finite() && **s >= 0.0)) {
            return Err(format!("{seconds} seconds is not a duration"));
        }
        if let Some(plan) = &self.plan {
            plan.schedule.check().map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}

/// Reads the state and the vectors of a run whose model has `length` weights.
fn read_state(path: &Path, length: usize) -> Result<(State, Vec<Vec<f32>>)> {
    let (state, vectors) = checkpoint::read::<State>(path, length)?;
    check_state(&state, &vectors)
        .map_err(|why| Error::file(path, format!("this checkpoint cannot be used: {why}")))?;
    Ok((state, vectors))
}

fn check_state(state: &State, vectors: &[Vec<f32>]) -> std::result::Result<(), String> {
    if !(3..=4).contains(&vectors.len()) {
        return Err(format!(
            "it has {} vectors; weights, two moments and perhaps an average are 3 or 4",
            vectors.len()
        ));
    }
    state.check()
}

/// Reads arbitrary bytes as a checkpoint: gives an error or its contents, never a panic. For
/// fuzzing.
#[cfg(any(test, feature = "fuzzing"))]
pub fn read_anything(bytes: &[u8]) {
    let mut sealed = bytes.to_vec();
    // Otherwise nearly all of them would be rejected for their checksums.
    checkpoint::seal(&mut sealed);
    let stored = sealed.get(40..48).and_then(|field| field.first_chunk()).copied().map(u64::from_le_bytes);
    for bytes in [bytes, &sealed] {
        for length in [3, stored.and_then(|n| usize::try_from(n).ok()).unwrap_or(0)] {
            if let Ok((state, vectors)) = checkpoint::parse::<State>(bytes, length) {
                assert!(vectors.iter().all(|vector| vector.len() <= length));
                let all: usize = vectors.iter().map(Vec::len).sum();
                assert!(4 * all <= bytes.len());
                let _ = check_state(&state, &vectors);
            }
        }
    }
}

/// The folder of checkpoints.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    /// The states on disk, newest first, and the snapshots that each needs.
    states: Vec<(PathBuf, Vec<u64>)>,
}

/// The number of states to keep: the last, and one more in case it is damaged.
const STATES: usize = 2;
pub(super) const STATE: &str = "state";
pub(super) const WEIGHTS: &str = "weights";

impl Store {
    /// Opens the folder and reads the newest intact state: the head and its vectors. Reports
    /// damaged states to `note`.
    #[expect(clippy::type_complexity)]
    pub(super) fn open(
        folder: &Path,
        length: usize,
        note: &mut dyn FnMut(&str),
    ) -> Result<(Self, Option<(State, Vec<Vec<f32>>)>)> {
        let mut store = Store { folder: folder.to_owned(), states: Vec::new() };
        let mut newest = None;
        for (_, path) in checkpoint::list(folder, STATE)? {
            if newest.is_some() {
                // An older state is read only if the newest is damaged; assume that it needs all
                // snapshots.
                let all = checkpoint::list(folder, WEIGHTS)?.into_iter().map(|(step, _)| step).collect();
                store.states.push((path, all));
                continue;
            }
            match read_state(&path, length) {
                Ok((state, vectors)) => {
                    store.states.push((path, state.snapshots.iter().map(|s| s.step).collect()));
                    newest = Some((state, vectors));
                }
                Err(e) => note(&format!("{e}; the one before it is used")),
            }
        }
        Ok((store, newest))
    }

    /// Whether the folder has any state, intact or not.
    pub(super) fn any(folder: &Path) -> bool {
        checkpoint::list(folder, STATE).is_ok_and(|found| !found.is_empty())
    }

    /// Saves a state, then removes what neither it nor the previous one needs.
    pub(super) fn save(&mut self, state: &State, vectors: &[&[f32]]) -> Result<()> {
        let path = checkpoint::place(&self.folder, STATE, state.step);
        checkpoint::write(&path, state, vectors)?;
        self.states.retain(|(p, _)| *p != path);
        self.states.insert(0, (path, state.snapshots.iter().map(|s| s.step).collect()));
        self.states.truncate(STATES);
        let remove = |path: &Path| match fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(path, e)),
            _ => Ok(()),
        };
        for (_, path) in checkpoint::list(&self.folder, STATE)? {
            if !self.states.iter().any(|(p, _)| *p == path) {
                remove(&path)?;
            }
        }
        for (step, path) in checkpoint::list(&self.folder, WEIGHTS)? {
            if !self.states.iter().any(|(_, needed)| needed.contains(&step)) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Saves weights for averaging.
    pub(super) fn save_weights(&self, step: u64, weights: &[f32]) -> Result<()> {
        checkpoint::write(&checkpoint::place(&self.folder, WEIGHTS, step), &step, &[weights])
    }

    /// The mean of the weights of these steps, as far as they are readable; `None` if fewer than
    /// two are.
    pub(super) fn average(&self, steps: &[u64], length: usize) -> Option<Vec<f32>> {
        let mut sum = vec![0f64; length];
        let mut count = 0;
        for &step in steps {
            let read = checkpoint::read::<u64>(&checkpoint::place(&self.folder, WEIGHTS, step), length);
            let Ok((_, vectors)) = read else { continue };
            let Some(weights) = vectors.first() else { continue };
            sum.iter_mut().zip(weights).for_each(|(s, w)| *s += f64::from(*w));
            count += 1;
        }
        (count >= 2).then(|| sum.iter().map(|s| (s / f64::from(count)) as f32).collect())
    }
}

/// Keeps the last `n` and the best `n` snapshots, ordered by step.
pub(super) fn keep(snapshots: &mut Vec<Snapshot>, n: usize) {
    let wanted: Vec<u64> = last(snapshots, n).into_iter().chain(best(snapshots, n)).collect();
    snapshots.retain(|s| wanted.contains(&s.step));
}

/// The steps of the last `n` snapshots.
pub(super) fn last(snapshots: &[Snapshot], n: usize) -> Vec<u64> {
    snapshots[snapshots.len().saturating_sub(n)..].iter().map(|s| s.step).collect()
}

/// The steps of the `n` snapshots with the best scores, ordered by step.
pub(super) fn best(snapshots: &[Snapshot], n: usize) -> Vec<u64> {
    let mut scored: Vec<(f64, u64)> = snapshots.iter().filter_map(|s| Some((s.score?, s.step))).collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
    let mut steps: Vec<u64> = scored.into_iter().take(n).map(|(_, step)| step).collect();
    steps.sort_unstable();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_of_any_kind() {
        regard_core::formats::fuzzing::damage_seeds("checkpoint", read_anything);
    }

    use crate::TrainConfig;
    use regard_core::model::Preset;

    fn state(step: u64, snapshots: &[u64]) -> State {
        let snapshots = snapshots.iter().map(|&step| Snapshot { step, score: None }).collect();
        State { step, snapshots, ..State::default() }
    }

    #[test]
    fn a_damaged_state_gives_way_to_the_one_before() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, none) = Store::open(folder.path(), 2, &mut |_| ()).unwrap();
        assert!(none.is_none());
        let vectors: [&[f32]; 3] = [&[1.0, 2.0], &[3.0, 4.0], &[5.0, 6.0]];
        for step in [1, 2, 3] {
            store.save_weights(step, vectors[0]).unwrap();
            let needed: Vec<u64> = (step.max(2) - 1..=step).collect();
            store.save(&state(step, &needed), &vectors).unwrap();
        }
        assert_eq!(checkpoint::list(folder.path(), STATE).unwrap().len(), STATES);
        // State 2 still needs the weights of step 1.
        assert_eq!(checkpoint::list(folder.path(), WEIGHTS).unwrap().len(), 3);
        let newest = checkpoint::place(folder.path(), STATE, 3);
        let bytes = fs::read(&newest).unwrap();
        fs::write(&newest, &bytes[..bytes.len() / 2]).unwrap();
        let mut notes = String::new();
        let (_, found) = Store::open(folder.path(), 2, &mut |text| notes += text).unwrap();
        let (found, read) = found.unwrap();
        assert_eq!((found.step, read[2].as_slice()), (2, vectors[2]));
        assert!(notes.contains("it is cut off") && notes.contains("the one before it is used"), "{notes}");
    }

    #[test]
    fn a_state_that_no_run_has_is_refused() {
        let vectors = vec![vec![0.0]; 3];
        assert!(check_state(&state(7, &[]), &vectors).is_ok());
        assert!(check_state(&state(7, &[]), &vectors[..2]).unwrap_err().starts_with("it has 2 vectors"));
        let wrong = |change: fn(&mut State)| {
            let mut state = state(7, &[]);
            change(&mut state);
            check_state(&state, &vectors).unwrap_err()
        };
        assert!(wrong(|s| s.step = u64::MAX).starts_with("step 18446744073709551615 is more"));
        assert!(wrong(|s| s.tokens = u64::MAX).starts_with("tokens "));
        assert_eq!(wrong(|s| s.all_seconds = -1.0), "-1 seconds is not a duration");
    }

    /// Writes the seeds of the fuzz target: `cargo test -p regard-train
    /// seeds_of_the_checkpoint_target -- --ignored`.
    #[test]
    #[ignore = "writes files of the repository"]
    fn seeds_of_the_checkpoint_target() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/checkpoint");
        let vectors: [&[f32]; 4] = [&[1.0, -2.0, 0.5]; 4];
        let mut planned = state(12, &[4, 8, 12]);
        let config = TrainConfig { minutes: Some(1.0), ..TrainConfig::new(Preset::Tiny) };
        Plan::update(&mut planned.plan, &mut planned.timings, &config, 30.0, 12);
        planned.best = Some(Best { step: 8, score: 1.5, loss: 2.0, bleu: 1.5, chrf: 9.0 });
        planned.running = Some((3.0, 2.5));
        checkpoint::write(&folder.join("planned.ckpt"), &planned, &vectors).unwrap();
        checkpoint::write(&folder.join("first.ckpt"), &state(0, &[]), &vectors[..3]).unwrap();
    }

    /// A resumed run compares later scores with the best one: an average with the same score as the
    /// best step must not beat it by the last bit of a number that was read a little smaller.
    #[test]
    fn scores_are_read_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.ckpt");
        let vectors = [&[1.0f32][..]; 3];
        let mut random = 0x9E37_79B9_7F4A_7C15_u64;
        for n in 0..50 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n);
            let score = random as f64 / u64::MAX as f64;
            let mut written = state(12, &[]);
            written.best = Some(Best { step: 8, score, loss: 4.0 + score, bleu: score, chrf: 9.0 * score });
            checkpoint::write(&file, &written, &vectors).unwrap();
            assert_eq!(read_state(&file, 1).unwrap().0, written);
        }
    }

    #[test]
    fn averages_and_what_is_kept_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store { folder: folder.path().to_owned(), states: Vec::new() };
        store.save_weights(1, &[1.0, 10.0]).unwrap();
        store.save_weights(2, &[2.0, 20.0]).unwrap();
        assert_eq!(store.average(&[1, 2, 3], 2), Some(vec![1.5, 15.0]));
        assert_eq!(store.average(&[1, 3], 2), None);

        let scores = [Some(5.0), Some(1.0), None, Some(9.0), Some(2.0), None];
        let mut snapshots: Vec<Snapshot> =
            scores.iter().enumerate().map(|(i, &score)| Snapshot { step: i as u64, score }).collect();
        assert_eq!((last(&snapshots, 2), best(&snapshots, 2)), (vec![4, 5], vec![0, 3]));
        keep(&mut snapshots, 2);
        assert_eq!(snapshots.iter().map(|s| s.step).collect::<Vec<_>>(), [0, 3, 4, 5]);
        keep(&mut snapshots, 0);
        assert!(snapshots.is_empty());
    }
}
