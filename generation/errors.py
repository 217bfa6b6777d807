"""What can go wrong in the engine, and what it says: the thing, the rule and the value."""


class SettingError(ValueError):
    """A sampling setting is out of its range or of the wrong type."""

    def __init__(self, setting: str, message: str) -> None:
        super().__init__(message)
        self.setting = setting  # the form shows the message at this field


class PromptError(ValueError):
    """A prompt that the model cannot run: an unknown word, nothing at all, or too much."""


class LogitsError(ValueError):
    """Logits from which nothing can be chosen: NaN, +inf, or nothing finite."""


class ModelUnavailable(RuntimeError):
    """There is no such model here, or its files are missing."""


class EngineBusy(RuntimeError):
    """So many are waiting for the engine that no more can queue."""
