//! Builds the network of a BERT model as a graph for the engine: from the sum of the embeddings of a text's tokens to a
//! vector for each token. It runs one text at a time, at its length: nothing is padded, so nothing has to be masked.
//!
//! The engine reads ONNX. It gets only the description here, some kilobytes; that points into one buffer of weights,
//! which is not copied.

use rten::{ModelOptions, OpRegistry, op_types};
use rten_onnx::onnx;

use crate::config::Config;
use crate::weights::{Dense, Rounded, Weights};
use crate::{Precision, Result, broken};

/// Name of the graph's input: `[tokens, hidden]`.
const INPUT: &str = "embeddings";
/// Name of the buffer that the graph points into; the engine wants one with this ending.
const BUFFER: &str = "weights.data";
/// Version of the operators' definitions; `Gelu` came with 20.
const OPERATORS: i64 = 20;
/// A size that follows from the others.
const REST: usize = usize::MAX;
/// Alignment in bytes of a tensor in the buffer.
const ALIGNMENT: usize = 16;
/// Largest weight in whole numbers. 7 bits, not 8: on x86 without VNNI the engine adds two products in 16 bits, and
/// would give other vectors there with larger ones.
const LARGEST: f32 = 63.0;

/// Makes the network of these weights, ready to run.
pub fn load(config: &Config, weights: &Weights<'_>, precision: Precision) -> Result<rten::Model> {
    let mut graph = Graph::new(precision);
    let mut x = graph.layer_norm(INPUT, "embeddings.LayerNorm", config, weights)?;
    for layer in 0..config.layers {
        x = graph.layer(&x, &format!("encoder.layer.{layer}"), config, weights)?;
    }
    graph.proto.output.push(matrix(&x, config.hidden));
    graph.proto.input.push(matrix(INPUT, config.hidden));
    let model = onnx::ModelProto {
        ir_version: Some(9),
        graph: Some(graph.proto),
        opset_import: vec![onnx::OperatorSetIdProto { domain: None, version: Some(OPERATORS) }],
        ..Default::default()
    };
    let description = model.write_buf().map_err(|error| broken(format!("has no graph ({error})")))?;
    let mut options = ModelOptions::with_ops(operators());
    // The engine wants weights in another order than they are written in. Done once, it takes as much memory again;
    // done for each text, it would be most of the time that a short one takes.
    options.prepack_weights(true).external_data(BUFFER, graph.buffer);
    options.load(description).map_err(|error| broken(format!("cannot be run ({error})")))
}

/// Lists the operators that graphs of this module use: others are not in the binary.
fn operators() -> OpRegistry {
    OpRegistry::with_ops(&[
        &op_types::Add,
        &op_types::Cast,
        &op_types::DynamicQuantizeLinear,
        &op_types::Gelu,
        &op_types::LayerNormalization,
        &op_types::MatMul,
        &op_types::MatMulInteger,
        &op_types::Mul,
        &op_types::Reshape,
        &op_types::Softmax,
        &op_types::Split,
        &op_types::Transpose,
    ])
}

/// A graph as it is written. Every method that adds operators returns the name of their result.
struct Graph {
    proto: onnx::GraphProto,
    buffer: Vec<u8>,
    precision: Precision,
}

impl Graph {
    fn new(precision: Precision) -> Self {
        Self { proto: onnx::GraphProto::default(), buffer: Vec::new(), precision }
    }

    /// Adds a layer of the encoder: attention, then two dense maps, each added to its input.
    fn layer(&mut self, x: &str, layer: &str, config: &Config, weights: &Weights<'_>) -> Result<String> {
        let attended = self.attention(x, &format!("{layer}.attention.self"), config, weights)?;
        let (hidden, intermediate) = (config.hidden, config.intermediate);
        let dense = weights.dense(&[&format!("{layer}.attention.output.dense")], hidden, hidden)?;
        let attended = self.linear(&attended, &dense);
        let sum = self.add(&attended, x);
        let x = self.layer_norm(&sum, &format!("{layer}.attention.output.LayerNorm"), config, weights)?;
        let wide = weights.dense(&[&format!("{layer}.intermediate.dense")], hidden, intermediate)?;
        let wide = self.linear(&x, &wide);
        let wide = self.one("Gelu", &[&wide], vec![]);
        let narrow = weights.dense(&[&format!("{layer}.output.dense")], intermediate, hidden)?;
        let narrow = self.linear(&wide, &narrow);
        let sum = self.add(&narrow, &x);
        self.layer_norm(&sum, &format!("{layer}.output.LayerNorm"), config, weights)
    }

