"""A learner's state as two files that bring it back bit for bit, and that can run no code when they are loaded.

`state.json` holds the structure and all small values, `arrays.safetensors` all arrays and tensors, each named by its
path in the structure. What JSON has no word for is an object with one key: "$array", "$tensor", "$tuple", "$int" (in
hexadecimal) or "$float" (NaN and infinity, by their bits). A key of one's own that starts with "$" gets another "$".
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
import torch
from numpy.lib import format as numpy_format
from safetensors import SafetensorError
from torch import Tensor

from skillstack.errors import SkillstackError

STATE_FILE = "state.json"
ARRAYS_FILE = "arrays.safetensors"
FORMAT = "skillstack-state"
FORMAT_VERSION = 1

_NUMBERS = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
]
_OWN_DTYPES = frozenset(np.dtype(name) for name in _NUMBERS)
"""What safetensors has a name for; arrays of other types are in the file as plain bytes."""
_TORCH_DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in [*_NUMBERS, "bfloat16"]}
_LONG_BITS = 63
"""Whole numbers of more bits are in hexadecimal: other readers of JSON have 64 bits, and Python a limit of digits."""

Array = npt.NDArray[Any]


def pack(state: Mapping[str, Any]) -> dict[str, bytes]:
    """A nested dictionary as the contents of two files.

    Its keys are strings. Its values are tensors, NumPy arrays (of any type but objects), whole numbers of any size,
    floats, bools, strings, None, and lists, tuples and dictionaries of these. Anything else is a TypeError.
    """
    arrays: dict[str, Array] = {}
    content = {"format": FORMAT, "format_version": FORMAT_VERSION, "state": _encode(dict(state), "", arrays)}
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    return {STATE_FILE: text.encode(), ARRAYS_FILE: safetensors.numpy.save(arrays)}


def unpack(files: Mapping[str, bytes]) -> dict[str, Any]:
    """What was packed. Arrays and tensors are new, and on the CPU."""
    try:
        content = json.loads(files[STATE_FILE])
        if content["format"] != FORMAT or content["format_version"] != FORMAT_VERSION:
            raise ValueError(f'it is not "{FORMAT}" of version {FORMAT_VERSION}')
        state = _decode(content["state"], "", safetensors.numpy.load(files[ARRAYS_FILE]))
        if not isinstance(state, dict):
            raise ValueError("it is not a dictionary")
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError, SafetensorError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise SkillstackError(f"The state cannot be unpacked: {what}.") from error
    return state


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimizer's state, for `pack`. Its tensors are the optimizer's own: pack it before the next step."""
    state = optimizer.state_dict()
    return {**state, "state": {str(number): values for number, values in state["state"].items()}}


