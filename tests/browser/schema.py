"""Whether an answer is what the server's own description of itself, `GET /spec`, says it answers.

Only the words of JSON Schema that the description has. Objects are closed there, so that a member that the server has given another name is
found on both sides: the old name is unknown, the new one is missing.
"""

import json

NUMBERS = {"integer": int, "number": (int, float)}
TYPES = {"string": str, "boolean": bool, "object": dict, "array": list, **NUMBERS}


def schema_of(spec, method, path, status, kind):
    """The schema of an answer; none for an address that the description leaves out."""
    for template, methods in spec["paths"].items():
        parts, wanted = path.split("?")[0].split("/"), template.split("/")
        if len(parts) == len(wanted) and all(w.startswith("{") or w == p for p, w in zip(parts, wanted)):
            content = methods[method.lower()]["responses"][str(status)]["content"]
            return content[kind.split(";")[0]]["schema"]
    return None


def faults_of_answer(spec, method, path, answer):
    """What is wrong with an answer (`status`, `kind`, `text`); an empty list if nothing is, none where there is no schema."""
    schema = schema_of(spec, method, path, answer["status"], answer["kind"])
    if schema is None:
        return None
    if answer["kind"].startswith("text/event-stream"):
        schema = schema["properties"]["data"]["x-content-schema"]
        events = [event.removeprefix("data: ") for event in answer["text"].rstrip().split("\n\n")]
        return [fault for event in events for fault in faults(spec, schema, json.loads(event))]
    if answer["kind"].startswith("application/json"):
        return faults(spec, schema, json.loads(answer["text"]))
    return []


def faults(spec, schema, value, at="the answer"):
    """What of a value is not as its schema says."""
    if "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    if value is None and schema.get("nullable"):
        return []
    if "anyOf" in schema:
        tried = [faults(spec, one, value, at) for one in schema["anyOf"]]
        return min(tried, key=len)
    if "enum" in schema and value not in schema["enum"]:
        return [f"{at} is {value!r} and none of {schema['enum']}"]
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind in NUMBERS and isinstance(value, bool))):
        return [f"{at} is {str(value)[:60]!r}, no {kind}"]
    if isinstance(value, dict):
        return faults_of_object(spec, schema, value, at)
    if isinstance(value, list):
        low, high = schema.get("minItems", 0), schema.get("maxItems", len(value))
        length = [] if low <= len(value) <= high else [f"{at} has {len(value)} items"]
        return length + [fault for i, one in enumerate(value) for fault in faults(spec, schema.get("items", {}), one, f"{at}[{i}]")]
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return [f"{at} is {value}"]
    return []


def faults_of_object(spec, schema, value, at):
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    found = [f"{at} has no {name!r}" for name in schema.get("required", []) if name not in value]
    for name, inner in value.items():
        if name in known:
            found += faults(spec, known[name], inner, f"{at}.{name}")
        elif other is False:
            found.append(f"{at} has {name!r}, which the server does not answer")
        elif isinstance(other, dict):
            found += faults(spec, other, inner, f"{at}.{name}")
    return found
