"""A small convolutional network for small pictures.

Blocks of convolution, ReLU and max-pooling, then one linear classifier, as LeNet-5 began it (LeCun
et al. 1998, "Gradient-based learning applied to document recognition"). Of the network of the
published series no more is known here than "small CNN", with an accuracy of 0.591 on CIFAR-10 after
20 epochs; so the choices are ours, the plainest that there are: 3 x 3 kernels that keep height and
width (Simonyan and Zisserman 2015), 2 x 2 pooling that halves them, one block for each entry of
`widths`, He's initial weights, no batch normalisation and no augmentation.

With widths (32, 64, 64), a picture of CIFAR-10 goes through these shapes:

    input                   (3, 32, 32)
    convolution and ReLU    (32, 32, 32)    pooling   (32, 16, 16)
    convolution and ReLU    (64, 16, 16)    pooling   (64, 8, 8)
    convolution and ReLU    (64, 8, 8)      pooling   (64, 4, 4)
    flat                    1024
    linear                  10 logits
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class CNN(nn.Module):
    """A classifier of pictures of one shape (channels, height, width).

    Raises ValueError for pictures that are too small to be halved once a block.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        *,
        widths: Sequence[int],
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        channels, height, width = shape
        halvings = 2 ** len(widths)
        if min(height, width) < halvings:
            raise ValueError(
                f"{len(widths)} blocks need pictures of {halvings} x {halvings} at least; found"
                f" {height} x {width}"
            )
        self.convolutions = nn.ModuleList(
            _convolution(before, after)
            for before, after in zip([channels, *widths], widths, strict=False)
        )
        self.dropout = nn.Dropout(dropout)
        features = widths[-1] * (height // halvings) * (width // halvings)
        self.classifier = nn.Linear(features, classes)

    def forward(
        self,
        pixels: Tensor,  # (B, C, H, W)
        labels: Tensor | None = None,  # (B,)
    ) -> dict[str, Tensor]:
        """Logits (B, K), and with labels their cross-entropy as the loss."""
        x = pixels
        for convolution in self.convolutions:
            x = F.max_pool2d(convolution(x).relu(), 2)  # (B, width, H / 2, W / 2)
        logits = self.classifier(self.dropout(x.flatten(1)))  # (B, K)
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    @torch.no_grad()
    def predict(self, pixels: Tensor, *, batch_size: int = 256) -> Tensor:  # (N, C, H, W) -> (N,)
        """The likeliest class of each picture."""
        self.eval()
        return torch.cat([self(part)["logits"].argmax(1) for part in pixels.split(batch_size)])


def _convolution(before: int, after: int) -> nn.Conv2d:
    """A 3 x 3 convolution that keeps height and width, with He's weights and no bias yet."""
    convolution = nn.Conv2d(before, after, kernel_size=3, padding=1)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return convolution
