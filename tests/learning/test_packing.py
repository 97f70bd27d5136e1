from __future__ import annotations

import json
import random
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch import Tensor, nn

from skillstack.errors import SkillstackError
from skillstack.learning.packing import (
    ARRAYS_FILE,
    STATE_FILE,
    load_optimizer_state,
    optimizer_state,
    pack,
    unpack,
)
from skillstack.worlds.rooms.layout import state_dtype

TORCH_DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32),
    *(torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64),
]


def bits(value: Any) -> Any:
    """Something that is equal for two values only if they are the same in every bit, type and layout."""
    if isinstance(value, float):
        return float, struct.pack(">d", value)
    if isinstance(value, np.ndarray):
        steps = [step for step, size in zip(value.strides, value.shape, strict=True) if size > 1]
        return np.ndarray, value.dtype, value.shape, steps if value.size else [], value.tobytes()
    if isinstance(value, Tensor):
        plain = value.view(torch.int16) if value.dtype == torch.bfloat16 else value
        return Tensor, value.dtype, bits(plain.numpy())
    if isinstance(value, dict):
        return dict, [(key, bits(item)) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [bits(item) for item in value]
    return type(value), value


def plain_bytes() -> st.SearchStrategy[np.dtype[Any]]:
    return st.one_of(
        hnp.scalar_dtypes(),  # of both byte orders; dates and strings too
        hnp.nested_dtypes(subtype_strategy=hnp.scalar_dtypes(), max_leaves=4),
        st.builds(state_dtype, st.integers(1, 6)),
    ).filter(lambda dtype: dtype.subdtype is None and not has_titles(dtype))


def has_titles(dtype: np.dtype[Any]) -> bool:
    fields = dtype.base.fields
    return fields is not None and any(len(field) > 2 or has_titles(field[0]) for field in fields.values())


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    dtype = draw(plain_bytes())
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    size = dtype.itemsize * int(np.prod(shape))
    array = np.frombuffer(draw(st.binary(min_size=size, max_size=size)) or b" ", np.uint8)[:size]
    array = (array.view(dtype) if size else np.empty(shape, dtype)).reshape(shape)
    return np.asarray(array).copy().transpose(draw(st.permutations(range(array.ndim))))


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype = draw(st.sampled_from(TORCH_DTYPES))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    values = draw(hnp.arrays(np.uint8, (*shape, dtype.itemsize)))
    tensor = torch.empty(shape, dtype=dtype)
    tensor.reshape(-1).view(torch.uint8).numpy()[:] = (values % 2 if dtype == torch.bool else values).reshape(-1)
    return tensor.permute(tuple(draw(st.permutations(range(tensor.ndim)))))


KEYS = st.text(max_size=5) | st.text("$~/01", max_size=4) | st.sampled_from(["$array", "$tuple", "__metadata__"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(width=64) | st.text(max_size=5) | arrays() | tensors()
STATES = st.dictionaries(
    KEYS,
    st.recursive(
        LEAVES,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.lists(inner, max_size=3).map(tuple)
            | st.dictionaries(KEYS, inner, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=4,
)


@settings(deadline=None, max_examples=150)
@given(STATES)
def test_whatever_is_packed_comes_back_bit_for_bit(state: dict[str, Any]) -> None:
    assert bits(unpack(pack(state))) == bits(state)


@settings(deadline=None, max_examples=50)
@given(STATES)
@example({"": torch.zeros(1, 1, 2, 2, dtype=torch.bool).permute(3, 2, 1, 0)})  # axes of length 1 have any stride
def test_the_same_state_is_packed_into_the_same_bytes(state: dict[str, Any]) -> None:
    assert pack(state) == pack(unpack(pack(state)))


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1, 2**63 - 1, 2**63, -(2**64), 2**128 - 1, -(2**127), 10**5000),
        *(0.0, -0.0, 0.1, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"), float("nan"), -float("nan")),
        struct.unpack(">d", bytes.fromhex("7ff800000000beef"))[0],
        *(True, False, None, "", "Käse\n\0", [], {}, (), [None, [1.5, (2,)]], {"": {"$": {"$$": 1}}}),
    ],
    ids=lambda value: f"{type(value).__name__}",
)
def test_small_values_come_back_as_they_were(value: Any) -> None:
    assert bits(unpack(pack({"value": value}))["value"]) == bits(value)


def test_random_generators_go_on_where_they_were() -> None:
    numpy_rng, python_rng, torch_rng = np.random.default_rng(3), random.Random(3), torch.Generator().manual_seed(3)
    numpy_rng.random(5, dtype=np.float32), python_rng.random(), torch.rand(5, generator=torch_rng)
    state = unpack(
        pack(
            {
                "numpy": numpy_rng.bit_generator.state,
                "python": python_rng.getstate(),
                "torch": torch_rng.get_state(),
            }
        )
    )
    others = np.random.default_rng(), random.Random(), torch.Generator()
    others[0].bit_generator.state = state["numpy"]
    others[1].setstate(state["python"])
    others[2].set_state(state["torch"])
    assert others[0].random() == numpy_rng.random()
    assert others[1].random() == python_rng.random()
    assert torch.equal(torch.rand(5, generator=others[2]), torch.rand(5, generator=torch_rng))


def test_snapshots_of_the_world_come_back_with_their_fields() -> None:
    snapshots = np.zeros(7, state_dtype(6))
    snapshots["blocks"] = np.arange(7 * 24).reshape(7, 6, 4) % 128
    back = unpack(pack({"snapshots": snapshots}))["snapshots"]
    assert back.dtype == snapshots.dtype
    assert np.array_equal(back, snapshots)


def test_the_layout_in_memory_comes_back_as_sums_depend_on_it() -> None:
    array = np.random.default_rng(0).random((50, 60)).astype(np.float32).T
    tensor = torch.rand(2, 3, 8, 8).to(memory_format=torch.channels_last)
    state = unpack(pack({"array": array, "tensor": tensor, "slice": array[::2, ::3]}))
    assert state["array"].strides == array.strides
    assert state["array"].sum() == array.sum()
    assert state["tensor"].stride() == tensor.stride()
    assert np.array_equal(state["slice"], array[::2, ::3])


def test_what_comes_back_can_be_written_to_and_shares_nothing() -> None:
    array, tensor = np.zeros(3), torch.zeros(3)
    files = pack({"array": array, "tensor": tensor, "parameter": nn.Parameter(tensor)})
    first, second = unpack(files), unpack(files)
    first["array"] += 1
    first["tensor"] += 1
    assert array.sum() == tensor.sum() == second["array"].sum() == second["tensor"].sum() == 0
    assert type(first["parameter"]) is Tensor


def test_arrays_are_in_the_file_under_their_paths_for_others_to_look_at() -> None:
    files = pack({"replay": {"action": np.arange(3), "of/one": [torch.ones(2, dtype=torch.float16)]}})
    stored = safetensors.numpy.load(files[ARRAYS_FILE])
    assert sorted(stored) == ["/replay/action", "/replay/of~1one/0"]
    assert stored["/replay/action"].tolist() == [0, 1, 2]
    assert stored["/replay/of~1one/0"].dtype == np.float16


def test_a_large_array_is_copied_once_each_way() -> None:
    size = 8_000_000
    state = {"replay": np.zeros(size, np.uint8), "turned": np.zeros((4, size // 4), np.uint8).T}
    tracemalloc.start()
    try:
        files = pack(state)
        _, packing = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        back = unpack(files)
        _, unpacking = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert packing < 2 * size * 1.1
    assert unpacking < 4 * size * 1.1  # the files, and one copy
    assert sum(array.nbytes for array in back.values()) == 2 * size


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (np.float64(1.0), "numpy.float64"),
        (np.array([None]), "object"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), "StringDType"),
        (np.zeros(2).view(np.recarray), "recarray"),
        (np.zeros(2, np.dtype([(("title", "name"), "<i4")])), "title"),
        (np.zeros(2, np.dtype({"names": ["a", "b"], "formats": ["<i4", "<i2"], "offsets": [0, 2]})), "offsets"),
        (torch.zeros(2, dtype=torch.complex64), "complex64"),
        (torch.eye(2).to_sparse(), "sparse"),
        ({1: 2}, "the key 1"),
        ({2, 3}, "builtins.set"),
        (b"bytes", "builtins.bytes"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_could_not_come_back_as_it_was_is_refused_with_its_path(value: Any, named: str) -> None:
    with pytest.raises(TypeError, match=f"/a/1.*{named}"):
        pack({"a": [0, value]})


def packed() -> dict[str, bytes]:
    return pack({"array": np.arange(4), "tensor": torch.ones(2), "text": "a"})


def with_json(change: Callable[[dict[str, Any]], object]) -> dict[str, bytes]:
    files = packed()
    content = json.loads(files[STATE_FILE])
    change(content)
    return {**files, STATE_FILE: json.dumps(content).encode()}


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "state.json"),
        ({STATE_FILE: packed()[STATE_FILE]}, "arrays.safetensors"),
        ({**packed(), STATE_FILE: b"{"}, ""),
        ({**packed(), STATE_FILE: b"[]"}, ""),
        ({**packed(), STATE_FILE: b"[" * 100_000}, ""),
        ({**packed(), ARRAYS_FILE: b"nothing"}, ""),
        ({**packed(), ARRAYS_FILE: pack({})[ARRAYS_FILE]}, "/array"),
        (with_json(lambda content: content.update(format="other")), "skillstack-state"),
        (with_json(lambda content: content.update(format_version=2)), "version 1"),
        (with_json(lambda content: content.update(state=[])), "not a dictionary"),
        (with_json(lambda content: content["state"].update(text={"$code": "1"})), "[$]code"),
        (with_json(lambda content: content["state"]["array"]["$array"].update(dtype="|O")), "objects"),
        (with_json(lambda content: content["state"]["array"]["$array"].update(dtype=[["a", "|O"]])), "objects"),
        (with_json(lambda content: content["state"]["array"]["$array"].update(dtype="nonsense")), "nonsense"),
        (with_json(lambda content: content["state"]["array"]["$array"].update(shape=[5])), "shape"),
        (with_json(lambda content: content["state"]["array"]["$array"].update(shape=[4], order=[1])), ""),
        (with_json(lambda content: content["state"]["tensor"]["$tensor"].update(dtype="Tensor")), "Tensor"),
    ],
)
def test_files_that_are_not_a_packed_state_are_refused_in_one_sentence(files: dict[str, bytes], reason: str) -> None:
    with pytest.raises(SkillstackError, match=rf"The state cannot be unpacked: .*{reason}"):
        unpack(files)


# Optimizers


def rmsprop(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.RMSprop(parameters, lr=1e-2, momentum=0.5, centered=True)


def adam(parameters: Any) -> torch.optim.Optimizer:
    groups = [{"params": [parameter], "lr": 0.1 / (number + 3)} for number, parameter in enumerate(parameters)]
    return torch.optim.Adam(groups, betas=(0.8, 0.95), amsgrad=True)


def learn(model: nn.Module, optimizer: torch.optim.Optimizer, seed: int) -> None:
    for step in range(4):
        x = torch.rand(16, 5, generator=torch.Generator().manual_seed(100 * seed + step))
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("make", [rmsprop, adam])
def test_an_optimizer_goes_on_from_its_packed_state_bit_for_bit(make: Callable[[Any], torch.optim.Optimizer]) -> None:
    model, other = nn.Linear(5, 3), nn.Linear(5, 3)
    optimizer, of_other = make(list(model.parameters())), make(list(other.parameters()))
    learn(model, optimizer, seed=0)
    for group in optimizer.param_groups:
        group["lr"] *= 0.7  # as a schedule would
    files = pack({"model": dict(model.state_dict()), "optimizer": optimizer_state(optimizer)})

    state = unpack(files)
    other.load_state_dict(state["model"])
    load_optimizer_state(of_other, state["optimizer"])
    assert bits(of_other.state_dict()) == bits(optimizer.state_dict())
    learn(model, optimizer, seed=1)
    learn(other, of_other, seed=1)
    assert bits(other.state_dict()) == bits(model.state_dict())
    assert bits(of_other.state_dict()) == bits(optimizer.state_dict())
    assert bits(state) == bits(unpack(files)), "learning must not write into the state that was loaded"


def test_an_optimizer_that_has_not_stepped_has_a_state_too() -> None:
    model = nn.Linear(2, 2)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=3e-4)
    load_optimizer_state(optimizer, unpack(pack(optimizer_state(optimizer))))
    assert optimizer.state_dict()["state"] == {}
    assert optimizer.param_groups[0]["lr"] == 3e-4