def load_optimizer_state(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Put back a state from `optimizer_state` into an optimizer of the same kind for the same parameters."""
    numbered = {int(number): deepcopy(values) for number, values in state["state"].items()}
    optimizer.load_state_dict({**state, "state": numbered})


# Packing


def _encode(value: Any, path: str, arrays: dict[str, Array]) -> Any:
    """A value as JSON; the arrays in it go into `arrays` under their paths. Types are exact, as they must come back."""
    if value is None or type(value) in (bool, str):
        return value
    if type(value) is int:
        return value if value.bit_length() <= _LONG_BITS else {"$int": hex(value)}
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": struct.pack(">d", value).hex()}
    if type(value) is dict:
        return {_encode_key(key, path): _encode(item, _below(path, key), arrays) for key, item in value.items()}
    if type(value) is list:
        return [_encode(item, _below(path, number), arrays) for number, item in enumerate(value)]
    if type(value) is tuple:
        return {"$tuple": _encode(list(value), path, arrays)}
    if type(value) is np.ndarray:
        return {"$array": {"dtype": _encode_dtype(value.dtype, path), **_store(value, path, arrays)}}
    if isinstance(value, Tensor):
        return {"$tensor": _encode_tensor(value, path, arrays)}
    raise TypeError(f"{path} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be packed.")


def _encode_key(key: object, path: str) -> str:
    if type(key) is not str:
        raise TypeError(f"{path or 'The state'} has the key {key!r}, and only strings can be keys.")
    return f"${key}" if key.startswith("$") else key


def _below(path: str, key: object) -> str:
    """The path of an item, written as in RFC 6901, so that no two are the same."""
    return f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _encode_dtype(dtype: np.dtype[Any], path: str) -> Any:
    """As in the header of an .npy file: a string, or a list of fields."""
    try:
        description = None if dtype.hasobject else numpy_format.dtype_to_descr(dtype)
        back = _decode_dtype(json.loads(json.dumps(description)))
    except (TypeError, ValueError):  # fields that have titles, or overlap
        back = None
    if back != dtype:
        raise TypeError(f"{path} is an array of {dtype}, which cannot be packed.")
    return description


def _encode_tensor(tensor: Tensor, path: str, arrays: dict[str, Array]) -> dict[str, Any]:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _TORCH_DTYPES or tensor.layout != torch.strided:
        raise TypeError(f"{path} is a tensor of {tensor.dtype} ({tensor.layout}), which cannot be packed.")
    values = tensor.detach().cpu()
    if values.dtype == torch.bfloat16:  # unknown to NumPy
        values = values.view(torch.int16)
    return {"dtype": name, **_store(values.numpy(), path, arrays)}


def _store(array: Array, path: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """Put an array into the file, in the order it has in memory: then it is not copied, and sums add up as before."""
    fields: dict[str, Any] = {"shape": list(array.shape)}
    if not array.flags.c_contiguous:
        # Axes of length 1 go first, as they come: any place would do for them, and their strides say nothing.
        order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis] if array.shape[axis] > 1 else -math.inf)
        if array.transpose(order).flags.c_contiguous:
            fields["order"] = order
            array = array.transpose(order)
        else:
            array = np.ascontiguousarray(array)
    if array.dtype not in _OWN_DTYPES:
        array = array.reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
    arrays[path] = array
    return fields


# Unpacking


def _decode(value: Any, path: str, arrays: dict[str, Array]) -> Any:
    if isinstance(value, list):
        return [_decode(item, _below(path, number), arrays) for number, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if not tag.startswith("$") or tag.startswith("$$"):
        keys = {key.removeprefix("$"): item for key, item in value.items()}
        return {key: _decode(item, _below(path, key), arrays) for key, item in keys.items()}
    content = value[tag]
    if tag == "$int":
        return int(content, 16)
    if tag == "$float":
        return struct.unpack(">d", bytes.fromhex(content))[0]
    if tag == "$tuple":
        return tuple(_decode(content, path, arrays))
    if tag == "$array":
        return _take(content, _decode_dtype(content["dtype"]), path, arrays)
    if tag == "$tensor":
        return _decode_tensor(content, path, arrays)
    raise ValueError(f"{path} is a {tag}, which is unknown")


def _decode_dtype(description: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = numpy_format.descr_to_dtype(description)
    if dtype.hasobject:  # bytes from a file would become pointers
        raise ValueError("an array of objects is no array of plain bytes")
    return dtype


def _decode_tensor(content: Mapping[str, Any], path: str, arrays: dict[str, Array]) -> Tensor:
    name = content["dtype"]
    dtype = _TORCH_DTYPES[name]
    array = _take(content, np.dtype(np.int16 if dtype == torch.bfloat16 else name), path, arrays)
    return torch.from_numpy(array).view(dtype).clone()  # in PyTorch's own memory, which is aligned


def _take(content: Mapping[str, Any], dtype: np.dtype[Any], path: str, arrays: dict[str, Array]) -> Array:
    """Take an array out of the file's arrays, so that its memory is free as soon as it is not needed."""
    stored, shape = arrays.pop(path), tuple(content["shape"])
    order = content.get("order", range(len(shape)))
    laid = [shape[axis] for axis in order]
    if not stored.nbytes:
        return np.empty(laid, dtype).transpose(np.argsort(order))
    return stored.reshape(-1).view(np.uint8).view(dtype).reshape(laid).transpose(np.argsort(order))
