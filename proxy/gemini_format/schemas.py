"""JSON schemas as Gemini takes them.

They go as they are in `parametersJsonSchema` and `responseJsonSchema`. The older `parameters` and `responseSchema` take
a part of OpenAPI's only and would change the meaning of references, unions of types and closed objects. Rewritten is
what Google documents as not supported and what has an equal: `const`, and exclusive bounds of integers. Notes that
validate nothing are left out, because some of them are refused.
"""

from __future__ import annotations

from typing import Any

JSON = dict[str, Any]

_NOTES = frozenset(("$schema", "$comment", "examples", "discriminator", "deprecated", "readOnly", "writeOnly"))

#: Members that hold schemas by name, and those that hold plain values.
_NAMED_SCHEMAS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VALUES = ("enum", "const", "default", "required", "example")

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}

#: Exclusive bounds -> their inclusive ones, and the step to them for integers.
_BOUNDS = (("exclusiveMinimum", "minimum", 1, max), ("exclusiveMaximum", "maximum", -1, min))


def gemini_schema(schema: Any) -> Any:
    """`schema` with the same meaning in the words Gemini knows."""
    if isinstance(schema, list):
        return [gemini_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    written: JSON = {}
    for name, value in schema.items():
        if name in _NOTES:
            continue
        if name in _NAMED_SCHEMAS and isinstance(value, dict):
            written[name] = {key: gemini_schema(inner) for key, inner in value.items()}
        else:
            written[name] = value if name in _VALUES else gemini_schema(value)
    if "const" in written:
        _replace_const(written)
    if written.get("type") == "integer":
        _include_bounds(written)
    return written


def _replace_const(schema: JSON) -> None:
    value = schema.pop("const")
    schema["enum"] = [value]
    kind = _TYPES.get(type(value))
    if kind is not None:
        schema.setdefault("type", kind)


def _include_bounds(schema: JSON) -> None:
    for exclusive, inclusive, step, tighter in _BOUNDS:
        bound = schema.get(exclusive)
        if isinstance(bound, int) and not isinstance(bound, bool):
            del schema[exclusive]
            known = schema.get(inclusive)
            schema[inclusive] = tighter(known, bound + step) if isinstance(known, int | float) else bound + step
