//! A model prepared for decoding: its matrices packed in f32 or int8.

use crate::model::{Param, Parameter, Role, Transformer};
use crate::{DType, Result};
use regard_kernels::mapped::Int8Values;
use regard_kernels::{Isa, MAX_INT8_K, MarianScales, Mat, MatMut, PackedB, RowScratch, quantize_rows};
use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Instant;

/// The values of one parameter, as read from a file.
#[derive(Clone, Debug)]
pub enum Values<'a> {
    /// Plain f32.
    F32(Cow<'a, [f32]>),
    /// Int8 with a scale for each row.
    Int8 {
        /// In row-major order.
        values: Cow<'a, [i8]>,
        /// One for each row.
        scales: Vec<f32>,
    },
    /// Int8, for inputs quantized like CTranslate2's: multiplied by 127 / their largest magnitude.
    CTranslate2Int8 {
        /// In row-major order.
        values: Cow<'a, [i8]>,
        /// One for each row.
        scales: Vec<f32>,
    },
    /// Int8 as stored by Marian and Firefox, multiplied unchanged with int8 inputs.
    FixedInt8 {
        /// In row-major order; for embeddings, missing rows at the end are zero.
        values: Int8Values,
        /// The quantization multiplier of each row.
        multipliers: Vec<f32>,
        /// The quantization multiplier of the inputs; by default 127 / their largest magnitude.
        input_multiplier: Option<f32>,
    },
}

/// A model ready for decoding. Threads can share it.
#[derive(Debug)]
pub struct Engine {
    model: Transformer,
    isa: Isa,
    /// `F32` or `Int8`.
    dtype: DType,
    /// Keyed by their offset in the flat weight vector.
    matrices: HashMap<usize, PackedB>,
    vectors: HashMap<usize, Vec<f32>>,
}

impl Engine {
    /// Packs the flat weight vector for matmuls in `dtype`: `Int8`, or `F32` for every other
    /// format.
    ///
    /// # Panics
    /// If there are fewer weights than the model has.
    pub fn new(model: &Transformer, weights: &[f32], dtype: DType, isa: Isa) -> Self {
        let mut engine = Self::empty(model.clone(), dtype, isa);
        for parameter in model.parameters() {
            engine.put(parameter, Values::F32(Cow::Borrowed(&weights[parameter.param.range()])));
        }
        engine
    }

    /// Packs one parameter at a time as `read` returns it, so that at most one exists twice in
    /// memory.
    pub fn build<'a>(
        model: &Transformer,
        dtype: DType,
        isa: Isa,
        mut read: impl FnMut(&Parameter) -> Result<Values<'a>>,
    ) -> Result<Self> {
        let mut engine = Self::empty(model.clone(), dtype, isa);
        // Load vectors first: packing a matrix may need its bias.
        for is_matrix in [false, true] {
            for parameter in model.parameters().iter().filter(|p| p.is_matrix() == is_matrix) {
                engine.put(parameter, read(parameter)?);
            }
        }
        Ok(engine)
    }

    /// The bias of the layer with this matrix.
    fn bias_of(&self, matrix: &Parameter) -> Option<&[f32]> {
        if matrix.param == self.model.output() {
            return self.model.output_bias();
        }
        self.vectors.get(&matrix.bias?.offset).map(Vec::as_slice)
    }

    fn empty(model: Transformer, dtype: DType, isa: Isa) -> Self {
        Engine { model, isa, dtype: dtype.for_decoding(), matrices: HashMap::new(), vectors: HashMap::new() }
    }

    fn put(&mut self, parameter: &Parameter, values: Values<'_>) {
        let (at, [rows, cols]) = (parameter.param.offset, parameter.shape);
        if !parameter.is_matrix() {
            self.vectors.insert(at, widened(values, cols).into_owned());
            return;
        }
        let packed = match (self.dtype, values) {
            (_, values) if cols > MAX_INT8_K => PackedB::f32(self.isa, &widened(values, cols), rows, cols),
            (DType::Int8, Values::Int8 { values, scales }) => PackedB::int8(self.isa, &values, &scales, cols),
            (DType::Int8, Values::CTranslate2Int8 { values, scales }) => {
                PackedB::int8_ctranslate2(self.isa, &values, &scales, cols)
            }
            (DType::Int8, Values::FixedInt8 { values, multipliers, input_multiplier }) => {
                let (isa, bias) = (self.isa, self.bias_of(parameter));
                let scales = MarianScales { multipliers: &multipliers, input: input_multiplier, bias };
                match parameter.role {
                    Role::Vocabulary => PackedB::int8_table(isa, values, scales, cols),
                    _ => PackedB::int8_fixed(isa, values.as_slice(), scales, cols),
                }
            }
            (DType::Int8, Values::F32(values)) => {
                let (values, scales) = quantize_rows(&values, cols);
                PackedB::int8(self.isa, &values, &scales, cols)
            }
            (_, values) => PackedB::f32(self.isa, &widened(values, cols), rows, cols),
        };
        self.matrices.insert(at, packed);
    }

    /// The layers.
    pub fn model(&self) -> &Transformer {
        &self.model
    }

    /// The number format of its matmuls: `F32` or `Int8`.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The instruction set it was packed for.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The bias of the logits, unless the packed output matrix includes it.
    pub fn bias(&self) -> Option<&[f32]> {
        let is_packed = self.matrices.get(&self.model.output().offset).is_some_and(PackedB::has_own_bias);
        self.model.output_bias().filter(|_| !is_packed)
    }

    /// The memory that its weights take.
    pub fn bytes(&self) -> usize {
        let bias = self.bias().map(|bias| 4 * bias.len());
        let vectors = self.vectors.values().map(|v| 4 * v.len()).chain(bias);
        self.matrices.values().map(PackedB::bytes).chain(vectors).sum()
    }

    /// The flat weight vector again, for training and attention maps; from int8, the dequantized
    /// values.
    pub fn weights(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.model.parameters().len()];
        for parameter in self.model.parameters() {
            let to = &mut weights[parameter.param.range()];
            match self.matrices.get(&parameter.param.offset) {
                Some(matrix) => {
                    let rows = to.chunks_exact_mut(parameter.shape[1].max(1));
                    rows.enumerate().for_each(|(i, row)| matrix.read_row(i, row));
                }
                None => to.copy_from_slice(self.vector(parameter.param)),
            }
        }
        weights
    }

    pub(super) fn matrix(&self, param: Param) -> &PackedB {
        &self.matrices[&param.offset]
    }

    pub(super) fn vector(&self, param: Param) -> &[f32] {
        &self.vectors[&param.offset]
    }
}

