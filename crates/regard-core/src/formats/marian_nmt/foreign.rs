//! Marian's folders as one of the supported foreign formats.

use super::model::MarianModel;
use crate::decode::Values;
use crate::formats::{Foreign, Model};
use crate::model::{ModelConfig, Parameter, Transformer};
use crate::{DType, Result};

impl Foreign for MarianModel {
    fn model_type(&self) -> &'static str {
        "marian-nmt"
    }

    fn config(&self) -> &ModelConfig {
        self.config()
    }

    fn transformer(&self) -> Result<Transformer> {
        self.transformer()
    }

    fn model(&self, transformer: Transformer) -> Result<Model> {
        self.model(transformer)
    }

    fn floats(&self, parameter: &Parameter) -> Result<Vec<f32>> {
        self.floats(parameter)
    }

    fn values(&self, parameter: &Parameter) -> Result<Values<'static>> {
        self.values(parameter)
    }

    fn dtype(&self) -> DType {
        if self.is_int8() { DType::Int8 } else { DType::F32 }
    }

    fn bytes(&self) -> usize {
        self.bytes()
    }

    fn release(&self) {
        self.release();
    }
}
