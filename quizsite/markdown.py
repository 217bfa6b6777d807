"""`{{ text|markdown }}`: an author's Markdown as safe HTML."""

from functools import lru_cache

import nh3
from django import template
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt

register = template.Library()

_markdown = MarkdownIt("commonmark", {"html": False}).disable(["image", "heading", "lheading", "html_block"])
_TAGS = {"p", "em", "strong", "code", "pre", "ul", "ol", "li", "blockquote", "a", "br"}
_SCHEMES = {"http", "https"}


@register.filter
def markdown(text: str) -> SafeString:
    """Render paragraphs, emphasis, code, lists and links; all else stays text."""
    return mark_safe(_rendered(text, inline=False))  # noqa: S308  (sanitised by nh3)


@register.filter
def markdown_line(text: str) -> SafeString:
    """Render a text of one paragraph without the paragraph."""
    return mark_safe(_rendered(text, inline=True))  # noqa: S308  (sanitised by nh3)


@lru_cache(maxsize=4096)
def _rendered(text: str, inline: bool) -> str:
    html = _markdown.renderInline(text.strip()) if inline else _markdown.render(text)
    return nh3.clean(html, tags=_TAGS, attributes={"a": {"href"}}, url_schemes=_SCHEMES, link_rel="noopener nofollow")
