"""A small convolutional network for small pictures.

Blocks of convolution, ReLU and max-pooling, then one linear classifier, in the manner of LeNet-5
(LeCun et al. 1998, "Gradient-based learning applied to document recognition"). The published series
says only "small CNN", with an accuracy of 0.591 on CIFAR-10 after 20 epochs. The choices here are
ours: 3 x 3 kernels that keep height and width (Simonyan and Zisserman 2015), 2 x 2 pooling, one
block for each entry of `widths`, He initialization, no batch normalization and no augmentation.

Shapes of a CIFAR-10 picture with widths (32, 64, 64):

    input                   (3, 32, 32)
    convolution and ReLU    (32, 32, 32)    pooling   (32, 16, 16)
    convolution and ReLU    (64, 16, 16)    pooling   (64, 8, 8)
    convolution and ReLU    (64, 8, 8)      pooling   (64, 4, 4)
    flat                    1024
    linear                  10 logits
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class CNN(nn.Module):
    """A classifier of pictures of one shape (channels, height, width).

    Raises ValueError if a picture is too small to be halved once in every block.
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
        self.convolutions = nn.ModuleList()
        for inputs, outputs in pairwise([channels, *widths]):
            convolution = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1)
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            assert convolution.bias is not None
            nn.init.zeros_(convolution.bias)
            self.convolutions.append(convolution)
        self.dropout = nn.Dropout(dropout)
        features = widths[-1] * (height // halvings) * (width // halvings)
        self.classifier = nn.Linear(features, classes)

    def forward(
        self,
        pixels: Tensor,  # (B, C, H, W)
        labels: Tensor | None = None,  # (B,)
    ) -> dict[str, Tensor]:
        """The `logits` (B, K) and, if labels are given, the mean cross-entropy as `loss`."""
        x = pixels
        for convolution in self.convolutions:
            x = F.max_pool2d(convolution(x).relu(), 2)  # (B, width, H / 2, W / 2)
        logits = self.classifier(self.dropout(x.flatten(1)))  # (B, K)
        if labels is None:
            return {"logits": logits}
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    @torch.no_grad()
    def predict(self, pixels: Tensor, *, batch_size: int = 256) -> Tensor:  # (N, C, H, W) -> (N,)
        """Index of the most likely class of each picture; switches to evaluation mode."""
        self.eval()
        return torch.cat([self(part)["logits"].argmax(1) for part in pixels.split(batch_size)])
