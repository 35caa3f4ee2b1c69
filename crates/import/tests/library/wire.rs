//! A writer of ONNX files, field by field.

/// A message, as bytes.
#[derive(Clone, Default)]
pub struct Wire(pub Vec<u8>);

impl Wire {
    pub fn new() -> Wire {
        Wire::default()
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub fn int(mut self, field: u64, value: i64) -> Wire {
        self.varint(field << 3);
        self.varint(value.cast_unsigned());
        self
    }

    pub fn float(mut self, field: u64, value: f32) -> Wire {
        self.varint(field << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub fn bytes(mut self, field: u64, value: &[u8]) -> Wire {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub fn text(self, field: u64, value: &str) -> Wire {
        self.bytes(field, value.as_bytes())
    }

    pub fn texts(self, field: u64, values: &[&str]) -> Wire {
        values
            .iter()
            .fold(self, |wire, value| wire.text(field, value))
    }

    pub fn message(self, field: u64, value: Wire) -> Wire {
        self.bytes(field, &value.0)
    }

    pub fn messages(self, field: u64, values: impl IntoIterator<Item = Wire>) -> Wire {
        values
            .into_iter()
            .fold(self, |wire, value| wire.message(field, value))
    }
}

pub const FLOAT: i64 = 1;
pub const INT8: i64 = 3;
pub const INT64: i64 = 7;
pub const STRING: i64 = 8;
pub const BOOL: i64 = 9;

/// Returns a model of a graph, for version 13 of the operator set.
pub fn model(graph: Wire) -> Wire {
    model_at(13, graph)
}

pub fn model_at(version: i64, graph: Wire) -> Wire {
    Wire::new()
        .int(1, 8)
        .message(7, graph)
        .message(8, opset("", version))
}

pub fn opset(domain: &str, version: i64) -> Wire {
    Wire::new().text(1, domain).int(2, version)
}

/// Returns a graph of nodes with the input `x` and an output.
pub fn graph(nodes: impl IntoIterator<Item = Wire>, output: &str) -> Wire {
    Wire::new()
        .messages(1, nodes)
        .text(2, "main")
        .message(11, value("x", FLOAT, &[2]))
        .message(12, value(output, FLOAT, &[2]))
}

pub fn node(operator: &str, inputs: &[&str], outputs: &[&str]) -> Wire {
    let name = format!("{}_node", outputs.first().unwrap_or(&""));
    Wire::new()
        .texts(1, inputs)
        .texts(2, outputs)
        .text(3, &name)
        .text(4, operator)
}

pub fn attribute(name: &str, kind: i64) -> Wire {
    Wire::new().text(1, name).int(20, kind)
}

/// Returns the name and the type of a tensor; a negative size is written as it is.
pub fn value(name: &str, element: i64, sizes: &[i64]) -> Wire {
    let sizes = sizes.iter().map(|&size| Wire::new().int(1, size));
    let shape = Wire::new().messages(1, sizes);
    let tensor = Wire::new().int(1, element).message(2, shape);
    Wire::new()
        .text(1, name)
        .message(2, Wire::new().message(1, tensor))
}

/// Returns a tensor without elements.
pub fn tensor(name: &str, element: i64, sizes: &[i64]) -> Wire {
    let tensor = sizes
        .iter()
        .fold(Wire::new(), |wire, &size| wire.int(1, size));
    tensor.int(2, element).text(8, name)
}

/// Returns a tensor with elements in another file.
pub fn external(entries: &[(&str, &str)]) -> Wire {
    let entries = entries
        .iter()
        .map(|(key, value)| Wire::new().text(1, key).text(2, value));
    tensor("w", FLOAT, &[2]).messages(13, entries).int(14, 1)
}

/// Returns a model with an initializer that its only node adds.
pub fn with_initializer(tensor: Wire) -> Wire {
    model(graph([node("Add", &["x", "w"], &["y"])], "y").message(5, tensor))
}

/// Returns a function of one input and one output.
pub fn function(name: &str, nodes: impl IntoIterator<Item = Wire>) -> Wire {
    Wire::new()
        .text(1, name)
        .text(4, "a")
        .text(5, "b")
        .messages(7, nodes)
        .message(9, opset("", 13))
        .text(10, "own")
}

pub fn call(name: &str, input: &str, output: &str) -> Wire {
    node(name, &[input], &[output]).text(7, "own")
}