/// The values in f32.
fn widened(values: Values<'_>, cols: usize) -> Cow<'_, [f32]> {
    match values {
        Values::F32(values) => values,
        Values::Int8 { values, scales } | Values::CTranslate2Int8 { values, scales } => {
            let rows = values.chunks_exact(cols.max(1)).zip(scales);
            rows.flat_map(|(row, scale)| row.iter().map(move |&x| f32::from(x) * scale)).collect()
        }
        Values::FixedInt8 { values, multipliers, .. } => {
            // Multiply by the reciprocal, as Marian does.
            let rows = values.as_slice().chunks_exact(cols.max(1)).zip(multipliers.iter().map(|m| 1.0 / m));
            let mut floats: Vec<f32> =
                rows.flat_map(|(row, scale)| row.iter().map(move |&x| f32::from(x) * scale)).collect();
            floats.resize(multipliers.len() * cols, 0.0);
            floats.into()
        }
    }
}

/// Multiply-adds per second of a GEMM that stays in the L1 cache, on this many threads: the peak
/// that other GEMMs are compared with.
pub fn peak_speed(dtype: DType, isa: Isa, threads: usize) -> f64 {
    const SIZE: (usize, usize, usize) = (12, 32, 256);
    // A few milliseconds each; the best of many, because a core takes a while to reach its full
    // speed and other programs may disturb it.
    const TIMES: usize = 1000;
    const TRIALS: usize = 100;
    let (m, n, k) = SIZE;
    let ones = vec![1.0; n * k];
    let packed = match dtype.for_decoding() {
        DType::Int8 => PackedB::int8(isa, &vec![1; n * k], &vec![1.0; n], k),
        _ => PackedB::f32(isa, &ones, n, k),
    };
    let work = || {
        let (mut y, mut scratch) = (vec![0.0; m * n], RowScratch::default());
        let rows = packed.rows(Mat::new(&ones[..m * k], m, k), &mut scratch);
        let trial = |_| {
            let start = Instant::now();
            for _ in 0..TIMES {
                packed.matmul(rows, 0..n, None, MatMut::new(&mut y, m, n));
            }
            (TIMES * m * n * k) as f64 / start.elapsed().as_secs_f64()
        };
        (0..TRIALS).map(trial).fold(0.0, f64::max)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        work() + others.into_iter().map(|other| other.join().unwrap_or(0.0)).sum::<f64>()
    })
}
