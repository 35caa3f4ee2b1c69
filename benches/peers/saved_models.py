"""Exports models from TensorFlow as SavedModels, and compares what `tfrt` and TensorFlow make of them.

    python benches/peers/saved_models.py export FOLDER [NAME..]    # needs tensorflow
    python benches/peers/saved_models.py compare FOLDER [NAME..] [--tfrt PATH]

`export` makes each model, draws every variable from a normal distribution (variances positive), and writes the directory of
the model, with inputs and TensorFlow's outputs.
`compare` runs `tfrt run` and `tfrt bench` on the same directories, and prints a line for each model: the largest difference
relative to the largest output, and the times of both, TensorFlow's behind ours where it is installed.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

SEED = 20240817
THREADS = 2


# Models ------------------------------------------------------------------------------------------------------------


def keras_models():
    """Returns functions that make models, with the inputs that each is called with."""
    import keras
    from keras import layers as L

    def mlp():
        return keras.Sequential([L.Input((784,)), L.Dense(128, "relu"), L.Dense(10)])

    def cnn():
        return keras.Sequential([
            L.Input((28, 28, 1)), L.Conv2D(16, 3, activation="relu"), L.MaxPooling2D(),
            L.Conv2D(32, 3, padding="same", strides=2), L.BatchNormalization(), L.ReLU(),
            L.GlobalAveragePooling2D(), L.Dense(10),
        ])

    def lstm_gru():
        return keras.Sequential([
            L.Input((16, 8)), L.LSTM(32, return_sequences=True), L.GRU(24), L.Dense(5),
        ])

    def transformer():
        x = inputs = L.Input((32,), dtype="int32")
        x = L.Embedding(1000, 64)(x)
        for _ in range(2):
            y = L.LayerNormalization()(x)
            x = L.Add()([x, L.MultiHeadAttention(4, 16)(y, y)])
            y = L.LayerNormalization()(x)
            y = L.Dense(128, "gelu")(y)
            x = L.Add()([x, L.Dense(64)(y)])
        return keras.Model(inputs, L.Dense(7)(L.GlobalAveragePooling1D()(x)))

    def autoencoder():
        return keras.Sequential([
            L.Input((32, 32, 3)), L.Conv2D(8, 3, strides=2, padding="same"), L.LeakyReLU(),
            L.Conv2D(16, 3, strides=2, padding="same"), L.LeakyReLU(),
            L.Conv2DTranspose(8, 3, strides=2, padding="same"), L.LeakyReLU(),
            L.UpSampling2D(2, interpolation="bilinear"), L.Conv2D(3, 3, padding="same", activation="sigmoid"),
        ])

    def tabular():
        city = L.Input((1,), dtype="string", name="city")
        age = L.Input((1,), name="age")
        numbers = L.StringLookup(vocabulary=["paris", "london", "rome"])(city)
        x = L.Flatten()(L.Embedding(5, 4)(numbers))
        y = L.Normalization(mean=40.0, variance=100.0)(age)
        x = L.Dense(16, "selu")(L.Concatenate()([x, y]))
        return keras.Model([city, age], L.Dense(1)(x))

    def text_vectorisation():
        words = L.Input((), dtype="string", name="text")
        make = L.TextVectorization(max_tokens=50, output_mode="multi_hot")
        make.adapt(["the quick brown fox", "jumps over the lazy dog", "hello world"])
        return keras.Model(words, L.Dense(3)(make(words)))

    def unet():
        inputs = L.Input((64, 64, 3))
        a = L.Conv2D(8, 3, padding="same", activation="relu")(inputs)
        b = L.Conv2D(16, 3, padding="same", activation="relu")(L.MaxPooling2D()(a))
        c = L.Conv2D(32, 3, padding="same", activation="relu")(L.MaxPooling2D()(b))
        d = L.Concatenate()([L.UpSampling2D()(c), b])
        d = L.Conv2D(16, 3, padding="same", activation="relu")(d)
        e = L.Concatenate()([L.Conv2DTranspose(8, 2, strides=2)(d), a])
        return keras.Model(inputs, L.Conv2D(2, 1)(e))

    def application(name, **options):
        def make():
            return getattr(keras.applications, name)(weights=None, classifier_activation=None, **options)
        return make

    # Others than those of the first list.
    def conv1d_3d():
        x = L.Input((40, 4))
        y = L.Conv1D(8, 3, padding="causal", dilation_rate=2, activation="swish")(x)
        y = L.SeparableConv1D(8, 3)(y)
        y = L.MaxPooling1D(2)(y)
        return keras.Model(x, L.Dense(4, "softmax")(L.GlobalMaxPooling1D()(y)))

    def bidirectional():
        x = L.Input((12,), dtype="int32")
        y = L.Embedding(50, 16, mask_zero=True)(x)
        y = L.Bidirectional(L.LSTM(8, return_sequences=True))(y)
        y = L.Bidirectional(L.GRU(8))(y)
        return keras.Model(x, L.Dense(2)(y))

    def simple_rnn():
        return keras.Sequential([L.Input((20, 3)), L.SimpleRNN(10), L.Dense(2)])

    def norms():
        x = L.Input((8, 8, 16))
        y = L.GroupNormalization(4)(x)
        y = L.LayerNormalization()(y)
        y = L.UnitNormalization()(y)
        y = L.SpatialDropout2D(0.5)(L.PReLU()(y))
        return keras.Model(x, L.Cropping2D(1)(L.ZeroPadding2D(2)(y)))

    def depthwise():
        x = L.Input((24, 24, 6))
        y = L.DepthwiseConv2D(3, depth_multiplier=2, padding="same")(x)
        y = L.SeparableConv2D(8, 3, strides=2, activation="hard_swish" if hasattr(keras.activations, "hard_swish") else "relu6")(y)
        y = L.AveragePooling2D(2, padding="same")(y)
        y = L.Conv2D(8, 3, groups=4)(y)
        return keras.Model(x, L.Flatten()(y))

    def attention():
        q, v = L.Input((10, 16)), L.Input((12, 16))
        y = L.Attention(use_scale=True)([q, v])
        z = L.AdditiveAttention()([q, v])
        return keras.Model([q, v], L.Dense(3, "softplus")(L.Average()([y, z])))

    def reshapes():
        x = L.Input((6, 4))
        y = L.Permute((2, 1))(x)
        y = L.Reshape((3, 8))(y)
        y = L.RepeatVector(2)(L.Flatten()(y))
        y = L.TimeDistributed(L.Dense(5, "elu"))(y)
        return keras.Model(x, [y, keras.ops.sort(x, axis=1), keras.ops.argmax(x, axis=-1)])

    def conv_lstm():
        return keras.Sequential([L.Input((3, 8, 8, 2)), L.ConvLSTM2D(4, 3, padding="same"), L.Flatten(), L.Dense(2)])

    def volumes():
        return keras.Sequential([
            L.Input((8, 8, 8, 2)), L.Conv3D(4, 3, activation="relu"), L.MaxPooling3D(2), L.Flatten(), L.Dense(3),
        ])

    def categories():
        x = L.Input((3,), dtype="int64")
        y = L.CategoryEncoding(num_tokens=6, output_mode="multi_hot")(x)
        return keras.Model(x, L.Dense(2, "tanh")(y))

    models = {
        "mlp": mlp, "cnn": cnn, "lstm_gru": lstm_gru, "transformer": transformer, "autoencoder": autoencoder,
        "tabular": tabular, "text_vectorisation": text_vectorisation, "unet": unet,
        "resnet50": application("ResNet50"), "mobilenet_v2": application("MobileNetV2"),
        "mobilenet_v3": application("MobileNetV3Small"), "efficientnet_b0": application("EfficientNetB0"),
        "efficientnet_v2b0": application("EfficientNetV2B0"), "densenet121": application("DenseNet121"),
        "inception_v3": application("InceptionV3"), "xception": application("Xception"),
        "convnext_tiny": application("ConvNeXtTiny"), "nasnet_mobile": application("NASNetMobile"),
        "conv1d": conv1d_3d, "bidirectional": bidirectional, "simple_rnn": simple_rnn, "norms": norms,
        "depthwise": depthwise, "attention": attention, "reshapes": reshapes, "conv_lstm": conv_lstm,
        "volumes": volumes, "categories": categories,
    }

    def backbone(kind, **options):
        def make():
            import keras_hub
            return getattr(keras_hub.models, kind)(**options)
        return make

    small = dict(vocabulary_size=500, num_layers=2, hidden_dim=64, intermediate_dim=128)
    models["bert"] = backbone("BertBackbone", num_heads=4, max_sequence_length=64, **small)
    models["gpt2"] = backbone("GPT2Backbone", num_heads=4, max_sequence_length=64, **small)
    models["llama"] = backbone("LlamaBackbone", num_query_heads=4, num_key_value_heads=2, **small)
    return models


def tf_modules():
    """Returns functions that make modules of TensorFlow without Keras, with signatures of their own."""
    import tensorflow as tf

    class Control(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(tf.random.stateless_normal([4, 4], [SEED, 1]))

        @tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")])
        def __call__(self, x):
            i = tf.constant(0)
            while i < 5:
                x = tf.tanh(tf.matmul(x, self.w))
                if tf.reduce_sum(x) > 0.0:
                    x = x + 0.5
                else:
                    x = x * 0.5
                i += 1
            branch = tf.switch_case(tf.cast(tf.shape(x)[0], tf.int32) % 3, [lambda: x, lambda: -x, lambda: x * x])
            return {"y": branch, "n": tf.shape(x)[0]}

    class Tables(tf.Module):
        def __init__(self):
            super().__init__()
            keys = tf.constant(["a", "b", "c"])
            self.table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(keys, tf.constant([10, 20, 30], tf.int64)), -1)

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="words")])
        def __call__(self, words):
            return {"numbers": self.table.lookup(tf.strings.lower(words))}

    return {"control": Control, "tables": Tables}


def draw_inputs(name, specs, random):
    import tensorflow as tf

    words = ["paris", "london", "rome", "oslo", "hello world", "the lazy fox", "A", "b", "c"]
    found = {}
    for key, spec in specs.items():
        # Images of any size are large enough for each window of a network.
        extents = spec.shape.as_list()
        least = 96 if len(extents) == 4 else 16
        shape = [size or (least if index > 0 else 2) for index, size in enumerate(extents)]
        if spec.dtype == tf.string:
            found[key] = random.choice(words, shape).astype(object)
        elif spec.dtype.is_integer:
            most = 2 if "mask" in key or "segment" in key else 5
            least = 1 if "mask" in key else 0
            found[key] = random.integers(least, most, shape).astype(spec.dtype.as_numpy_dtype)
        else:
            found[key] = random.normal(size=shape).astype(spec.dtype.as_numpy_dtype)
    return found


def draw_variables(model, random):
    for variable in model.variables:
        path = variable.path
        shape = tuple(variable.shape)
        if not str(variable.dtype).startswith("float"):
            continue
        fan = float(np.prod(shape[:-1])) if len(shape) > 1 else 1.0
        value = random.normal(size=shape) / np.sqrt(max(fan, 1.0))
        if "variance" in path:
            value = 0.5 + np.abs(random.normal(size=shape)) * 0.5
        elif "gamma" in path or "scale" in path:
            value = 1.0 + 0.1 * random.normal(size=shape)
        elif len(shape) <= 1:
            value = 0.1 * random.normal(size=shape)
        variable.assign(value.astype(str(variable.dtype)))


def export(folder, names):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    folder.mkdir(parents=True, exist_ok=True)
    modules, keras_ones = tf_modules(), keras_models()
    for name in names or [*keras_ones, *modules]:
        directory = folder / name
        if (directory / "exported").exists():
            continue
        try:
            random = np.random.default_rng(SEED)
            if name in modules:
                module = modules[name]()
                tf.saved_model.save(module, str(directory), signatures=module.__call__)
            else:
                model = keras_ones[name]()
                draw_variables(model, random)
                model.export(str(directory), verbose=False)
                del model
            measure(name, directory, random)
        except Exception as error:  # noqa: BLE001
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)


def measure(name, directory, random):
    import tensorflow as tf

    signature = tf.saved_model.load(str(directory)).signatures["serving_default"]
    inputs = draw_inputs(name, signature.structured_input_signature[1], random)
    outputs = signature(**{key: tf.constant(value) for key, value in inputs.items()})
    for key, value in inputs.items():
        if value.dtype == object:
            (directory / f"in.{key}.json").write_text(json.dumps(value.tolist()))
        else:
            np.save(directory / f"in.{key}.npy", value)
    for key, value in outputs.items():
        np.save(directory / f"out.{key}.npy", value.numpy())
    (directory / "exported").touch()
    print(name, flush=True)


def tensorflow_times(directory):
    """Returns TensorFlow's times of loading with a first call, and of a call in the median, in ms."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow as tf
    except ImportError:
        return float("nan"), float("nan")
    given = {path.name[3:-4]: np.load(path) for path in directory.glob("in.*.npy")}
    given |= {path.name[3:-5]: np.array(json.loads(path.read_text()), object) for path in directory.glob("in.*.json")}
    begin = time.perf_counter()
    loaded = tf.saved_model.load(str(directory))
    signature = loaded.signatures["serving_default"]
    tensors = {key: tf.constant(value) for key, value in given.items()}
    {key: value.numpy() for key, value in signature(**tensors).items()}
    whole = time.perf_counter() - begin
    rounds, end = [], time.perf_counter() + 1.0
    while time.perf_counter() < end or len(rounds) < 5:
        begin = time.perf_counter()
        signature(**tensors)
        rounds.append(time.perf_counter() - begin)
    return whole * 1e3, float(np.median(rounds)) * 1e3


