"""The pages of ``bestprompt ui``."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from jinja2 import ChoiceLoader, PackageLoader
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile

from bestprompt.errors import BestPromptError, ConfigError, LedgerError
from bestprompt.ledger import Ledger
from bestprompt.report.html import templates, write_report
from bestprompt.run import budgets, standing
from bestprompt.ui import drafts
from bestprompt.ui.comparing import compare
from bestprompt.ui.processes import Processes
from bestprompt.ui.runs import Runs

TICK = 0.5  # seconds between two looks at a run that goes on
STATIC = {
    "report.css": ("bestprompt.report", "templates/report.css", "text/css"),
    "report.js": ("bestprompt.report", "templates/report.js", "text/javascript"),
    "ui.css": ("bestprompt.ui", "static/ui.css", "text/css"),
    "ui.js": ("bestprompt.ui", "static/ui.js", "text/javascript"),
    "htmx.js": ("bestprompt.ui", "static/htmx-2.0.11.min.js", "text/javascript"),
}


def create_app(folder: Path, csrf: str) -> FastAPI:
    """The pages over the runs in ``folder``; ``csrf`` is what they send along with every change."""
    processes = Processes(folder / "tasks" / "logs")
    pages = Pages(Runs(folder, processes), processes, csrf)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(processes.stop_all)

    app = FastAPI(title="bestprompt", docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)
    for method, path, endpoint in (
        ("GET", "/", pages.index),
        ("GET", "/new", pages.new),
        ("POST", "/preview", pages.preview),
        ("POST", "/runs", pages.start),
        ("GET", "/compare", pages.compare),
        ("GET", "/runs/{name}", pages.run),
        ("GET", "/runs/{name}/live", pages.live),
        ("GET", "/runs/{name}/events", pages.events),
        ("GET", "/runs/{name}/report.html", pages.report),
        ("POST", "/runs/{name}/stop", pages.stop),
        ("POST", "/runs/{name}/resume", pages.resume),
        ("GET", "/static/{name}", pages.static),
    ):
        app.add_api_route(path, endpoint, methods=[method], response_model=None)
    app.add_exception_handler(BestPromptError, pages.problem)
    return app


class Pages:
    """One method for each page; what takes time runs in a thread."""

    def __init__(self, runs: Runs, processes: Processes, csrf: str) -> None:
        self._runs, self._processes = runs, processes
        report = templates()
        assert report.loader is not None
        self._templates = report.overlay(loader=ChoiceLoader([PackageLoader("bestprompt.ui"), report.loader]))
        self._shared = {"csrf": csrf}

    # --------------------------------------------------------------------------------------------------------- looking
    async def index(self) -> HTMLResponse:
        """The list of runs."""
        return self._page("runs.html.j2", runs=await run_in_threadpool(self._runs.all))

    async def run(self, name: str) -> HTMLResponse:
        """One run: live while it goes on, else its report."""
        state = await run_in_threadpool(self._runs.state, name)
        if state.state in ("running", "starting"):
            shown = await run_in_threadpool(self._runs.live, name)
            return self._page("live.html.j2", run=state, log=self._processes.last_words(name), **shown)
        if not state.answered:
            return self._page("empty.html.j2", run=state, log=self._processes.last_words(name))
        shown = await run_in_threadpool(self._runs.ended, name)
        return self._page("run.html.j2", run=state, calls=await run_in_threadpool(self._budget, name), **shown)

    async def live(self, name: str) -> HTMLResponse:
        """The part of a live page that changes."""
        state = await run_in_threadpool(self._runs.state, name)
        shown = await run_in_threadpool(self._runs.live, name)
        return self._page("moving.html.j2", run=state, log=self._processes.last_words(name), **shown)

    async def events(self, name: str, request: Request) -> StreamingResponse:
        """Server-sent: ``changed`` whenever something was recorded, ``ended`` when nobody writes any more."""
        self._runs.path(name)

        async def stream() -> AsyncIterator[str]:
            last: object = None
            while not await request.is_disconnected():
                mark, state = await run_in_threadpool(lambda: (self._runs.mark(name), self._runs.state(name).state))
                if state not in ("running", "starting"):
                    yield f"event: ended\ndata: {json.dumps(state)}\n\n"
                    return
                if (mark, state) != last:
                    last = (mark, state)
                    yield f"event: changed\ndata: {json.dumps(mark[0])}\n\n"
                await asyncio.sleep(TICK)

        return StreamingResponse(stream(), media_type="text/event-stream")

    async def report(self, name: str) -> FileResponse:
        """The report as a file to keep: its script would not run here."""
        path = self._runs.path(name)
        target = path / "report.html"
        if not target.is_file():
            await run_in_threadpool(partial(_write, path, target))
        return FileResponse(target, filename=f"{name}.html", content_disposition_type="attachment")

    async def compare(self, a: str = "", b: str = "") -> HTMLResponse:
        """Two runs side by side."""
        every = [run for run in await run_in_threadpool(self._runs.all) if run.answered]
        if not a or not b:
            return self._page("compare.html.j2", runs=every, a=a, b=b, found=None)
        first, second, found = await run_in_threadpool(compare, self._runs, a, b)
        return self._page("compare.html.j2", runs=every, a=a, b=b, found=found, first=first, second=second)

    # -------------------------------------------------------------------------------------------------------- changing
    async def new(self) -> HTMLResponse:
        """The form that starts a run."""
        return self._page("new.html.j2", tasks=drafts.bundled(), scores=drafts.SCORES)

    async def preview(self, request: Request) -> HTMLResponse:
        """How the draft in the form will look."""
        draft = await _draft(request)
        try:
            seen = await run_in_threadpool(drafts.look, draft)
        except BestPromptError as error:
            return self._page("preview.html.j2", look=None, problem=str(error))
        return self._page("preview.html.j2", look=seen, problem="")

    async def start(self, request: Request) -> Response:
        """Starts a run; the browser goes on to its page."""
        draft = await _draft(request)
        try:
            await run_in_threadpool(drafts.look, draft)  # what is wrong is said here, not in a log
            options = draft.options()
        except BestPromptError as error:
            return self._page("problem.html.j2", problem=str(error))
        stem = re.sub(r"[^\w.-]+", "-", draft.table()["name"], flags=re.ASCII).strip("-.")[:60] or "run"
        name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
        path = await run_in_threadpool(draft.write, self._runs.folder / "tasks" / name)
        self._processes.start(name, "run", str(path), "--output", str(self._runs.path(name)), *options)
        return Response(headers={"HX-Redirect": f"/runs/{name}"})

    async def stop(self, name: str) -> Response:
        """Stops a run, as Ctrl-C does."""
        self._runs.path(name)
        if not self._processes.stop(name):
            problem = "This run was started elsewhere: stop it there, with Ctrl-C. Every answer is kept."
            return self._page("problem.html.j2", problem=problem)
        return Response(headers={"HX-Refresh": "true"})

    async def resume(self, name: str, request: Request) -> Response:
        """Continues a run, with a larger budget if one is given."""
        state = await run_in_threadpool(self._runs.state, name)
        if state.state == "running":
            return self._page("problem.html.j2", problem="This run is under way.")
        async with request.form() as form:
            budget = str(form.get("budget") or "").strip()
        if budget and not budget.isdecimal():
            return self._page("problem.html.j2", problem=f"Budget: {budget!r} is not a whole number.")
        more = ["--budget", budget] if budget else []
        self._processes.start(name, "resume", str(self._runs.path(name)), *more)
        return Response(headers={"HX-Redirect": f"/runs/{name}"})

    # ----------------------------------------------------------------------------------------------------------- rest
    async def static(self, name: str) -> Response:
        """Style sheets and scripts."""
        if name not in STATIC:
            return Response(status_code=404)
        package, path, kind = STATIC[name]
        return Response(files(package).joinpath(path).read_bytes(), media_type=kind)

    async def problem(self, request: Request, error: Exception) -> HTMLResponse:
        """An error as a page."""
        status = 404 if isinstance(error, LedgerError) else 400
        return self._page("error.html.j2", status_code=status, problem=str(error))

    def _budget(self, name: str) -> int | None:
        with Ledger.read(self._runs.path(name)) as ledger:
            return budgets(ledger)[-1].calls

    def _page(self, template: str, status_code: int = 200, **shown: Any) -> HTMLResponse:
        return HTMLResponse(self._templates.get_template(template).render(**self._shared, **shown), status_code)


def _write(path: Path, target: Path) -> None:
    with Ledger.read(path) as ledger:
        write_report(target, ledger, standing(ledger))


async def _draft(request: Request) -> drafts.Draft:
    if int(request.headers.get("content-length") or 0) > drafts.MOST_BYTES:
        raise ConfigError(f"The file has more than {drafts.MOST_BYTES // 10**6} MB. Start such a run in a terminal.")
    async with request.form(max_part_size=drafts.MOST_BYTES) as form:  # closes what was uploaded
        given: dict[str, Any] = {k: v for k, v in form.items() if k in drafts.Draft.__slots__ and isinstance(v, str)}
        uploaded = form.get("data")
        if isinstance(uploaded, UploadFile) and uploaded.filename:
            given |= {"file": uploaded.filename, "data": await uploaded.read()}
    return drafts.Draft(**given)
