//! The parameters of a model by name: where each lies in the flat vector of weights, and how it begins.

use crate::autograd::Param;
use regard_kernels::Key;

/// How a parameter is filled before training, as in the paper's reference implementation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// Biases and β.
    Zero,
    /// γ.
    One,
    /// Uniform within ±√(6 / (fan_in + fan_out)), after Glorot, for each block of `rows` of its own: queries, keys and values are one
    /// matrix here and three there.
    Glorot {
        /// Rows of each block.
        rows: [usize; 3],
    },
    /// Normal with this standard deviation; the last row (padding) is zero if `pad`.
    Normal {
        /// The standard deviation.
        deviation: f32,
        /// Whether the last row is zero.
        pad: bool,
    },
}

/// One named parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// For example `encoder.layers.0.self_attn.out.weight`.
    pub name: String,
    /// Rows and columns; a vector has one row.
    pub shape: [usize; 2],
    /// Its place.
    pub param: Param,
    /// How it begins.
    pub initial: Initial,
}

/// All parameters of a model in the order of their places, which leave no gap.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    list: Vec<Parameter>,
    len: usize,
}

impl Parameters {
    /// Adds one at the end.
    pub(crate) fn add(&mut self, name: impl Into<String>, shape: [usize; 2], initial: Initial) -> Param {
        let param = Param { offset: self.len, len: shape[0] * shape[1] };
        self.list.push(Parameter { name: name.into(), shape, param, initial });
        self.len += param.len;
        param
    }

    /// How many numbers there are in all.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Each of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Parameter> {
        self.list.iter()
    }

    /// The one of that name.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.list.iter().find(|p| p.name == name)
    }

    /// Weights to begin with: the same for the same seed, on every machine.
    pub fn initialise(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.len];
        for (n, parameter) in self.list.iter().enumerate() {
            let key = Key::new(seed).child(n as u64);
            let to = &mut weights[parameter.param.range()];
            let [all_rows, cols] = parameter.shape;
            match parameter.initial {
                Initial::Zero => {}
                Initial::One => to.fill(1.0),
                Initial::Glorot { rows } => {
                    let mut at = 0;
                    for rows in rows {
                        let bound = (6.0 / (rows + cols) as f32).sqrt();
                        for (i, x) in to.iter_mut().enumerate().skip(at).take(rows * cols) {
                            *x = bound * (2.0 * key.uniform(i as u32) - 1.0);
                        }
                        at += rows * cols;
                    }
                    debug_assert_eq!(at, all_rows * cols, "{}", parameter.name);
                }
                Initial::Normal { deviation, pad } => {
                    let filled = if pad { (all_rows - 1) * cols } else { all_rows * cols };
                    for (i, x) in to[..filled].iter_mut().enumerate() {
                        *x = deviation * key.normal(i as u32);
                    }
                }
            }
        }
        weights
    }
}

impl<'a> IntoIterator for &'a Parameters {
    type Item = &'a Parameter;
    type IntoIter = std::slice::Iter<'a, Parameter>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
