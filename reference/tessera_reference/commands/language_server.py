"""The language server protocol: diagnostics, hover and formatting of open documents.

A document is checked as `verify` checks a file: a program of the language, or IR text in `.mlir`, whose level follows
from its operations. Checks run one after another in a thread, so that the server continues to read. A version that a
newer one has replaced is not checked. Positions count the code units that the editor requests, by default UTF-16."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec, TextDocument

from .. import __version__
from ..ir.diagnostics import Diagnostic, Rejection, Span, UnsupportedConstruct
from ..ir.targets import Target
from ..language import compile_source, format_program
from ..levels.texts import level_of, read_at, require_names
from ..schedule.lowering import verify_stated_schedules
from .hover import ir_hover, program_hover

T = TypeVar("T")

STACK_BYTES = 2**23
"""The stack of the checking thread, as large as a main thread's; other threads of some systems have less."""
LINE_END = re.compile("\r\n|\n|\r")
SEVERITIES = {"error": lsp.DiagnosticSeverity.Error, "warning": lsp.DiagnosticSeverity.Warning}


def serve(target: Target) -> None:
    """Serve on standard input and output until the editor ends the session."""
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not appear between messages
    threading.stack_size(STACK_BYTES)
    server = LanguageServer("tessera-reference", __version__, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
    editor = Editor(server, target)
    handlers: Mapping[str, Callable[..., Any]] = {
        lsp.TEXT_DOCUMENT_DID_OPEN: editor.check,
        lsp.TEXT_DOCUMENT_DID_CHANGE: editor.check,
        lsp.TEXT_DOCUMENT_DID_CLOSE: editor.close,
        lsp.TEXT_DOCUMENT_HOVER: editor.hover,
        lsp.TEXT_DOCUMENT_FORMATTING: editor.format,
    }
    for feature, handler in handlers.items():
        server.feature(feature)(partial(handler))  # pygls sets attributes, which a bound method does not take
    server.start_io(stdout=output)


class Editor:
    """The documents that an editor has open."""

    def __init__(self, server: LanguageServer, target: Target) -> None:
        self.server = server
        self.target = target
        self.worker = ThreadPoolExecutor(1)

    async def check(self, params: lsp.DidOpenTextDocumentParams | lsp.DidChangeTextDocumentParams) -> None:
        """Publish the faults of a document, unless a newer version has come or it has been closed."""
        document = self._document(params.text_document.uri)
        version, text = document.version, document.source

        def is_newest() -> bool:
            return document.version == version and self._document(document.uri) is document

        diagnostics = await self._in_worker(lambda: diagnose(text, document.path, self.target) if is_newest() else ())
        if is_newest():
            self._publish(document.uri, [_shown(document, text, diagnostic) for diagnostic in diagnostics], version)

    def close(self, params: lsp.DidCloseTextDocumentParams) -> None:
        """Withdraw the diagnostics of a document."""
        self._publish(params.text_document.uri, [], None)

    def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        """Return the documentation of the operation or keyword at a position."""
        document = self._document(params.text_document.uri)
        text, codec = document.source, document.position_codec
        at = _offset(text, params.position, codec)
        about = (ir_hover if _is_ir(document.path) else program_hover)(text, at)
        if about is None:
            return None
        content = lsp.MarkupContent(lsp.MarkupKind.Markdown, about.markdown)
        return lsp.Hover(content, lsp.Range(*(_position(text, place, codec) for place in (about.start, about.end))))

    async def format(self, params: lsp.DocumentFormattingParams) -> list[lsp.TextEdit]:
        """Return the edit to a program's canonical form; none where it has errors or already has that form."""
        document = self._document(params.text_document.uri)
        text, codec = document.source, document.position_codec
        if _is_ir(document.path):
            return []
        try:
            formatted = await self._in_worker(lambda: format_program(text, document.path))
        except Rejection:
            return []
        whole = lsp.Range(lsp.Position(0, 0), _position(text, len(text), codec))
        return [] if formatted == text else [lsp.TextEdit(whole, formatted)]

    def _document(self, uri: str) -> TextDocument:
        return self.server.workspace.get_text_document(uri)

    def _publish(self, uri: str, diagnostics: list[lsp.Diagnostic], version: int | None) -> None:
        self.server.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, diagnostics, version))

    async def _in_worker(self, function: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.worker, function)


def diagnose(text: str, path: str, target: Target) -> Sequence[Diagnostic]:
    """Return the diagnostics of `verify` about a program, or about the IR text of a `.mlir` file. Raises nothing."""
    warnings: Sequence[Diagnostic] = ()
    try:
        if not _is_ir(path):
            compiled = compile_source(text, path)
            warnings = compiled.warnings
            verify_stated_schedules(compiled.modules, [target])
        elif "tessera." in text:  # IR of other tools is not checked
            require_names(read_at(level_of(text), text, target, path))
    except Rejection as rejection:
        return [*warnings, *rejection.diagnostics]
    except UnsupportedConstruct as unsupported:
        return [_about(unsupported.reason, unsupported.location.span, unsupported.location.filename), *warnings]
    except Exception as failure:  # an error of the reference must not end the session
        message = f"the reference failed on this document: {type(failure).__name__}: {failure}"
        return [_about(message, Span(1, 1, 1, 2), path)]
    return warnings


def _about(message: str, span: Span, path: str) -> Diagnostic:
    return Diagnostic("syntax", "verify", message, span, path, severity="warning")


def _is_ir(path: str) -> bool:
    return path.endswith(".mlir")


def _shown(document: TextDocument, text: str, diagnostic: Diagnostic) -> lsp.Diagnostic:
    """Return a diagnostic in the protocol's terms; one about another file is shown at the beginning."""
    message, span = diagnostic.message, diagnostic.span
    if diagnostic.filename != document.path:
        message, span = f"{diagnostic.filename}:{span.line}:{span.column}: {message}", Span(1, 1, 1, 1)
    lines = [
        message,
        ", ".join(diagnostic.operands),
        f"requires {diagnostic.requirement}" if diagnostic.requirement else "",
        diagnostic.remedy,
    ]
    places = (_offset_of(text, *span[:2]), _offset_of(text, *span[2:]))
    return lsp.Diagnostic(
        lsp.Range(*(_position(text, place, document.position_codec) for place in places)),
        "\n".join(line for line in lines if line),
        SEVERITIES[diagnostic.severity],
        diagnostic.clause or None,
        source="tessera-reference",
    )


def _offset_of(text: str, line: int, column: int) -> int:
    """Return the characters before a line and column of the reference, which count from 1."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1 or len(text)
    return min(start + column - 1, len(text))


def _position(text: str, offset: int, codec: PositionCodec) -> lsp.Position:
    """Return the protocol's position after `offset` characters."""
    starts = _line_starts(text, offset)
    return lsp.Position(len(starts) - 1, codec.client_num_units(text[starts[-1] : offset].rstrip("\r\n")))


def _offset(text: str, position: lsp.Position, codec: PositionCodec) -> int:
    """Return the characters before a position of the protocol."""
    starts = [*_line_starts(text, len(text)), len(text)]
    offset, end = (starts[min(position.line + behind, len(starts) - 1)] for behind in (0, 1))
    units = 0
    while offset < end and units < position.character:
        units += codec.client_num_units(text[offset])
        offset += 1
    return offset


def _line_starts(text: str, offset: int) -> list[int]:
    """Return the beginnings of the lines up to an offset."""
    return [0, *(end for match in LINE_END.finditer(text) if (end := match.end()) <= offset)]
