"""Compares `tfrt run --tokenizer` with the Python package `tokenizers`, on 1,000 lines of text.

    tokens.py COMMAND [TOKENIZER..]

COMMAND is `tfrt`, built with the feature `tokenizer`. Each TOKENIZER is a file tokenizer.json; without any, three are
trained on the lines themselves: BPE of bytes, as GPT-2 has it, WordPiece, as BERT has it, and Unigram, as T5 has it. A
model that gives back its inputs `input_ids`, `attention_mask` and `token_type_ids` is called once for each line, in one
batch; it prints how many lines are equal, and fails if one is not.

The lines are drawn at random: words of several scripts, digits, punctuation, white space, emoji and marks that combine.
It needs the packages `tokenizers` and nothing else.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

N_LINES, N_IN_CALL = 1000, 250
PARTS = [
    "the quick brown fox jumps over a lazy dog and runs away from it all",
    "Übergrößen naïve façade Ångström cœur señor Straße",
    "быстрая коричневая лиса прыгает через ленивую собаку",
    "素早い茶色の狐がのろまな犬を飛び越える 我们 在 这里",
    "سريع الثعلب البني يقفز فوق الكلب किताब पढ़ना",
    "I'm you're they'll it's don't 3.14 1,000,000 0x1F e=mc² ½ №",
    "😀 👩‍👩‍👧 🇨🇭 e\u0301 n\u0303 \u200b ﬁ Ⅷ",
    "https://example.org/a?b=c#d foo_bar(baz) <s> [CLS] {} -- ... !? \t  ",
]
MODEL = """module attributes {onnx.opset = 17 : i64} {
  func.func @main(%a: tensor<1x?xi64>, %b: tensor<1x?xi64>, %c: tensor<1x?xi64>)
      -> (tensor<1x?xi64>, tensor<1x?xi64>, tensor<1x?xi64>) attributes {
      model.input_names = ["input_ids", "attention_mask", "token_type_ids"], model.output_names = ["a", "b", "c"]} {
    %x = "onnx.Identity"(%a) : (tensor<1x?xi64>) -> tensor<1x?xi64>
    %y = "onnx.Identity"(%b) : (tensor<1x?xi64>) -> tensor<1x?xi64>
    %z = "onnx.Identity"(%c) : (tensor<1x?xi64>) -> tensor<1x?xi64>
    func.return %x, %y, %z : tensor<1x?xi64>, tensor<1x?xi64>, tensor<1x?xi64>
  }
}
"""


def lines():
    draw = random.Random(7)
    words = [word for part in PARTS for word in part.split(" ")] + ["\t", " "]
    for number in range(N_LINES):
        line = " ".join(draw.choice(words) for _ in range(draw.randint(1, 24)))
        yield line.strip() or f"line {number}"


def train(tokenizer, texts, trainer, **options):
    tokenizer.train_from_iterator(texts, trainer(show_progress=False, **options))


def trained(texts):
    bpe = tokenizers.Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "</s>"]
    train(bpe, texts, trainers.BpeTrainer, vocab_size=900, initial_alphabet=alphabet, special_tokens=special)
    yield "BPE of bytes", bpe
    words = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer(lowercase=True)
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    train(words, texts, trainers.WordPieceTrainer, vocab_size=400, special_tokens=special)
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    words.enable_truncation(24)
    words.enable_padding(pad_id=0, length=20)
    yield "WordPiece", words
    unigram = tokenizers.Tokenizer(models.Unigram())
    unigram.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(tokenizers.Regex(" {2,}"), " ")])
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<pad>", "<unk>"]
    train(unigram, texts, trainers.UnigramTrainer, vocab_size=300, unk_token="<unk>", special_tokens=special)
    yield "Unigram", unigram


def found(command, folder, path, texts):
    model = folder / "model.mlir"
    model.write_text(MODEL)
    for first in range(0, len(texts), N_IN_CALL):
        given = [f"--input=input_ids={text}" for text in texts[first : first + N_IN_CALL]]
        # A batch has two calls or more.
        assert len(given) > 1
        call = [command, "run", model, "--json", "--tokenizer", path, *given]
        out = subprocess.run(call, check=True, stdout=subprocess.PIPE).stdout
        for call in json.loads(out)["calls"]:
            yield [output.get("value")[0] for output in call["outputs"]]


def main(command, *paths):
    texts = list(lines())
    given = [(path, tokenizers.Tokenizer.from_file(path)) for path in paths]
    is_equal = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, tokenizer in given or trained(texts):
            path = folder / "tokenizer.json"
            tokenizer.save(str(path))
            n_equal = n_tokens = 0
            for text, lists in zip(texts, found(command, folder, path, texts), strict=True):
                encoding = tokenizer.encode(text)
                expected = [encoding.ids, encoding.attention_mask, encoding.type_ids]
                n_tokens += len(encoding.ids)
                n_equal += lists == expected
                if lists != expected and is_equal:
                    print(f"{text!r}: expected {expected[0]}, found {lists[0]}", file=sys.stderr)
                    is_equal = False
            print(f"{name}: {n_equal} of {len(texts)} lines equal, {n_tokens} tokens")
    sys.exit(not is_equal)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
