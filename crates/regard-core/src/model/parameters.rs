//! The parameters of a model by name: the location of each in the flat weight vector, and its
//! initialisation.

use super::layers::Side;
use regard_kernels::Key;
use std::ops::Range;

/// The location of a parameter in the flat vector of all weights, and of all gradients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// The first element.
    pub offset: usize,
    /// The number of elements.
    pub len: usize,
}

impl Param {
    /// Its range in the flat vector.
    pub fn range(self) -> Range<usize> {
        self.offset..self.offset + self.len
    }
}

/// How a parameter is initialised, as in the paper's reference implementation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Initial {
    /// Zeros, for biases and β.
    Zero,
    /// Ones, for γ.
    One,
    /// Uniform within ±√(6 / (fan_in + fan_out)) (Glorot). Queries, keys and values are initialised
    /// as one matrix, which makes them smaller than three separate ones: a post-norm model then
    /// learns its attention even at high learning rates.
    Glorot {
        /// The number of rows of the matrix that it is part of.
        fan_out: usize,
        /// Whether it is the last matrix of a sub-layer, whose output is added to the residual
        /// stream.
        residual: bool,
    },
    /// Normal with this standard deviation; the last row (padding) is zero if `pad`.
    Normal {
        /// The standard deviation.
        deviation: f32,
        /// Whether the last row is zero.
        pad: bool,
    },
}

/// The role of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The matrix of a linear layer.
    Matrix,
    /// A bias, or γ or β of a norm.
    Vector,
    /// Vectors of words: embeddings, the output layer.
    Vocabulary,
    /// Vectors of positions, or of distances between them.
    Positions,
}

/// The location of a parameter in the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Encoder (source) or decoder (target); `None` if both use it.
    pub stack: Option<Side>,
    /// The layer of the stack, from 0; `None` outside the layers.
    pub layer: Option<usize>,
}

/// One named parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// For example `encoder.layers.0.self_attn.out.weight`.
    pub name: String,
    /// Rows and columns; a vector has one row.
    pub shape: [usize; 2],
    /// Its location in the flat vector.
    pub param: Param,
    /// Its initialisation.
    pub initial: Initial,
    /// Its role.
    pub role: Role,
    /// Its location in the model.
    pub location: Location,
    /// For the matrix of a linear layer, its bias.
    pub bias: Option<Param>,
}

impl Parameter {
    /// Initial values; all random ones are derived from `key`.
    pub fn initialise(&self, key: Key) -> Vec<f32> {
        let mut to = vec![0.0; self.param.len];
        self.fill(key, &mut to);
        to
    }

    fn fill(&self, key: Key, to: &mut [f32]) {
        let [rows, cols] = self.shape;
        match self.initial {
            Initial::Zero => {}
            Initial::One => to.fill(1.0),
            Initial::Glorot { fan_out, .. } => {
                let bound = (6.0 / (fan_out + cols) as f32).sqrt();
                for (i, x) in to.iter_mut().enumerate() {
                    *x = bound * (2.0 * key.uniform(i as u32) - 1.0);
                }
            }
            Initial::Normal { deviation, pad } => {
                let filled = if pad { (rows - 1) * cols } else { rows * cols };
                for (i, x) in to[..filled].iter_mut().enumerate() {
                    *x = deviation * key.normal(i as u32);
                }
            }
        }
    }

    /// Whether tokens are multiplied by it or looked up in it: such parameters are packed for
    /// decoding, and quantized to int8 on request. Vectors and position tables are not.
    pub fn is_matrix(&self) -> bool {
        matches!(self.role, Role::Matrix | Role::Vocabulary)
    }
}

/// Parameter counts by part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Parts {
    /// The total.
    pub total: usize,
    /// The vocabulary matrices.
    pub embeddings: usize,
    /// The encoder's layers.
    pub encoder: usize,
    /// The decoder's layers.
    pub decoder: usize,
}

/// All parameters of a model, contiguous and in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parameters {
    list: Vec<Parameter>,
    len: usize,
}

impl Parameters {
    /// Appends a parameter; returns its location.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        shape: [usize; 2],
        initial: Initial,
        role: Role,
        location: Location,
    ) -> Param {
        let param = Param { offset: self.len, len: shape[0] * shape[1] };
        self.list.push(Parameter { name: name.into(), shape, param, initial, role, location, bias: None });
        self.len += param.len;
        param
    }

    /// Sets the bias of a matrix.
    pub(super) fn set_bias(&mut self, matrix: Param, bias: Param) {
        if let Some(parameter) = self.list.iter_mut().rfind(|p| p.param == matrix) {
            parameter.bias = Some(bias);
        }
    }

    /// The total number of weights.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parameters in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Parameter> {
        self.list.iter()
    }

    /// The parameter counts by part.
    pub fn parts(&self) -> Parts {
        let mut parts = Parts::default();
        for parameter in self {
            let part = match (parameter.role, parameter.location.stack) {
                (Role::Vocabulary, _) | (_, None) => &mut parts.embeddings,
                (_, Some(Side::Source)) => &mut parts.encoder,
                (_, Some(Side::Target)) => &mut parts.decoder,
            };
            *part += parameter.param.len;
            parts.total += parameter.param.len;
        }
        parts
    }

    /// The parameter with this name.
    pub fn get(&self, name: &str) -> Option<&Parameter> {
        self.list.iter().find(|p| p.name == name)
    }

    /// Initial weights: the same for the same seed, on every machine.
    pub fn initialise(&self, seed: u64) -> Vec<f32> {
        let mut weights = vec![0.0; self.len];
        for (n, parameter) in self.list.iter().enumerate() {
            parameter.fill(Key::new(seed).child(n as u64), &mut weights[parameter.param.range()]);
        }
        weights
    }

    /// Multiplies the matrices that write to the residual stream by one factor in the encoder and
    /// another in the decoder.
    pub fn scale_residual(&self, weights: &mut [f32], encoder: f32, decoder: f32) {
        for parameter in self {
            if let Initial::Glorot { residual: true, .. } = parameter.initial {
                let factor = match parameter.location.stack {
                    Some(Side::Target) => decoder,
                    Some(Side::Source) | None => encoder,
                };
                weights[parameter.param.range()].iter_mut().for_each(|x| *x *= factor);
            }
        }
    }
}

impl<'a> IntoIterator for &'a Parameters {
    type Item = &'a Parameter;
    type IntoIter = std::slice::Iter<'a, Parameter>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
