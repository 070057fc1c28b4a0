use super::*;
use crate::{AdamSettings, Overlap, StepSettings, Trainer};
use regard_core::Key;
use regard_core::batch::Batch;
use regard_core::model::{ModelConfig, NormPlace, Preset, Transformer};
use std::sync::{Barrier, Mutex};

/// Threads as ranks: each writes to a shared board and reads what the others wrote.
#[derive(Debug)]
struct Board {
    barrier: Barrier,
    notes: Mutex<Vec<Vec<u8>>>,
}

#[derive(Debug)]
struct OnThread {
    rank: usize,
    board: Arc<Board>,
}

/// Serialises numbers for the board.
fn bytes<T: Copy, const N: usize>(numbers: &[T], to: fn(T) -> [u8; N]) -> Vec<u8> {
    numbers.iter().flat_map(|x| to(*x)).collect()
}

fn numbers<T, const N: usize>(bytes: &[u8], from: fn([u8; N]) -> T) -> impl Iterator<Item = T> {
    bytes.as_chunks::<N>().0.iter().map(move |x| from(*x))
}

/// Conversions to bytes and back.
type Coding<T, const N: usize> = (fn(T) -> [u8; N], fn([u8; N]) -> T);

impl OnThread {
    fn all_to_all<T: Copy, const N: usize>(
        &self,
        out: &[T],
        counts: &[usize],
        into: &mut [T],
        (to, from): Coding<T, N>,
    ) {
        let start: usize = counts[..self.rank].iter().sum();
        let all = self.all_gather_bytes(&bytes(out, to));
        let mine = all.iter().flat_map(|b| numbers(b, from).skip(start).take(counts[self.rank]));
        into.iter_mut().zip(mine.collect::<Vec<_>>()).for_each(|(to, x)| *to = x);
    }

    fn all_gather<T: Copy, const N: usize>(&self, mine: &[T], all: &mut [T], (to, from): Coding<T, N>) {
        let gathered = self.all_gather_bytes(&bytes(mine, to)).concat();
        assert_eq!(gathered.len(), N * all.len());
        all.iter_mut().zip(numbers(&gathered, from)).for_each(|(to, x)| *to = x);
    }
}

impl Communicator for OnThread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.board.notes.lock().unwrap().len()
    }

    fn host(&self) -> String {
        "a thread".into()
    }

    fn all_gather_bytes(&self, mine: &[u8]) -> Vec<Vec<u8>> {
        self.board.notes.lock().unwrap()[self.rank] = mine.to_vec();
        self.board.barrier.wait();
        let all = self.board.notes.lock().unwrap().clone();
        self.board.barrier.wait();
        all
    }

    fn broadcast(&self, data: &mut Vec<u8>) {
        *data = self.all_gather_bytes(data).swap_remove(0);
    }

    fn broadcast_f32(&self, data: &mut [f32]) {
        let first = self.all_gather_bytes(&bytes(data, f32::to_le_bytes)).swap_remove(0);
        data.iter_mut().zip(numbers(&first, f32::from_le_bytes)).for_each(|(to, x)| *to = x);
    }

    fn all_to_all_f32(&self, out: &[f32], counts: &[usize], into: &mut [f32]) {
        self.all_to_all(out, counts, into, (f32::to_le_bytes, f32::from_le_bytes));
    }

    fn all_to_all_u16(&self, out: &[u16], counts: &[usize], into: &mut [u16]) {
        self.all_to_all(out, counts, into, (u16::to_le_bytes, u16::from_le_bytes));
    }

    fn all_gather_f32(&self, mine: &[f32], _: &[usize], all: &mut [f32]) {
        self.all_gather(mine, all, (f32::to_le_bytes, f32::from_le_bytes));
    }

    fn all_gather_u16(&self, mine: &[u16], _: &[usize], all: &mut [u16]) {
        self.all_gather(mine, all, (u16::to_le_bytes, u16::from_le_bytes));
    }

    fn abort(&self, status: i32) -> ! {
        panic!("aborted with {status}")
    }
}

