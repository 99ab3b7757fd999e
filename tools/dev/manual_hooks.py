# SPDX-License-Identifier: Apache-2.0
"""What MkDocs does to the pages of docs besides its own work: a link to a file of the checkout that is no page (a header, a schema)
becomes the file's name, as the manual may be read without the checkout. A link to what does not exist is a warning, so the build fails."""
import logging
import re
from pathlib import Path

LOG = logging.getLogger("mkdocs.plugins.weft")
LINK = re.compile(r"(?<!!)\[([^\]\[]+)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, config, files):
    docs = Path(config["docs_dir"]).resolve()
    here = (docs / page.file.src_path).parent
    # Pages that no page of the manual lists still belong to it.
    def outside(match):
        text, target = match.group(1), match.group(2)
        path = (here / target).resolve()
        if path.is_relative_to(docs):
            return match.group(0)
        if not path.exists():
            LOG.warning("%s links to %s, which does not exist", page.file.src_path, target)
        name = path.relative_to(docs.parent).as_posix()
        return f"`{name}`" if text.strip("`") in (name, path.name) else f"{text} (`{name}`)"
    return LINK.sub(outside, markdown)
