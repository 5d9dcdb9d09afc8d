#!/usr/bin/env python3
"""Makes the files of tensors beside it, with PyTorch and NumPy: python3 make.py (see README.md)."""
import collections
import pathlib

import numpy
import torch

here = pathlib.Path(__file__).parent
torch.manual_seed(1)


def save(name, value, **options):
    torch.save(value, here / name, **options)


shared = torch.arange(24, dtype=torch.float32).reshape(4, 6) / 8
content = {
    "model": collections.OrderedDict(
        [
            ("plain", shared),
            ("transposed", shared.t()),
            ("window", shared[1:3, 2:5]),
            ("every_second", shared[:, ::2]),
            ("tied", shared),
            ("parameter", torch.nn.Parameter(torch.tensor([1.5, -2.5, 3.25]))),
            ("double", torch.tensor([[0.1], [1e-30]], dtype=torch.float64)),
            ("half", torch.tensor([1.0, 65504.0, 6e-8, -0.0], dtype=torch.float16)),
            ("bfloat", torch.tensor([1.0, 3.140625, -1e30], dtype=torch.bfloat16)),
            ("long", torch.tensor([[1, -2, 3]], dtype=torch.int64)),
            ("int", torch.tensor([7, -8], dtype=torch.int32)),
            ("short", torch.tensor([300, -300], dtype=torch.int16)),
            ("char", torch.tensor([-128, 127], dtype=torch.int8)),
            ("byte", torch.tensor([0, 255], dtype=torch.uint8)),
            ("bool", torch.tensor([True, False, True])),
            ("scalar", torch.tensor(2.5)),
            ("empty", torch.zeros(0, 3)),
        ]
    ),
    "step": 1234,
    "big": 1 << 80,
    "lr": 0.001,
    "name": "a\u00e9b",
    "done": True,
    "nothing": None,
    "sizes": torch.Size([3, 4]),
    "dtype": torch.float16,
    "device": torch.device("cpu"),
    "history": [1, 2.5, [3]],
    "raw": b"\x00\xff",
    "tags": {"x"},
}
save("zip.pt", content)
save("legacy.pt", content, _use_new_zipfile_serialization=False)
save("module.pt", torch.nn.Linear(3, 2).state_dict())
save("tensor.pt", torch.tensor([1.0, 2.0]))
save("object.pt", torch.nn.Linear(3, 2))

arrays = {
    "c_order": numpy.arange(24, dtype=numpy.float32).reshape(2, 3, 4),
    "fortran": numpy.asfortranarray(numpy.arange(24, dtype=numpy.float64).reshape(2, 3, 4)),
    "half": numpy.array([0.5, -2.0], dtype=numpy.float16),
    "int": numpy.array([[1], [-2]], dtype=numpy.int32),
    "scalar": numpy.float32(7.5),
    "empty": numpy.zeros((3, 0), dtype=numpy.float32),
}
numpy.savez(here / "stored.npz", **arrays)
numpy.savez_compressed(here / "deflated.npz", **arrays)
numpy.savez(here / "objects.npz", objects=numpy.array([{"a": 1}], dtype=object))
