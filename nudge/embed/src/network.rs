//! Builds the network of a BERT model as a graph for the engine. The input has the sum of the embeddings of each token,
//! and the output has a vector for each token. The graph runs one text at a time at the text's own length, so it needs
//! no padding and no mask.
//!
//! The engine reads the graph as ONNX, a description of some kilobytes. The description refers to one buffer that holds
//! all weights, and the engine does not copy that buffer.

use rten::{ModelOptions, OpRegistry, op_types};
use rten_onnx::onnx;

use crate::config::BertConfig;
use crate::weights::{DenseMap, RoundedRows, WeightTensors};
use crate::{Precision, Result, broken_model};

/// The name of the graph's input, of shape `[tokens, hidden]`.
const INPUT: &str = "embeddings";
/// The name of the buffer of weights. The engine demands the suffix `.data`.
const BUFFER: &str = "weights.data";
/// The version of the definitions of the operators. `Gelu` exists since version 20.
const OPERATORS: i64 = 20;
/// Stands for a size that the engine computes from the other sizes.
const REST: usize = usize::MAX;
/// The alignment of a tensor in the buffer, in bytes.
const ALIGNMENT: usize = 16;
/// Largest weight after rounding. It has 7 bits instead of 8: on x86 without VNNI the engine adds two products in 16
/// bits, and larger weights would overflow there.
const LARGEST: f32 = 63.0;

/// Builds the network from these weights, ready to run.
pub fn build_network(config: &BertConfig, weights: &WeightTensors<'_>, precision: Precision) -> Result<rten::Model> {
    let mut graph = OnnxGraph::new(precision);
    let mut x = graph.layer_norm(INPUT, "embeddings.LayerNorm", config, weights)?;
    for layer in 0..config.layers {
        x = graph.add_layer(&x, &format!("encoder.layer.{layer}"), config, weights)?;
    }
    graph.proto.output.push(describe_matrix(&x, config.hidden));
    graph.proto.input.push(describe_matrix(INPUT, config.hidden));
    let model = onnx::ModelProto {
        ir_version: Some(9),
        graph: Some(graph.proto),
        opset_import: vec![onnx::OperatorSetIdProto { domain: None, version: Some(OPERATORS) }],
        ..Default::default()
    };
    let description = model.write_buf().map_err(|error| broken_model(format!("has no graph ({error})")))?;
    let mut options = ModelOptions::with_ops(build_operators());
    // The engine needs the weights in another order. Reordering them once doubles their memory. Reordering them for
    // each text would take most of the time of a short text.
    options.prepack_weights(true).external_data(BUFFER, graph.buffer);
    options.load(description).map_err(|error| broken_model(format!("cannot be run ({error})")))
}

