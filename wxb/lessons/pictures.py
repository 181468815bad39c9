"""Read labelled pictures: scikit-learn's digits, the files of CIFAR-10, or a folder."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from wxb.core.errors import WxbError

SUFFIXES = (".png", ".jpg", ".jpeg")
CIFAR = (3, 32, 32)  # channels, height, width


class Images(NamedTuple):
    """Pictures of one size with values in [0, 1], and the indices of their classes."""

    pixels: NDArray[np.float32]  # (N, C, H, W)
    labels: NDArray[np.int64]  # (N,)
    classes: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: NDArray[np.int64]) -> Images:
        """The pictures of these rows."""
        return Images(self.pixels[rows], self.labels[rows], self.classes)


def digits() -> Images:
    """The 1,797 handwritten digits of scikit-learn (N, 1, 8, 8), in 17 shades.

    Source: Alpaydin and Kaynak (1998), "Optical recognition of handwritten digits", UCI.
    """
    data = load_digits()
    pixels = (data.images / 16).astype(np.float32)[:, None]  # (N, 1, 8, 8)
    return Images(pixels, data.target.astype(np.int64), [str(name) for name in data.target_names])


def cifar(folder: Path) -> tuple[Images, Images]:
    """The training and the test pictures (N, 3, 32, 32) of CIFAR-10, from its Python version.

    `folder` has `data_batch_1` and further ones, `test_batch` and `batches.meta`, the names of the
    classes. Raises WxbError if one is missing or invalid, see `unpickle`.

    Source: Krizhevsky (2009), "Learning multiple layers of features from tiny images"; the format:
    cs.toronto.edu/~kriz/cifar.html.
    """
    batches = sorted(folder.glob("data_batch_*"))
    if not batches:
        raise WxbError(
            f"{folder}: found no data_batch_1; expected the Python version of CIFAR-10:"
            " data_batch_*, test_batch and batches.meta"
        )
    meta = unpickle(folder / "batches.meta")
    classes = [name.decode() for name in meta[b"label_names"]]
    return _read_batches(batches, classes), _read_batches([folder / "test_batch"], classes)


def folder(path: Path) -> Images:
    """Read colour pictures (N, 3, H, W) named <class>/<file>.png (or .jpg), all of one size.

    Raises WxbError for fewer than two classes, and for a picture that is unreadable or of another
    size.
    """
    files = sorted(file for file in path.glob("*/*") if file.suffix.lower() in SUFFIXES)
    classes = sorted({file.parent.name for file in files})
    if len(classes) < 2:
        raise WxbError(
            f"{path}: found pictures of {len(classes)} class(es); expected two or more, as"
            f" <class>/<file> with {', '.join(SUFFIXES)}"
        )
    pictures = [_read_picture(file) for file in files]
    for file, picture in zip(files, pictures, strict=True):
        if picture.shape != pictures[0].shape:
            sizes = [f"{shape[1]} x {shape[0]}" for shape in (picture.shape, pictures[0].shape)]
            raise WxbError(
                f"{file}: found {sizes[0]} pixels; expected {sizes[1]}, as in {files[0]}: resize"
                " all pictures to one size"
            )
    pixels = np.stack(pictures).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    labels = np.array([classes.index(file.parent.name) for file in files])
    return Images(pixels, labels, classes)


def split(images: Images, share: float, *, seed: int) -> tuple[Images, Images]:
    """Split off a random share of the pictures, stratified by class; returns the rest first.

    Raises WxbError if a class has too few pictures.
    """
    try:
        rest, held_out = train_test_split(
            np.arange(len(images)), test_size=share, random_state=seed, stratify=images.labels
        )
    except ValueError as error:
        raise WxbError(f"{len(images)} pictures cannot be split: {error}") from None
    return images.select(np.sort(rest)), images.select(np.sort(held_out))


def unpickle(path: Path) -> dict[bytes, Any]:
    """Read a dictionary from a pickle of arrays, lists, text and numbers.

    A pickle can call any function of any module. Only those that build arrays are allowed here.

    Raises WxbError for any other content.
    """
    try:
        with path.open("rb") as file:
            content = _Unpickler(file).load()
    except FileNotFoundError:
        raise WxbError(f"{path} does not exist") from None
    # Invalid bytes can raise any exception.
    except Exception as error:
        raise WxbError(f"{path}: not a pickle of arrays: {error}") from None
    if not isinstance(content, dict):
        raise WxbError(f"{path}: found a {type(content).__name__}, expected a dict")
    return content


class _Unpickler(pickle.Unpickler):
    """An unpickler that only allows the names of NumPy arrays.

    It has `encoding="bytes"`, as CIFAR-10 was written by Python 2.
    """

    RECONSTRUCT = np.zeros(0).__reduce__()[0]  # private in NumPy, but used by every array
    NAMES: Mapping[tuple[str, str], Any] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "_reconstruct"): RECONSTRUCT,  # before NumPy 2
        ("numpy._core.multiarray", "_reconstruct"): RECONSTRUCT,
    }

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, encoding="bytes")

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.NAMES:
            raise pickle.UnpicklingError(
                f"found {module}.{name}; only arrays, lists, text and numbers are allowed,"
                " because a pickle may run any code"
            )
        return self.NAMES[module, name]


def _read_batches(paths: list[Path], classes: list[str]) -> Images:
    data, labels = zip(*(_read_batch(path, len(classes)) for path in paths), strict=True)
    pixels = np.concatenate(data).reshape(-1, *CIFAR).astype(np.float32) / np.float32(255)
    return Images(pixels, np.concatenate(labels), classes)


def _read_batch(path: Path, classes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The pictures of one file, a row each, and the indices of their classes."""
    content = unpickle(path)
    try:
        data, labels = content[b"data"], np.array(content[b"labels"], np.int64)
        if data.shape != (len(labels), np.prod(CIFAR)) or data.dtype != np.uint8:
            raise ValueError(f"data of shape {data.shape}, {data.dtype}, for {len(labels)} labels")
        if not np.isin(labels, range(classes)).all():
            raise ValueError(f"labels from {labels.min()} to {labels.max()}, of {classes} classes")
    except (KeyError, AttributeError, TypeError, ValueError) as error:
        raise WxbError(
            f"{path}: found {error}; expected `data`, {np.prod(CIFAR)} bytes a picture, and"
            " `labels`, one integer a picture"
        ) from None
    return data, labels


def _read_picture(file: Path) -> NDArray[np.uint8]:  # (H, W, 3)
    try:
        with Image.open(file) as picture:
            return np.asarray(picture.convert("RGB"))
    except (UnidentifiedImageError, OSError) as error:
        raise WxbError(f"{file}: not a readable picture: {error}") from None