/// Runs `f` on this many ranks.
fn on_ranks<R: Send>(ranks: usize, f: impl Fn(Arc<dyn Communicator>) -> R + Sync) -> Vec<R> {
    let board = Arc::new(Board { barrier: Barrier::new(ranks), notes: Mutex::new(vec![Vec::new(); ranks]) });
    std::thread::scope(|scope| {
        let start = |rank| {
            let (board, f) = (Arc::clone(&board), &f);
            scope.spawn(move || f(Arc::new(OnThread { rank, board })))
        };
        let threads: Vec<_> = (0..ranks).map(start).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

fn gradient(rank: usize, length: usize) -> Vec<f32> {
    (0..length).map(|i| ((i * 31 + rank * 17) % 101) as f32 * 0.013 - 0.5 + rank as f32 * 1e-3).collect()
}

/// For lengths around a piece and a bucket: the sum is in rank order, the squares are right, and
/// all ranks get all weights.
#[test]
fn sums_are_those_of_one_rank_after_the_other() {
    let isa = Isa::best();
    for (ranks, length) in [(2, 1), (3, PIECE - 1), (3, PIECE + 1), (2, 5 * PIECE), (3, 130 * PIECE + 7)] {
        let mut expected = gradient(0, length);
        (1..ranks).for_each(|r| add(isa, &mut expected, &gradient(r, length)));
        let squares: f64 = expected.chunks(PIECE).map(|piece| sum_of_squares(isa, piece)).sum();
        let results = on_ranks(ranks, |communicator| {
            let mut vector = gradient(communicator.rank(), length);
            let mut exchange = Exchange::new(communicator, DType::F32, length, BUCKET);
            let found = exchange.reduce_scatter(isa, 2, &mut vector);
            exchange.all_gather(&mut vector);
            (vector, found)
        });
        for (vector, found) in results {
            assert!(vector == expected, "{ranks} ranks, {length} numbers");
            assert_eq!(found, squares, "{ranks} ranks, {length} numbers");
        }
    }
}

#[test]
fn every_piece_has_one_owner() {
    for (ranks, length) in [(2, 3 * PIECE), (3, 200 * PIECE + 1), (5, PIECE)] {
        let owners =
            on_ranks(ranks, |communicator| Exchange::new(communicator, DType::F32, length, BUCKET).owns());
        for piece in 0..length.div_ceil(PIECE) {
            assert_eq!(owners.iter().filter(|owns| owns[piece]).count(), 1, "piece {piece} of {ranks} ranks");
        }
    }
}

#[test]
fn sixteen_bits_are_rounded_to_even_and_keep_what_is_not_a_number() {
    let rounded = |x: f32| {
        let mut to = [0];
        to_bf16(&mut to, [x].into_iter());
        bf16::to_f32(to[0])
    };
    assert_eq!(rounded(1.0), 1.0);
    assert_eq!(rounded(-0.15625), -0.15625);
    assert_eq!(rounded(1.0 + 1.0 / 256.0), 1.0);
    assert_eq!(rounded(1.0 + 3.0 / 256.0), 1.0 + 4.0 / 256.0);
    assert_eq!(rounded(f32::MAX), f32::INFINITY);
    assert_eq!(rounded(f32::NEG_INFINITY), f32::NEG_INFINITY);
    assert!(rounded(f32::NAN).is_nan() && rounded(f32::from_bits(0x7f80_0001)).is_nan());
}

fn trainer(threads: usize) -> Trainer {
    trainer_with(threads, None)
}

fn trainer_with(threads: usize, muon: Option<f32>) -> Trainer {
    let config = ModelConfig { d_model: 16, heads: 2, d_ff: 32, ..Preset::Tiny.config(50) };
    let model = Transformer::new(config).unwrap();
    let weights = model.parameters().initialise(3);
    let settings = StepSettings {
        adam: AdamSettings { clip: Some(0.5), ..AdamSettings::default() },
        muon,
        ..StepSettings::default()
    };
    Trainer::new(model, weights, settings, Isa::best(), threads, 7).unwrap()
}

fn batch(step: u32) -> Batch {
    let pairs: Vec<(Vec<u32>, Vec<u32>)> = (0..12u32)
        .map(|i| ((0..3 + i % 5).map(|j| (i * 7 + j * 3 + step) % 49).collect(), vec![(i + step) % 49; 4]))
        .collect();
    Batch::new(pairs.iter().map(|(s, t)| (&s[..], &t[..])), 49).unwrap()
}

fn run(trainer: &mut Trainer) -> (Vec<f64>, Vec<f32>, [Vec<f32>; 2]) {
    let step = |n| {
        let report = trainer.step(&[batch(n)], 1e-3).unwrap();
        assert!(report.applied && !report.stop);
        report.loss
    };
    let losses = (0..20).map(step).collect();
    trainer.collect_moments();
    let (first, second) = trainer.moments();
    (losses, trainer.weights().to_vec(), [first.to_vec(), second.to_vec()])
}

#[test]
fn ranks_of_one_core_train_as_one_rank_of_all_cores() {
    for (ranks, muon) in [(2, None), (3, None), (2, Some(0.2)), (3, Some(0.2))] {
        let alone = run(&mut trainer_with(ranks, muon));
        let together = on_ranks(ranks, |communicator| {
            let mut trainer = trainer_with(1, muon);
            trainer.join(communicator, DType::F32, Overlap::Off).unwrap();
            run(&mut trainer)
        });
        assert!(together.iter().all(|run| *run == alone), "{ranks} ranks, Muon {muon:?}");
    }
}

/// A model of random dimensions.
fn random_config(seed: u64) -> ModelConfig {
    let key = Key::new(seed);
    let below = |i: u32, n: u32| (key.bits(i) % n) as usize;
    let heads = 1 + below(0, 3);
    ModelConfig {
        heads,
        d_model: 2 * heads * (1 + below(1, 12)),
        d_ff: 1 + below(2, 80),
        encoder_layers: 1 + below(3, 2),
        decoder_layers: 1 + below(4, 2),
        norm: [NormPlace::Post, NormPlace::Pre][below(5, 2)],
        gated: below(6, 2) == 1,
        ..Preset::Tiny.config(50)
    }
}

/// Models of random dimensions: one step on one core, and on two and three ranks with one core
/// each.
#[test]
fn random_models_learn_the_same_on_one_two_and_three_ranks() {
    for seed in 0..12 {
        let config = random_config(seed);
        let trainer = || {
            let model = Transformer::new(config.clone()).unwrap();
            let weights = model.parameters().initialise(seed);
            Trainer::new(model, weights, StepSettings::default(), Isa::best(), 1, seed).unwrap()
        };
        let step = |trainer: &mut Trainer| {
            let report = trainer.step(&[batch(seed as u32)], 1e-3).unwrap();
            (report.loss, report.gradient_norm)
        };
        let (loss, norm) = step(&mut trainer());
        for ranks in [2, 3] {
            let reports = on_ranks(ranks, |communicator| {
                let mut trainer = trainer();
                trainer.join(communicator, DType::F32, Overlap::Off).unwrap();
                step(&mut trainer)
            });
            for (other, other_norm) in reports {
                assert!((other - loss).abs() < 1e-5 * loss, "{ranks} ranks, {config:?}: {other} and {loss}");
                let near = (other_norm - norm).abs() < 1e-4 * norm;
                assert!(near, "{ranks} ranks, {config:?}: {other_norm} and {norm}");
            }
        }
    }
}

/// For every combination of ranks and cores, wire format, norm and accumulation: overlapped steps
/// give the same gradients.
#[test]
fn overlapped_steps_are_the_same_bit_for_bit() {
    let run = |communicator: Arc<dyn Communicator>, wire, overlap, (norm, muon), threads| {
        // A layer has at least two pieces.
        let config = ModelConfig { d_model: 64, d_ff: 512, heads: 2, norm, ..Preset::Tiny.config(50) };
        let model = Transformer::new(config).unwrap();
        let weights = model.parameters().initialise(3);
        let settings = StepSettings {
            adam: AdamSettings { clip: Some(0.5), ..AdamSettings::default() },
            muon,
            ..StepSettings::default()
        };
        let mut trainer = Trainer::new(model, weights, settings, Isa::best(), threads, 7).unwrap();
        trainer.join_in_buckets(communicator, wire, overlap, 2).unwrap();
        let early = trainer.early_buckets();
        let reports: Vec<_> = [vec![batch(0)], vec![batch(1), batch(2)]]
            .iter()
            .map(|batches| trainer.step(batches, 1e-3).unwrap())
            .map(|report| (report.overlapped, report.loss, report.gradient_norm))
            .collect();
        (early, reports, trainer.weights().to_vec())
    };
    for (ranks, threads, wire, model) in [
        (2, 1, DType::F32, (NormPlace::Post, None)),
        (2, 2, DType::Bf16, (NormPlace::Pre, Some(0.2))),
        // More replicas than sentences: some are idle.
        (3, 5, DType::F32, (NormPlace::Pre, None)),
    ] {
        let [late, early] = [Overlap::Off, Overlap::On]
            .map(|overlap| on_ranks(ranks, |communicator| run(communicator, wire, overlap, model, threads)));
        for (late, early) in late.iter().zip(&early) {
            assert!(early.0 > 1, "{} buckets can leave early", early.0);
            assert!(late.1.iter().zip(&early.1).all(|(l, e)| !l.0 && e.0 && l.1 == e.1 && l.2 == e.2));
            assert!(late.2 == early.2, "{ranks} ranks of {threads}");
        }
    }
}

#[test]
fn a_replica_that_fails_leaves_nobody_waiting() {
    let errors = on_ranks(2, |communicator| {
        let mut trainer = trainer(2);
        trainer.join(communicator, DType::F32, Overlap::On).unwrap();
        // An id outside the vocabulary, for the second replica of each rank.
        let words = [[1, 2], [3, 60], [1, 2], [3, 60]];
        let batch = Batch::new(words.iter().map(|w| (&w[..], &w[..])), 49).unwrap();
        trainer.step(&[batch], 1e-3).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|e| e.contains("60")), "{errors:?}");
}

#[test]
fn ranks_of_different_numbers_of_cores_count_their_replicas() {
    let replicas = on_ranks(2, |communicator| {
        let mut trainer = trainer(1 + communicator.rank());
        trainer.join(communicator, DType::F32, Overlap::Off).unwrap();
        (run(&mut trainer).0, trainer.replicas())
    });
    let alone = run(&mut trainer(3)).0;
    assert_eq!((replicas[0].1, replicas[1].1), (3, 3));
    // The order of the sum differs here.
    for (a, b) in replicas[0].0.iter().zip(&alone) {
        assert!((a - b).abs() < 1e-5 * b, "{a} {b}");
    }
}

#[test]
fn on_a_narrow_wire_all_ranks_hold_the_same_weights_and_learn_the_same() {
    let alone = run(&mut trainer(2)).0;
    let runs = on_ranks(2, |communicator| {
        let mut trainer = trainer(1);
        trainer.join(communicator, DType::Bf16, Overlap::Off).unwrap();
        run(&mut trainer)
    });
    assert!(runs[0] == runs[1]);
    assert_ne!(runs[0].0, alone);
    for (a, b) in runs[0].0.iter().zip(&alone) {
        assert!((a - b).abs() < 5e-3 * b, "{a} {b}");
    }
}

#[test]
fn one_rank_that_is_asked_to_stop_tells_all() {
    let stops = on_ranks(3, |communicator| {
        let asked = communicator.rank() == 1;
        let mut trainer = trainer(1);
        trainer.join(communicator, DType::F32, Overlap::Off).unwrap();
        if asked {
            trainer.ask_to_stop();
        }
        trainer.step(&[batch(0)], 1e-3).unwrap().stop
    });
    assert_eq!(stops, [true; 3]);
}
