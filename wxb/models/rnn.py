"""Recurrent networks, cell by cell (Elman 1990).

A mask (B, T) is True for tokens. At padding the state does not change and the output is zero.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class RNN(nn.Module):
    """Layers of tanh cells, in one direction or both; same parameters and outputs as `nn.RNN`.

    The state of a cell is a tensor (S, B, H) of S = `states` vectors a row. The weights are `gates`
    blocks, stacked. Subclasses set both.
    """

    gates = 1
    states = 1

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, *, bidirectional: bool = False
    ) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.directions = ("", "_reverse") if bidirectional else ("",)
        rows = self.gates * hidden_size
        for layer in range(num_layers):
            width = hidden_size * len(self.directions) if layer else input_size
            for direction in self.directions:
                suffix = f"_l{layer}{direction}"
                self.register_parameter(f"weight_ih{suffix}", _empty(rows, width))
                self.register_parameter(f"weight_hh{suffix}", _empty(rows, hidden_size))
                self.register_parameter(f"bias_ih{suffix}", _empty(rows))
                self.register_parameter(f"bias_hh{suffix}", _empty(rows))
        bound = hidden_size**-0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def forward(self, inputs: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Outputs (B, T, D * H) of the last layer and final states (S, L * D, B, H) of all layers.

        `inputs` are (B, T, C), `mask` is (B, T), or None without padding. D is the number of
        directions, L of layers, S of vectors of a cell's state. There is no dropout.
        """
        if mask is None:
            mask = torch.ones(inputs.shape[:2], dtype=torch.bool, device=inputs.device)
        final_states = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in self.directions:
                output, state = self._run_layer(inputs, mask, f"_l{layer}{direction}")
                outputs.append(output)
                final_states.append(state)
            inputs = torch.cat(outputs, dim=-1)  # (B, T, D * H)
        return inputs, torch.stack(final_states, dim=1)

    def _run_layer(self, inputs: Tensor, mask: Tensor, suffix: str) -> tuple[Tensor, Tensor]:
        """Outputs (B, T, H), 0 for padding, and final state (S, B, H) of one direction."""
        names = ("weight_ih", "bias_ih", "weight_hh", "bias_hh")
        weights = [self.get_parameter(name + suffix) for name in names]
        rows, length, _ = inputs.shape
        state = inputs.new_zeros(self.states, rows, self.hidden_size)  # (S, B, H)
        outputs = [state[0]] * length
        columns = reversed(range(length)) if suffix.endswith("_reverse") else range(length)
        for column in columns:
            is_token = mask[:, column, None]  # (B, 1)
            state = torch.where(is_token, self.cell(inputs[:, column], state, *weights), state)
            outputs[column] = torch.where(is_token, state[0], 0)
        return torch.stack(outputs, dim=1), state

    def cell(
        self,
        inputs: Tensor,  # (B, C)
        state: Tensor,  # (S, B, H)
        weight_ih: Tensor,  # (gates * H, C)
        bias_ih: Tensor,  # (gates * H,)
        weight_hh: Tensor,  # (gates * H, H)
        bias_hh: Tensor,  # (gates * H,)
    ) -> Tensor:
        """The next state: h' = tanh(W x + b + U h + c)."""
        (hidden,) = state
        update = F.linear(inputs, weight_ih, bias_ih) + F.linear(hidden, weight_hh, bias_hh)
        return torch.tanh(update)[None]


def _empty(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.empty(shape))
