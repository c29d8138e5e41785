"""The two ways in which a check ends without a proof."""


class RefusedError(Exception):
    """The proof does not hold; the message says where and by how much."""


class BadInputError(Exception):
    """A file cannot be read, or is not what it should be."""


def shown(value: object) -> str:
    """Return a value from a file for a message, shortened; files may hold numbers of thousands of digits."""
    if isinstance(value, int) and abs(value) >= 10**18:
        return "a number of many digits"
    text = str(value) if isinstance(value, list | dict) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
