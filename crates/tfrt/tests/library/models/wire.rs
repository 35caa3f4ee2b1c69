//! Small ONNX models and files of tensors, byte by byte.

/// Returns a field of bytes.
pub fn bytes(field: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let mut out = vec![field << 3 | 2];
    let mut rest = content.len();
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap());
    out.extend_from_slice(content);
    out
}

/// Returns a field with a small number.
pub fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// `name: f32 [N, 3]`
fn value(name: &str) -> Vec<u8> {
    let dims = [bytes(1, bytes(2, "N")), bytes(1, number(1, 3))];
    let tensor = [number(1, 1), bytes(2, dims.concat())].concat();
    [bytes(1, name), bytes(2, bytes(1, tensor))].concat()
}

/// Returns an operator of one or two inputs.
pub fn node(kind: &str, domain: &str, inputs: &[&str], output: &str, name: &str) -> Vec<u8> {
    let mut node: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input)).collect();
    node.extend(bytes(2, output));
    node.extend(bytes(3, name));
    node.extend(bytes(4, kind));
    if !domain.is_empty() {
        node.extend(bytes(7, domain));
    }
    node
}

/// Returns a constant `f32 [3]` whose elements are all there is in a file beside the model.
fn constant(name: &str, file: &str) -> Vec<u8> {
    let location = [bytes(1, "location"), bytes(2, file)].concat();
    [
        number(1, 3),
        number(2, 1),
        bytes(8, name),
        bytes(13, location),
        number(14, 1),
    ]
    .concat()
}

/// Returns a model of `x` and `y`, both `f32 [N, 3]`, that gives `sum`.
pub fn model(nodes: &[Vec<u8>]) -> Vec<u8> {
    model_of(&[], nodes)
}

/// Returns a model as [`model`] does, with a constant whose elements are in a file beside it.
pub fn model_with(name: &str, file: &str, nodes: &[Vec<u8>]) -> Vec<u8> {
    model_of(&bytes(5, constant(name, file)), nodes)
}

fn model_of(constants: &[u8], nodes: &[Vec<u8>]) -> Vec<u8> {
    let mut graph: Vec<u8> = nodes.iter().flat_map(|node| bytes(1, node)).collect();
    graph.extend(bytes(2, "test"));
    graph.extend(constants);
    graph.extend(bytes(11, value("x")));
    graph.extend(bytes(11, value("y")));
    graph.extend(bytes(12, value("sum")));
    let own = [bytes(1, ""), number(2, 17)].concat();
    let other = [bytes(1, "my.domain"), number(2, 1)].concat();
    [
        number(1, 8),
        bytes(7, graph),
        bytes(8, own),
        bytes(8, other),
    ]
    .concat()
}