    /// Softmax of queries times keys, times values, for all heads at once.
    fn attention(&mut self, x: &str, name: &str, config: &Config, weights: &Weights<'_>) -> Result<String> {
        let names = ["query", "key", "value"].map(|part| format!("{name}.{part}"));
        let mut dense = weights.dense(&[&names[0], &names[1], &names[2]], config.hidden, config.hidden)?;
        let head = config.hidden / config.heads;
        // Queries are divided by the root of a head's size; that is part of their scale.
        #[allow(clippy::cast_precision_loss, reason = "a head has some dozens of numbers")]
        dense.scale(0..config.hidden, 1.0 / (head as f32).sqrt());
        let all = self.linear(x, &dense);
        let sizes = self.integers(&[config.hidden; 3]);
        let [queries, keys, values] = self.node("Split", &[&all, &sizes], vec![integer("axis", 1)]);
        let in_heads = self.integers(&[REST, config.heads, head]);
        let mut heads = |part: &str, order: [i64; 3]| {
            let part = self.one("Reshape", &[part, &in_heads], vec![]);
            self.one("Transpose", &[&part], vec![integers("perm", &order)])
        };
        let (queries, keys, values) = (heads(&queries, [1, 0, 2]), heads(&keys, [1, 2, 0]), heads(&values, [1, 0, 2]));
        let weight = self.one("MatMul", &[&queries, &keys], vec![]);
        let weight = self.one("Softmax", &[&weight], vec![integer("axis", -1)]);
        let mixed = self.one("MatMul", &[&weight, &values], vec![]);
        let mixed = self.one("Transpose", &[&mixed], vec![integers("perm", &[1, 0, 2])]);
        let flat = self.integers(&[REST, config.hidden]);
        Ok(self.one("Reshape", &[&mixed, &flat], vec![]))
    }

    fn linear(&mut self, x: &str, dense: &Dense) -> String {
        let product = match self.precision {
            Precision::Full => {
                let columns = self.float_tensor(&[dense.inputs, dense.outputs], &dense.columns(&dense.rows));
                self.one("MatMul", &[x, &columns], vec![])
            }
            Precision::Rounded => self.rounded_product(x, dense),
        };
        let bias = self.floats(&dense.bias);
        self.add(&product, &bias)
    }

    /// Adds the product in whole numbers: the input is scaled by its own largest number, each column of the weights by
    /// its own.
    fn rounded_product(&mut self, x: &str, dense: &Dense) -> String {
        let mut weights = Rounded::default();
        dense.rows.chunks_exact(dense.inputs).for_each(|row| weights.push(row, LARGEST));
        let columns: Vec<u8> = dense.columns(&weights.values).into_iter().map(i8::cast_unsigned).collect();
        let columns = self.constant(&[dense.inputs, dense.outputs], onnx::DataType::INT8, &columns);
        let [x, scale, zero] = self.node("DynamicQuantizeLinear", &[x], vec![]);
        let none = self.constant(&[], onnx::DataType::INT8, &[0]);
        let product = self.one("MatMulInteger", &[&x, &columns, &zero, &none], vec![]);
        let product = self.one("Cast", &[&product], vec![integer("to", onnx::DataType::FLOAT.0.into())]);
        let scales = self.floats(&weights.scales);
        let scale = self.one("Mul", &[&scale, &scales], vec![]);
        self.one("Mul", &[&product, &scale], vec![])
    }

