"""Pictures and their classes: scikit-learn's digits, CIFAR-10's files, or a folder of pictures."""

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
    """Pictures of one size, brightness in [0, 1], and the numbers of their classes."""

    pixels: NDArray[np.float32]  # (N, C, H, W)
    labels: NDArray[np.int64]  # (N,)
    classes: list[str]

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, rows: NDArray[np.int64]) -> Images:
        """The pictures of these rows."""
        return Images(self.pixels[rows], self.labels[rows], self.classes)


def digits() -> Images:
    """1,797 handwritten digits of 8 x 8 pixels in 17 shades, a copy of which scikit-learn holds.

    Source: Alpaydin and Kaynak (1998), "Optical recognition of handwritten digits", UCI.
    """
    found = load_digits()
    pixels = (found.images / 16).astype(np.float32)[:, None]  # (N, 1, 8, 8)
    return Images(pixels, found.target.astype(np.int64), [str(name) for name in found.target_names])


def cifar(folder: Path) -> tuple[Images, Images]:
    """CIFAR-10's pictures to train on and to test on, from its Python batches.

    Raises WxbError where files are missing, or hold anything but arrays, lists, text and numbers.

    Source: Krizhevsky (2009), "Learning multiple layers of features from tiny images"; the format:
    cs.toronto.edu/~kriz/cifar.html.
    """
    batches = sorted(folder.glob("data_batch_*"))
    if not batches:
        raise WxbError(
            f"{folder}: found no data_batch_1; expected the files of CIFAR-10's Python version,"
            " data_batch_*, test_batch and batches.meta"
        )
    meta = unpickle(folder / "batches.meta")
    classes = [name.decode() for name in meta[b"label_names"]]
    return _batches(batches, classes), _batches([folder / "test_batch"], classes)


def folder(path: Path) -> Images:
    """Pictures named <class>/<file>.png (or .jpg), in colour, all of one size.

    Raises WxbError where there are none, or one that cannot be read or has another size.
    """
    files = sorted(file for file in path.glob("*/*") if file.suffix.lower() in SUFFIXES)
    classes = sorted({file.parent.name for file in files})
    if len(classes) < 2:
        raise WxbError(
            f"{path}: found pictures of {len(classes)} class(es); expected two at least, as"
            f" <class>/<file> with {', '.join(SUFFIXES)}"
        )
    pictures = [_picture(file) for file in files]
    for file, picture in zip(files, pictures, strict=True):
        if picture.shape != pictures[0].shape:
            sizes = [f"{shape[1]} x {shape[0]}" for shape in (picture.shape, pictures[0].shape)]
            raise WxbError(
                f"{file}: found {sizes[0]} pixels, expected {sizes[1]} as {files[0]} has;"
                " bring all pictures to one size first"
            )
    pixels = np.stack(pictures).transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    labels = np.array([classes.index(file.parent.name) for file in files])
    return Images(pixels, labels, classes)


def divided(images: Images, share: float, *, seed: int) -> tuple[Images, Images]:
    """The pictures without a share of them, and that share; classes in the same proportions.

    Raises WxbError where a class has too few pictures for that.
    """
    try:
        rest, taken = train_test_split(
            np.arange(len(images)), test_size=share, random_state=seed, stratify=images.labels
        )
    except ValueError as error:
        raise WxbError(f"{len(images)} pictures cannot be divided: {error}") from None
    return images.at(np.sort(rest)), images.at(np.sort(taken))


def unpickle(path: Path) -> dict[bytes, Any]:
    """The dictionary in a pickle that holds arrays, lists, text and numbers alone.

    A pickle can name any function of any module and have it called. This reads those that build
    arrays and text, and refuses to name others.

    Raises WxbError for any other content.
    """
    try:
        with path.open("rb") as file:
            content = _Unpickler(file).load()
    except FileNotFoundError:
        raise WxbError(f"{path}: no such file") from None
    # A file that is no pickle fails in whatever way its bytes happen to read.
    except Exception as error:
        raise WxbError(f"{path}: not a pickle of arrays: {error}") from None
    if not isinstance(content, dict):
        raise WxbError(f"{path}: found a {type(content).__name__}, expected a dict")
    return content


class _Unpickler(pickle.Unpickler):
    """A reader of pickles that knows NumPy's arrays, and no other name.

    `encoding="bytes"`: Python 2, which wrote CIFAR-10, told text and bytes apart by no type.
    """

    RECONSTRUCT = np.zeros(0).__reduce__()[0]  # private in NumPy, but what every array names
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
                f"it asks for {module}.{name}; only arrays, lists, text and numbers are read,"
                " because a pickle may run any code"
            )
        return self.NAMES[module, name]


def _batches(paths: list[Path], classes: list[str]) -> Images:
    data, labels = zip(*(_batch(path, len(classes)) for path in paths), strict=True)
    pixels = np.concatenate(data).reshape(-1, *CIFAR).astype(np.float32) / np.float32(255)
    return Images(pixels, np.concatenate(labels), classes)


def _batch(path: Path, classes: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The pictures of one file, a row each, and the numbers of their classes."""
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
            " `labels`, a number for each"
        ) from None
    return data, labels


def _picture(file: Path) -> NDArray[np.uint8]:  # (H, W, 3)
    try:
        with Image.open(file) as picture:
            return np.asarray(picture.convert("RGB"))
    except (UnidentifiedImageError, OSError) as error:
        raise WxbError(f"{file}: not readable as a picture: {error}") from None
