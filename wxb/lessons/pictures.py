"""Read labelled pictures: scikit-learn's digits, the files of CIFAR-10, or a folder."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

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
    classes. Raises WxbError if one is missing or invalid.

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
            raise WxbError(
                f"{file}: found {picture.shape[1]} x {picture.shape[0]} pixels; resize all pictures"
                f" to one size, such as {pictures[0].shape[1]} x {pictures[0].shape[0]}"
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
    """Read a pickle of arrays, lists, text and numbers.

    Raises WxbError for a pickle of anything else: it could call any function of any module.
    """
    try:
        with path.open("rb") as file:
            content: dict[bytes, Any] = _Unpickler(file, encoding="bytes").load()
    except (FileNotFoundError, pickle.UnpicklingError) as error:
        raise WxbError(f"{path}: not a pickle of arrays: {error}") from None
    return content


class _Unpickler(pickle.Unpickler):
    """An unpickler that only allows the names of NumPy arrays."""

    RECONSTRUCT = np.zeros(0).__reduce__()[0]  # private in NumPy, but used by every array
    NAMES: Mapping[tuple[str, str], Any] = {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "_reconstruct"): RECONSTRUCT,  # before NumPy 2
        ("numpy._core.multiarray", "_reconstruct"): RECONSTRUCT,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.NAMES:
            raise pickle.UnpicklingError(f"found {module}.{name}, which may run code")
        return self.NAMES[module, name]


def _read_batches(paths: list[Path], classes: list[str]) -> Images:
    data, labels = [], []
    for path in paths:
        content = unpickle(path)
        data.append(content[b"data"])
        labels.append(np.array(content[b"labels"], np.int64))
        if data[-1].shape != (len(labels[-1]), np.prod(CIFAR)) or data[-1].dtype != np.uint8:
            raise WxbError(
                f"{path}: found data of shape {data[-1].shape}, {data[-1].dtype}, for"
                f" {len(labels[-1])} labels; expected {np.prod(CIFAR)} bytes a picture"
            )
    pixels = np.concatenate(data).reshape(-1, *CIFAR).astype(np.float32) / np.float32(255)
    return Images(pixels, np.concatenate(labels), classes)


def _read_picture(file: Path) -> NDArray[np.uint8]:  # (H, W, 3)
    try:
        with Image.open(file) as picture:
            return np.asarray(picture.convert("RGB"))
    except (UnidentifiedImageError, OSError) as error:
        raise WxbError(f"{file}: not a readable picture: {error}") from None
