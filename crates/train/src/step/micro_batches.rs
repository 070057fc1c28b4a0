//! Divides the batches of a step over the replicas, and each part into micro-batches.

use regard_core::batch::Batch;

/// The approximate number of source and target tokens in a micro-batch, R-Drop's second copies
/// included. Fewer tokens keep the values of a pass in cache and the memory small; more make better
/// use of each matrix that is read. With tiny, small and base, 1,024 and 2,048 are as fast as no
/// limit.
const TOKENS: usize = 1024;

/// What a replica takes forward and backward at once: pairs of one batch.
#[derive(Debug)]
pub(super) struct MicroBatch {
    pub(super) pairs: Batch,
    /// The number of the batch.
    pub(super) batch: u64,
}

/// The micro-batches of each of `replicas` replicas, in order; with R-Drop, every pair is in its
/// micro-batch `twice`.
pub(super) fn micro_batches(
    batches: &[Batch],
    replicas: usize,
    twice: bool,
    cost: impl Fn(usize, usize) -> f64,
) -> Vec<Vec<MicroBatch>> {
    let mut all: Vec<Vec<MicroBatch>> = (0..replicas).map(|_| Vec::new()).collect();
    for (batch, number) in batches.iter().zip(0..) {
        for (range, micro_batches) in batch.split_by_cost(replicas, &cost).into_iter().zip(&mut all) {
            let part = batch.part(range);
            let tokens = (part.source.ids().len() + part.target_tokens()) * if twice { 2 } else { 1 };
            for range in part.split_by_cost(tokens.div_ceil(TOKENS), &cost) {
                let pairs = part.part(range);
                let pairs = if twice { pairs.twice() } else { pairs };
                micro_batches.push(MicroBatch { pairs, batch: number });
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of pairs with this many source and target tokens; their ids are all different.
    fn batch(lengths: &[(usize, usize)]) -> Batch {
        let mut next = 0..;
        let pairs: Vec<(Vec<u32>, Vec<u32>)> = lengths
            .iter()
            .map(|&(s, t)| (next.by_ref().take(s).collect(), next.by_ref().take(t).collect()))
            .collect();
        Batch::new(pairs.iter().map(|(s, t)| (&s[..], &t[..])), 0).unwrap()
    }

    #[test]
    fn every_pair_is_in_one_micro_batch_of_limited_size() {
        let lengths = |n: usize| (0..n).map(|i| (5 + i % 20, 3 + i % 31)).collect::<Vec<_>>();
        let batches = [batch(&lengths(200)), batch(&[(1500, 1500)]), batch(&lengths(1)), batch(&lengths(90))];
        for replicas in [1, 2, 3, 7] {
            for twice in [false, true] {
                let found = micro_batches(&batches, replicas, twice, |s, t| (s + t) as f64);
                assert_eq!(found.len(), replicas);
                for (number, batch) in batches.iter().enumerate() {
                    let of_batch =
                        found.iter().flatten().filter(|micro_batch| micro_batch.batch == number as u64);
                    let mut output = Vec::new();
                    for MicroBatch { pairs, .. } in of_batch {
                        let once = pairs.output.len() / if twice { 2 } else { 1 };
                        output.extend_from_slice(&pairs.output[..once]);
                        assert_eq!(pairs.output[once..], if twice { &pairs.output[..once] } else { &[] }[..]);
                        let tokens = pairs.source.ids().len() + pairs.output.len();
                        assert!(tokens <= TOKENS + 110 || pairs.pairs() == if twice { 2 } else { 1 });
                    }
                    assert_eq!(output[..], batch.output[..], "{replicas} replicas, batch {number}");
                }
            }
        }
    }
}
