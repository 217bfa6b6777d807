"""YAML without its traps: no key twice, no objects, and the line of everything."""

from collections.abc import Iterator
from typing import Any

import yaml

Lines = dict[tuple[str | int, ...], int]


class Loader(yaml.SafeLoader):
    """YAML's safe loader; a key given twice is an error, not a silent choice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node)
            if not isinstance(key, str | int):
                raise yaml.constructor.ConstructorError(
                    None, None, f"a key must be a word, got {key}", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


class UntrustedLoader(Loader):
    """The same for files of others: nothing stands for something else, so a short file is short in memory, too."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "an alias (*name) is not taken", mark)
        return super().compose_node(parent, index)


def _below(node: yaml.Node, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], int]]:
    yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            for below, line in _below(value, (*path, key.value)):
                if below != (*path, key.value):
                    yield below, line
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _below(value, (*path, number))


def lines_of(node: yaml.Node) -> Iterator[tuple[tuple[str | int, ...], int]]:
    """Return the path of everything in a document with its line, from 1."""
    return _below(node, ())