# Comparison --------------------------------------------------------------------------------------------------------


def compare(folder, names, tfrt):
    try:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(THREADS)
        tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    except ImportError:
        pass
    total = passed = 0
    print("| model | largest difference | load + first call, ms: tfrt | TensorFlow | call, ms: tfrt | TensorFlow |")
    print("| --- | --- | --- | --- | --- | --- |")
    for directory in sorted(folder.iterdir()):
        if not (directory / "exported").exists() or (names and directory.name not in names):
            continue
        total += 1
        passed += one(directory, tfrt)
    print(f"\n{passed} of {total} agree within 1e-4 of the largest output")


def one(directory, tfrt):
    given = []
    for path in sorted(directory.glob("in.*")):
        given += ["--input", f"{path.name.split('.', 1)[1].rsplit('.', 1)[0]}={path}"]
    with tempfile.TemporaryDirectory() as scratch:
        wanted = {path.name[4:-4]: np.load(path, allow_pickle=True) for path in directory.glob("out.*.npy")}
        written = []
        for key in wanted:
            written += ["--output", f"{key}={scratch}/{key}.npy"]
        begin = time.perf_counter()
        command = [tfrt, "run", "--queue", f"multi:{THREADS}", str(directory), *given, *written]
        result = subprocess.run(command, capture_output=True, text=True)
        whole = time.perf_counter() - begin
        if result.returncode:
            lines = result.stderr.strip().splitlines()
            print(f"| {directory.name} | fails: {lines[0][:160] if lines else result.returncode} | | | | |", flush=True)
            return 0
        worst = 0.0
        for key, expected in wanted.items():
            found = np.load(f"{scratch}/{key}.npy")
            if found.shape != expected.shape:
                print(f"| {directory.name} | {key}: shape {found.shape}, expected {expected.shape} | | | | |")
                return 0
            scale = max(float(np.abs(expected.astype(np.float64)).max(initial=0.0)), 1e-30)
            worst = max(worst, float(np.abs(found.astype(np.float64) - expected).max(initial=0.0)) / scale)
    command = [tfrt, "bench", "--queue", f"multi:{THREADS}", "--json", str(directory), *given]
    result = subprocess.run(command, capture_output=True, text=True)
    call = median(result.stdout)
    tf_whole, tf_call = tensorflow_times(directory)
    print(f"| {directory.name} | {worst:.1e} | {whole * 1e3:.0f} | {tf_whole:.0f} | {call:.3f} | {tf_call:.3f} |", flush=True)
    return worst <= 1e-4


def median(text):
    """Returns the median call in the document of `tfrt bench --json`, in ms."""
    try:
        document = json.loads(text)
    except ValueError:
        return float("nan")
    found = []

    def walk(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key in ("p50_ns", "median_ns") and isinstance(value, (int, float)):
                    found.append(value / 1e6)
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(document)
    return found[0] if found else float("nan")


def main():
    arguments = sys.argv[1:]
    if len(arguments) < 2 or arguments[0] not in ("export", "compare"):
        sys.exit(__doc__)
    options = {"--tfrt": "target/release/tfrt"}
    rest = []
    while arguments:
        word = arguments.pop(0)
        if word in options:
            options[word] = arguments.pop(0)
        else:
            rest.append(word)
    folder, names = pathlib.Path(rest[1]), rest[2:]
    if rest[0] == "export":
        export(folder, names)
    else:
        compare(folder, names, options["--tfrt"])


if __name__ == "__main__":
    main()
