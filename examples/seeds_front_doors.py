"""TensorFlow's entry points with text: py_func, numpy_function and contrib.py_func, as graph nodes and as plain
calls.

The text is Python's own language reference, which every Python ships as `pydoc_data`. As in TensorFlow, text
travels as bytes in object arrays. A function written for these entry points runs unchanged; what pyop adds is
that a wrong dtype, a wrong number of results or an exception says which function and which line is to blame.

    python examples/seeds_front_doors.py
"""

import re
from pydoc_data.topics import topics

import numpy as np

import pyop

TOPICS = ("for", "while", "try", "class", "function", "lambda")


def tokenise(texts):
    """All words of all texts in one flat array, and which text each came from: sizes known only after the call."""
    found = [re.findall(rb"[a-z]{3,}", text.lower()) for text in texts.tolist()]
    words = np.array([word for text in found for word in text], dtype=object)
    return words, np.repeat(np.arange(len(found)), [len(text) for text in found])


def index(words):
    """The vocabulary, and the place of every word in it."""
    vocabulary, places = np.unique(words, return_inverse=True)
    return vocabulary, places


def count(owner, places, texts, vocabulary):
    """How often each text uses each word."""
    table = np.zeros((len(texts), len(vocabulary)), np.int64)
    np.add.at(table, (owner, places), 1)
    return table


def telling(table, vocabulary, keep=3):
    """The words that set each text apart (tf-idf)."""
    rarity = np.log(len(table) / np.count_nonzero(table, axis=0))
    weight = table * rarity
    best = np.argsort(-weight, axis=1, kind="stable")[:, :keep]
    return {"words": vocabulary[best], "weight": np.take_along_axis(weight, best, axis=1)}


def keywords(texts):
    """The pipeline. Given a symbolic array it builds nodes; given an array it runs at once."""
    words, owner = pyop.numpy_function(tokenise, [texts], ["string", "int64"], stateful=False)
    vocabulary, places = pyop.py_func(index, [words], ["string", "int64"], stateful=False)
    table = pyop.py_func(count, [owner, places, texts, vocabulary], "int64", stateful=False)
    return pyop.contrib.py_func(
        telling,
        args=(table, vocabulary),
        kwargs={"keep": 4},
        output_types={"words": "string", "weight": "float64"},
        stateful=False,
    )


def main() -> None:
    texts = np.array([topics[name].encode() for name in TOPICS], dtype=object)

    with pyop.Graph() as graph:
        fed = graph.input("string", name="texts")
        wanted = keywords(fed)
    result = graph.run(wanted, {fed: texts})

    at_once = keywords(texts)
    assert result["words"].tolist() == at_once["words"].tolist()
    assert result["weight"].tobytes() == at_once["weight"].tobytes()

    for name, row in zip(TOPICS, result["words"], strict=True):
        print(f"{name:>9}: {b', '.join(row).decode()}")


if __name__ == "__main__":
    main()