    fn layer_norm(&mut self, x: &str, name: &str, config: &Config, weights: &Weights<'_>) -> Result<String> {
        let scale = self.floats(&weights.floats(&format!("{name}.weight"), &[config.hidden])?);
        let bias = self.floats(&weights.floats(&format!("{name}.bias"), &[config.hidden])?);
        let mut epsilon = attribute("epsilon", onnx::AttributeType::FLOAT);
        epsilon.f = Some(config.epsilon);
        Ok(self.one("LayerNormalization", &[x, &scale, &bias], vec![integer("axis", -1), epsilon]))
    }

    fn add(&mut self, a: &str, b: &str) -> String {
        self.one("Add", &[a, b], vec![])
    }

    fn one(&mut self, operator: &str, inputs: &[&str], attributes: Vec<onnx::AttributeProto>) -> String {
        let [output] = self.node(operator, inputs, attributes);
        output
    }

    fn node<const N: usize>(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attribute: Vec<onnx::AttributeProto>,
    ) -> [String; N] {
        let number = self.proto.node.len();
        let outputs = std::array::from_fn(|at| format!("{operator}-{number}-{at}"));
        self.proto.node.push(onnx::NodeProto {
            name: Some(format!("{operator}-{number}")),
            op_type: Some(operator.into()),
            input: inputs.iter().map(|&name| name.into()).collect(),
            output: outputs.to_vec(),
            attribute,
            ..Default::default()
        });
        outputs
    }

    fn floats(&mut self, values: &[f32]) -> String {
        self.float_tensor(&[values.len()], values)
    }

    fn float_tensor(&mut self, shape: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(shape, onnx::DataType::FLOAT, &bytes)
    }

    /// Adds a short list of sizes; [`REST`] stands for the rest.
    fn integers(&mut self, values: &[usize]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|&value| dimension(value).to_le_bytes()).collect();
        self.constant(&[values.len()], onnx::DataType::INT64, &bytes)
    }

    fn constant(&mut self, shape: &[usize], kind: onnx::DataType, bytes: &[u8]) -> String {
        let name = format!("constant-{}", self.proto.initializer.len());
        self.buffer.resize(self.buffer.len().next_multiple_of(ALIGNMENT), 0);
        let entry =
            |key: &str, value: String| onnx::StringStringEntryProto { key: Some(key.into()), value: Some(value) };
        self.proto.initializer.push(onnx::TensorProto {
            dims: shape.iter().map(|&size| dimension(size)).collect(),
            data_type: Some(kind),
            name: Some(name.clone()),
            external_data: vec![
                entry("location", BUFFER.into()),
                entry("offset", self.buffer.len().to_string()),
                entry("length", bytes.len().to_string()),
            ],
            data_location: Some(onnx::DataLocation::EXTERNAL),
            ..Default::default()
        });
        self.buffer.extend_from_slice(bytes);
        name
    }
}

/// A value of the graph with a row for each token.
fn matrix(name: &str, columns: usize) -> onnx::ValueInfoProto {
    let rows = onnx::Dimension { dim_value: None, dim_param: Some("tokens".into()) };
    let columns = onnx::Dimension { dim_value: i64::try_from(columns).ok(), dim_param: None };
    let shape = onnx::TensorShapeProto { dim: vec![rows, columns] };
    let tensor = onnx::TypeProtoTensor { elem_type: Some(onnx::DataType::FLOAT), shape: Some(shape) };
    let kind = onnx::TypeProto { tensor_type: Some(tensor), sequence: None };
    onnx::ValueInfoProto { name: Some(name.into()), r#type: Some(kind) }
}

/// Returns a size as ONNX has it: -1 stands for the rest.
fn dimension(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(-1)
}

fn attribute(name: &str, kind: onnx::AttributeType) -> onnx::AttributeProto {
    onnx::AttributeProto { name: Some(name.into()), r#type: Some(kind), ..Default::default() }
}

fn integer(name: &str, value: i64) -> onnx::AttributeProto {
    onnx::AttributeProto { i: Some(value), ..attribute(name, onnx::AttributeType::INT) }
}

fn integers(name: &str, values: &[i64]) -> onnx::AttributeProto {
    onnx::AttributeProto { ints: values.to_vec(), ..attribute(name, onnx::AttributeType::INTS) }
}
