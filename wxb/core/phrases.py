"""Words of messages and pages that depend on a number."""


def counted(count: int, noun: str) -> str:
    """A count and its noun, which is given in the plural: "1 record", "2,000 records"."""
    return f"{count:,} {noun.removesuffix('s') if count == 1 else noun}"
