"""Tests of what is replayed: that a real server still answers so; run.py runs them."""

import json
from urllib.parse import parse_qs, urlsplit

import mock_server
from page import holds, live_only, same
from schema import faults_of_answer


@live_only
def test_the_recorded_answers_are_those_of_the_server(page):
    """All of them fit the server's description of itself, whatever its model says and in whatever order."""
    spec = page.get("spec")
    records = list(mock_server.Records().answers.values())
    described = 0
    for record in records:
        request = record["request"]
        found = faults_of_answer(spec, request["method"], request["path"], record)
        # Studies are files, which the description leaves out.
        holds(found is not None or request["path"].startswith("/studies/"), f"{request['path']} is not described")
        holds(not found, f"{request['path']} {request['body']} was recorded, and {'; '.join((found or [])[:5])}: record again (record.py)")
        described += found is not None
    holds(described >= 40, f"only {described} recorded answers are described")


@live_only
def test_another_name_of_a_member_is_found(page):
    spec = page.get("spec")
    record = mock_server.Records().find("GET", "/frontend/settings", None, None)
    settings = json.loads(record["text"])
    settings["limit"] = settings.pop("charLimit")
    found = faults_of_answer(spec, "GET", "/frontend/settings", record | {"text": json.dumps(settings)})
    same(sorted(found), ["the answer has 'limit', which the server does not answer", "the answer has no 'charLimit'"])


def foreign(path, body, model):
    """Whether a request is for another model than this one, or for a glossary that only the recorded server had."""
    named = parse_qs(urlsplit(path).query).get("model", [None])[0]
    return (
        named not in (None, f"{model['source']}-{model['target']}")
        or isinstance(body.get("glossary"), str)
        or body.get("source") not in (None, "auto", model["source"])
        or body.get("target") not in (None, model["target"])
    )


@live_only
def test_the_server_takes_what_was_recorded(page):
    """One request of each kind, of the first model; files that a server keeps are its own."""
    spec, model = page.get("spec"), page.get("v1/model")[0]
    server = mock_server.Records(page.url.rstrip("/"))
    seen = set()
    for record in mock_server.Records().answers.values():
        method, path, body = (record["request"][name] for name in ("method", "path", "body"))
        kind = (path.split("?")[0], *sorted(body or {}))
        if kind in seen or foreign(path, body or {}, model) or record["status"] != 200 or path.startswith("/studies/") or "file" in (body or {}):
            continue
        seen.add(kind)
        live = server.ask(method, path, json.dumps(body).encode() if body else None, "application/json")
        same(live["status"], 200, f"{path} {body}: {live['text'][:200]}")
        same(faults_of_answer(spec, method, path, live), [], f"{path} {body}")
    holds(len(seen) >= 10, f"only {sorted(seen)}")