/// Lists the operators that graphs of this module use, so that the binary contains no others.
fn build_operators() -> OpRegistry {
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

/// An ONNX graph under construction. A method that adds operators returns the name of their result.
struct OnnxGraph {
    proto: onnx::GraphProto,
    buffer: Vec<u8>,
    precision: Precision,
}

impl OnnxGraph {
    fn new(precision: Precision) -> Self {
        Self { proto: onnx::GraphProto::default(), buffer: Vec::new(), precision }
    }

    /// Adds a layer of the encoder: attention, then two dense maps. The input of each step is added to its result.
    fn add_layer(&mut self, x: &str, layer: &str, config: &BertConfig, weights: &WeightTensors<'_>) -> Result<String> {
        let attended = self.add_attention(x, &format!("{layer}.attention.self"), config, weights)?;
        let (hidden, intermediate) = (config.hidden, config.intermediate);
        let dense = weights.read_dense(&[&format!("{layer}.attention.output.dense")], hidden, hidden)?;
        let attended = self.add_linear(&attended, &dense);
        let sum = self.add_sum(&attended, x);
        let x = self.layer_norm(&sum, &format!("{layer}.attention.output.LayerNorm"), config, weights)?;
        let wide = weights.read_dense(&[&format!("{layer}.intermediate.dense")], hidden, intermediate)?;
        let wide = self.add_linear(&x, &wide);
        let wide = self.add_operator("Gelu", &[&wide], vec![]);
        let narrow = weights.read_dense(&[&format!("{layer}.output.dense")], intermediate, hidden)?;
        let narrow = self.add_linear(&wide, &narrow);
        let sum = self.add_sum(&narrow, &x);
        self.layer_norm(&sum, &format!("{layer}.output.LayerNorm"), config, weights)
    }

    /// Adds attention for all heads at once: the softmax of queries times keys, times values.
    fn add_attention(
        &mut self,
        x: &str,
        name: &str,
        config: &BertConfig,
        weights: &WeightTensors<'_>,
    ) -> Result<String> {
        let names = ["query", "key", "value"].map(|part| format!("{name}.{part}"));
        let mut dense = weights.read_dense(&[&names[0], &names[1], &names[2]], config.hidden, config.hidden)?;
        let head = config.hidden / config.heads;
        // Attention divides the queries by the square root of a head's size. Scaling the weights has the same effect.
        #[allow(clippy::cast_precision_loss, reason = "a head has some dozens of numbers")]
        dense.scale_outputs(0..config.hidden, 1.0 / (head as f32).sqrt());
        let all = self.add_linear(x, &dense);
        let sizes = self.add_integers(&[config.hidden; 3]);
        let [queries, keys, values] = self.add_node("Split", &[&all, &sizes], vec![integer_attribute("axis", 1)]);
        let in_heads = self.add_integers(&[REST, config.heads, head]);
        let mut heads = |part: &str, order: [i64; 3]| {
            let part = self.add_operator("Reshape", &[part, &in_heads], vec![]);
            self.add_operator("Transpose", &[&part], vec![integers_attribute("perm", &order)])
        };
        let (queries, keys, values) = (heads(&queries, [1, 0, 2]), heads(&keys, [1, 2, 0]), heads(&values, [1, 0, 2]));
        let weight = self.add_operator("MatMul", &[&queries, &keys], vec![]);
        let weight = self.add_operator("Softmax", &[&weight], vec![integer_attribute("axis", -1)]);
        let mixed = self.add_operator("MatMul", &[&weight, &values], vec![]);
        let mixed = self.add_operator("Transpose", &[&mixed], vec![integers_attribute("perm", &[1, 0, 2])]);
        let flat = self.add_integers(&[REST, config.hidden]);
        Ok(self.add_operator("Reshape", &[&mixed, &flat], vec![]))
    }

    fn add_linear(&mut self, x: &str, dense: &DenseMap) -> String {
        let product = match self.precision {
            Precision::Full => {
                let columns = self.float_tensor(&[dense.inputs, dense.outputs], &dense.to_columns(&dense.rows));
                self.add_operator("MatMul", &[x, &columns], vec![])
            }
            Precision::Rounded => self.rounded_product(x, dense),
        };
        let bias = self.add_floats(&dense.bias);
        self.add_sum(&product, &bias)
    }

    /// Adds a product of integers. The engine scales the input by its largest number; this function scales each column
    /// of the weights by the column's largest number.
    fn rounded_product(&mut self, x: &str, dense: &DenseMap) -> String {
        let mut weights = RoundedRows::default();
        dense.rows.chunks_exact(dense.inputs).for_each(|row| weights.push_row(row, LARGEST));
        let columns: Vec<u8> = dense.to_columns(&weights.values).into_iter().map(i8::cast_unsigned).collect();
        let columns = self.add_constant(&[dense.inputs, dense.outputs], onnx::DataType::INT8, &columns);
        let [x, scale, zero] = self.add_node("DynamicQuantizeLinear", &[x], vec![]);
        let none = self.add_constant(&[], onnx::DataType::INT8, &[0]);
        let product = self.add_operator("MatMulInteger", &[&x, &columns, &zero, &none], vec![]);
        let product =
            self.add_operator("Cast", &[&product], vec![integer_attribute("to", onnx::DataType::FLOAT.0.into())]);
        let scales = self.add_floats(&weights.scales);
        let scale = self.add_operator("Mul", &[&scale, &scales], vec![]);
        self.add_operator("Mul", &[&product, &scale], vec![])
    }

    fn layer_norm(&mut self, x: &str, name: &str, config: &BertConfig, weights: &WeightTensors<'_>) -> Result<String> {
        let scale = self.add_floats(&weights.read_floats(&format!("{name}.weight"), &[config.hidden])?);
        let bias = self.add_floats(&weights.read_floats(&format!("{name}.bias"), &[config.hidden])?);
        let mut epsilon = new_attribute("epsilon", onnx::AttributeType::FLOAT);
        epsilon.f = Some(config.epsilon);
        Ok(self.add_operator("LayerNormalization", &[x, &scale, &bias], vec![integer_attribute("axis", -1), epsilon]))
    }

    fn add_sum(&mut self, a: &str, b: &str) -> String {
        self.add_operator("Add", &[a, b], vec![])
    }

    fn add_operator(&mut self, operator: &str, inputs: &[&str], attributes: Vec<onnx::AttributeProto>) -> String {
        let [output] = self.add_node(operator, inputs, attributes);
        output
    }

    fn add_node<const N: usize>(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attribute: Vec<onnx::AttributeProto>,
    ) -> [String; N] {
        let number = self.proto.node.len();
        let outputs = std::array::from_fn(|index| format!("{operator}-{number}-{index}"));
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

    fn add_floats(&mut self, values: &[f32]) -> String {
        self.float_tensor(&[values.len()], values)
    }

    fn float_tensor(&mut self, shape: &[usize], values: &[f32]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.add_constant(shape, onnx::DataType::FLOAT, &bytes)
    }

    /// Adds a short list of sizes. [`REST`] stands for the size that the engine computes.
    fn add_integers(&mut self, values: &[usize]) -> String {
        let bytes: Vec<u8> = values.iter().flat_map(|&value| to_dimension(value).to_le_bytes()).collect();
        self.add_constant(&[values.len()], onnx::DataType::INT64, &bytes)
    }

    fn add_constant(&mut self, shape: &[usize], kind: onnx::DataType, bytes: &[u8]) -> String {
        let name = format!("constant-{}", self.proto.initializer.len());
        self.buffer.resize(self.buffer.len().next_multiple_of(ALIGNMENT), 0);
        let entry =
            |key: &str, value: String| onnx::StringStringEntryProto { key: Some(key.into()), value: Some(value) };
        self.proto.initializer.push(onnx::TensorProto {
            dims: shape.iter().map(|&size| to_dimension(size)).collect(),
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

/// Describes a matrix of the graph, which has one row for each token.
fn describe_matrix(name: &str, columns: usize) -> onnx::ValueInfoProto {
    let rows = onnx::Dimension { dim_value: None, dim_param: Some("tokens".into()) };
    let columns = onnx::Dimension { dim_value: i64::try_from(columns).ok(), dim_param: None };
    let shape = onnx::TensorShapeProto { dim: vec![rows, columns] };
    let tensor = onnx::TypeProtoTensor { elem_type: Some(onnx::DataType::FLOAT), shape: Some(shape) };
    let kind = onnx::TypeProto { tensor_type: Some(tensor), sequence: None };
    onnx::ValueInfoProto { name: Some(name.into()), r#type: Some(kind) }
}

/// Returns a size as ONNX writes it: -1 for [`REST`].
fn to_dimension(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(-1)
}

fn new_attribute(name: &str, kind: onnx::AttributeType) -> onnx::AttributeProto {
    onnx::AttributeProto { name: Some(name.into()), r#type: Some(kind), ..Default::default() }
}

fn integer_attribute(name: &str, value: i64) -> onnx::AttributeProto {
    onnx::AttributeProto { i: Some(value), ..new_attribute(name, onnx::AttributeType::INT) }
}

fn integers_attribute(name: &str, values: &[i64]) -> onnx::AttributeProto {
    onnx::AttributeProto { ints: values.to_vec(), ..new_attribute(name, onnx::AttributeType::INTS) }
}
