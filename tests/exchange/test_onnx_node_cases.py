"""The node cases of the onnx package: what its own reference evaluator passes, pyop passes, and with the same bits; and
what pyop has read, it writes again.
"""

import copy
import pickle
import warnings

import pytest

onnx = pytest.importorskip("onnx")

import pyop  # noqa: E402
import pyop.onnx  # noqa: E402

from .node_cases import as_feed, cases, cases_of, data_of, feeds_of, same, same_bits  # noqa: E402


@pytest.mark.campaign
def test_what_the_reference_evaluator_passes():
    from onnx.reference import ReferenceEvaluator

    counts = {"cases": 0, "reference": 0, "pyop": 0}
    differ = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases():
            names = [info.name for info in case.model.graph.input]
            for inputs, outputs in data_of(case):
                counts["cases"] += 1
                try:
                    theirs = ReferenceEvaluator(case.model).run(None, dict(zip(names, inputs, strict=False)))
                except Exception:
                    continue
                if not same(list(outputs), list(theirs), case.rtol, case.atol):
                    continue
                counts["reference"] += 1
                try:
                    plan = pyop.onnx.load(case.model).compile()
                    mine = list(plan(**{name: as_feed(x) for name, x in zip(names, inputs, strict=False)}).values())
                    good = same(list(outputs), mine, case.rtol, case.atol)
                    reason = None if good else "another result"
                except Exception as error:
                    reason = f"{type(error).__name__}: {str(error)[:200]}"
                counts["pyop"] += reason is None
                if reason is not None:
                    differ.append(f"{case.name}: {reason}")
    print(counts, *differ, sep="\n")
    assert counts["reference"] > 1800
    assert counts["pyop"] >= 0.99 * counts["reference"], "\n".join(differ)


def problem(case, inputs, graph, first):
    """What is wrong with a loaded graph that was written and read again; None for nothing."""
    feeds = feeds_of(case, inputs)
    plan = graph.compile()
    model = pyop.onnx.export(graph)
    onnx.checker.check_model(model, full_check=is_valid(case.model))
    again = pyop.onnx.load(model)
    assert [value.name for value in again.inputs] == [value.name for value in graph.inputs]
    for made in (again, pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        if list(made.outputs) != list(graph.outputs):
            return f"its outputs are {list(made.outputs)}"
        # The second question is for random numbers, of which few may be the same by chance.
        if not same_bits(first, made.compile()(**feeds)) and all(same_bits(first, plan(**feeds)) for _ in range(8)):
            return "another result"
        if made is not again and pyop.onnx.export(made) != model:
            return "another model the second time"
    return None


def is_valid(model):
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception:
        return False
    return True


def differing(chosen):
    """How many cases pyop loads and runs, and those that differ once they were written and read again."""
    count, differ = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in chosen:
            for inputs, _ in data_of(case):
                try:
                    graph = pyop.onnx.load(case.model)
                    first = graph.compile()(**feeds_of(case, inputs))
                except Exception:
                    continue
                count += 1
                try:
                    reason = problem(case, inputs, graph, first)
                except Exception as error:
                    reason = f"{type(error).__name__}: {str(error)[:300]}"
                if reason is not None:
                    differ.append(f"{case.name}: {reason}")
    return count, differ


def test_some_of_the_models_are_written_as_they_were_read():
    operators = {
        "If": "if_",
        "Loop": "loop",
        "SequenceMap": "sequence_map",
        "OptionalHasElement": "optionalhaselement",
        "LSTM": "lstm",
        "Softmax": "softmax",
        "CastLike": "castlike",
        "Relu": "relu",
        "MatMul": "matmul",
        "Bernoulli": "bernoulli",
        "StringConcat": "string_concat",
    }
    count, differ = differing(cases_of(operators))
    assert count > 50
    assert not differ, "\n".join(differ)


@pytest.mark.campaign
def test_models_are_written_as_they_were_read():
    count, differ = differing(cases())
    print(count, *differ, sep="\n")
    assert count > 1800
    assert len(differ) <= 0.01 * count, "\n".join(differ)


@pytest.mark.campaign
def test_models_are_saved_as_they_were_read(tmp_path):
    count, differ = 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in cases():
            inputs, _ = next(data_of(case))
            feeds = feeds_of(case, inputs)
            try:
                graph = pyop.onnx.load(case.model)
                plan = graph.compile()
                first = plan(**feeds)
            except Exception:
                continue
            count += 1
            graph.save(tmp_path / "case.onnx")
            again = pyop.load(tmp_path / "case.onnx")
            if not same_bits(first, again.compile()(**feeds)) and same_bits(first, plan(**feeds)):
                differ.append(case.name)
            assert pyop.onnx.export(again) == pyop.onnx.export(graph)
    assert count > 1800
    assert not differ
