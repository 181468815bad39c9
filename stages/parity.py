"""Compare an architecture of ours with transformers' on the same weights; fail if they differ."""

from transformers import set_seed

from wxb.core import paths
from wxb.core.errors import WxbError
from wxb.core.files import publish, write_json
from wxb.core.params import Params
from wxb.lessons import parity
from wxb.runtime.command import run


def main(params: Params, name: str) -> None:
    """Compare the models of the block `name`, and write the metrics if they agree."""
    block = params.block("parity", name)
    set_seed(params.seed)
    try:
        metrics = parity.measure(parity.load(block, name), params.seed)
    except ValueError as error:
        raise WxbError(f"parity.{name}: {error}") from error
    parity.check(metrics)
    with publish(paths.metrics(paths.PARITY, name)) as (draft,):
        write_json(draft, metrics)


if __name__ == "__main__":
    run("parity", main, __doc__)
