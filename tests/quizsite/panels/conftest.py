"""A model for conversations that is so small that its tokens can be counted by hand."""

from pathlib import Path

import pytest

from tests.generation.gguf_files import write_tiny_llama

TEMPLATE = (
    "{% for message in messages %}{{ '<start>' + message['role'] + '\n' + message['content'] + '<end>' + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<start>assistant\n' }}{% endif %}"
)


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a model with a token for each byte, and a template that adds 4 tokens and the role to a message."""
    monkeypatch.setenv("NEXT_TOKEN_MODELS", str(tmp_path))
    write_tiny_llama(tmp_path / "tiny.gguf", settings={"tokenizer.chat_template": TEMPLATE})
    return "tiny"
