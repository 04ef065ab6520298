"""From Python types to JSON Schema: `build_schema` for functions, `pydantic_schema` for models and other types.

The work is Pydantic's. What is added here makes the schema say exactly what the function or type will take, so that
whatever a grammar made of it lets through can also be converted:

- objects are closed unless the type keeps extra keys (Pydantic leaves them open where it would ignore such keys);
- the keys of a `dict` follow its key type;
- a `Decimal` is a JSON number, its places bounded by `multipleOf`; as a string it would escape `ge` and `le`;
- a discriminated union is an `anyOf`: its branches exclude each other by their tag;
- generated titles, and formats that constrain nothing (`path`, `binary`, `password`), are left out.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union, cast

import pydantic
import typing_extensions
from pydantic import BaseModel, ConfigDict, PydanticUserError, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaError as CoreSchemaError
from pydantic_core import core_schema, from_json, to_json

from punchcard.docstrings import document
from punchcard.errors import InvalidSchemaError, ToolError

JsonSchema = dict[str, Any]

# The alias under which ``**kwargs`` travel; no argument of an ordinary function can have this name.
_FURTHER = "**"

# What Pydantic raises for a type that it cannot validate or describe.
_TYPE_ERRORS = (PydanticUserError, CoreSchemaError, TypeError, ValueError, NameError)


def build_schema(function: Callable[..., Any]) -> JsonSchema:
    """The JSON Schema of a function's arguments: a closed object with one property for each parameter.

    Types come from the annotations, constraints from `Field`, descriptions from `Field` or else from the docstring
    (Google, NumPy or Sphinx style). Parameters with a default are optional. Raises `ToolError` if a type has no JSON
    form, or its annotation cannot be resolved.
    """
    return Signature(function).schema


def pydantic_schema(model: Any) -> JsonSchema:
    """The JSON Schema of a Pydantic model, or of any type that Pydantic's `TypeAdapter` takes.

    Raises `InvalidSchemaError` if the type has no JSON form.
    """
    return adapter_schema(type_adapter(model))


def type_adapter(model: Any) -> TypeAdapter[Any]:
    """A `TypeAdapter` for a model or type. Raises `InvalidSchemaError` if Pydantic cannot read it."""
    try:
        return TypeAdapter(_portable(model))
    except _TYPE_ERRORS as error:
        raise InvalidSchemaError(f"{_display(model)} cannot be used as a schema: {_first_line(error)}") from error


def adapter_schema(adapter: TypeAdapter[Any]) -> JsonSchema:
    """The JSON Schema of what an adapter validates. Raises `InvalidSchemaError` if it has no JSON form."""
    try:
        return cast(JsonSchema, map_schema(adapter.json_schema(schema_generator=_Generator), _tidied))
    except _TYPE_ERRORS as error:
        raise InvalidSchemaError(f"The type has no JSON Schema: {_first_line(error)}") from error


def describe_validation_error(error: pydantic.ValidationError) -> str:
    """Pydantic's findings on one line: ``brightness: Input should be less than or equal to 100; room: ...``."""
    findings = []
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(str(part) for part in item["loc"])
        findings.append(f"{place}: {item['msg']}" if place else item["msg"])
    return "; ".join(findings)


class Signature:
    """What a function takes, and how JSON arguments become a call of it.

    ``schema`` is the JSON Schema of the arguments. ``*args: T`` counts as an optional list of ``T`` under its own name,
    ``**kwargs: T`` admits further arguments of type ``T``.

    Schema and conversion come from one Pydantic model that has a field for each parameter. The fields have neutral
    names and the parameters' names as aliases, because a parameter may well be called ``json`` or ``_id``, which are
    no names for a field.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name: str = getattr(function, "__name__", type(function).__name__)
        self.documentation = document(function)
        self._field_of: dict[str, str] = {}
        try:
            self._signature = inspect.signature(function)
            with warnings.catch_warnings():
                # Pydantic warns of combinations that it takes all the same; nobody can act on that here.
                warnings.simplefilter("ignore", UserWarning)
                self._model = self._build_model(_annotations(function))
                schema = map_schema(self._model.model_json_schema(schema_generator=_Generator), _tidied)
        except _TYPE_ERRORS as error:
            raise ToolError(
                f"The arguments of {self.name} cannot be described: {_first_line(error)}", tool=self.name
            ) from error
        further = schema.get("properties", {}).pop(_FURTHER, None)
        if further is not None:
            schema["additionalProperties"] = further["additionalProperties"]
        self.schema: JsonSchema = schema

    def _build_model(self, annotations: Mapping[str, Any]) -> type[BaseModel]:
        fields: dict[str, Any] = {}
        for index, (name, parameter) in enumerate(self._signature.parameters.items()):
            annotation = annotations.get(name, Any)
            if typing_extensions.get_origin(annotation) is typing_extensions.Unpack:
                raise TypeError(f"**{name} is an unpacked TypedDict; give its keys as parameters of their own")
            annotation = _portable(annotation)
            default = ... if parameter.default is parameter.empty else parameter.default
            if parameter.kind is parameter.VAR_POSITIONAL:
                annotation, default = list[annotation], []  # type: ignore[valid-type]
            elif parameter.kind is parameter.VAR_KEYWORD:
                annotation, default = Annotated[dict[str, annotation], pydantic.Field(alias=_FURTHER)], {}  # type: ignore[valid-type]
            self._field_of[name] = field = f"field{index}"
            fields[field] = (self._describe(name, annotation, default), default)
        config = ConfigDict(extra="forbid", regex_engine="python-re")
        return cast(type[BaseModel], pydantic.create_model("Arguments", __config__=config, **fields))

    def _describe(self, name: str, annotation: Any, default: Any) -> Any:
        """The annotation with the parameter's name as alias, and its docstring where `Field` gives no description."""
        given = [FieldInfo.from_annotation(annotation)]
        if isinstance(default, FieldInfo):
            given.append(default)
        options: dict[str, Any] = {}
        if not any(info.alias for info in given):
            options["alias"] = name
        description = self.documentation.parameters.get(name)
        if description and not any(info.description for info in given):
            options["description"] = description
        return Annotated[annotation, pydantic.Field(**options)]

    def bind(self, arguments: Mapping[str, Any] | str) -> inspect.BoundArguments:
        """The arguments (plain data, or JSON text) as the declared types, with defaults filled in.

        Raises `ToolError` that says what is wrong with which argument.
        """
        try:
            values = self._model.model_validate_json(self._nested(arguments))
        except pydantic.ValidationError as error:
            raise ToolError(
                f"Invalid arguments for {self.name}: {describe_validation_error(error)}", tool=self.name
            ) from error
        return self._bound({name: getattr(values, field) for name, field in self._field_of.items()})

    def complete(self, *args: Any, **kwargs: Any) -> inspect.BoundArguments:
        """An ordinary call's arguments, unconverted, with the defaults that `Field` holds filled in."""
        values = self._signature.bind(*args, **kwargs).arguments
        for name, field in self._field_of.items():
            if name not in values:
                values[name] = self._model.model_fields[field].get_default(call_default_factory=True)
        return self._bound(values)

    def _nested(self, arguments: Mapping[str, Any] | str) -> str | bytes:
        """The arguments as JSON text for the model, those for ``**kwargs`` moved into their field."""
        try:
            plain = from_json(arguments) if isinstance(arguments, str) else dict(arguments)
        except ValueError as error:
            raise ToolError(f"Invalid arguments for {self.name}: not JSON, {error}", tool=self.name) from error
        fields = self._model.model_fields.values()
        if isinstance(plain, dict) and any(field.alias == _FURTHER for field in fields):
            known = {field.alias for field in fields} - {_FURTHER}
            further = {key: plain.pop(key) for key in list(plain) if key not in known}
            plain[_FURTHER] = further
        return to_json(plain)

    def _bound(self, values: Mapping[str, Any]) -> inspect.BoundArguments:
        ordered = {name: values[name] for name in self._signature.parameters}
        return inspect.BoundArguments(self._signature, cast(Any, ordered))


def _annotations(function: Callable[..., Any]) -> dict[str, Any]:
    target: Any = function
    while isinstance(target, functools.partial):
        target = target.func
    if inspect.isclass(target):
        target = target.__init__
    elif not inspect.isroutine(target):
        target = type(target).__call__
    return typing_extensions.get_type_hints(inspect.unwrap(target), include_extras=True)


class _Generator(GenerateJsonSchema):
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        return value  # as generated, type first, which is the order that models have seen most

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _closed(super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _closed(super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _closed(super().typed_dict_schema(schema))

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        result: JsonSchemaValue = {"type": "object"}
        values = self.generate_inner(schema.get("values_schema", core_schema.any_schema()))
        result["additionalProperties"] = values or True
        keys = self.generate_inner(schema.get("keys_schema", core_schema.any_schema()))
        pattern = _KEY_PATTERNS.get(keys.get("type", ""))
        if pattern is not None:
            result["propertyNames"] = {"pattern": pattern}
        elif set(keys) - {"type", "title"}:
            result["propertyNames"] = keys
        self.update_with_validations(result, schema, self.ValidationsMapping.object)
        return result

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        given: dict[str, Any] = dict(schema)
        bounds: dict[str, Any] = {name: float(given[name]) for name in _BOUNDS if given.get(name) is not None}
        places, digits = schema.get("decimal_places"), schema.get("max_digits")
        if places is not None:
            bounds.setdefault("multiple_of", float(f"1e-{places}"))
        if digits is not None:
            limit = float(10 ** max(digits - (places or 0), 0))
            if "le" not in bounds:
                bounds.setdefault("lt", limit)
            if "ge" not in bounds:
                bounds.setdefault("gt", -limit)
        return self.float_schema(core_schema.float_schema(**bounds))

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        result = super().tagged_union_schema(schema)
        return {"anyOf": result["oneOf"]}


_BOUNDS = ("ge", "le", "gt", "lt", "multiple_of")

# How keys that are no strings are spelled in JSON.
_KEY_PATTERNS = {
    "integer": r"^-?(0|[1-9][0-9]*)$",
    "number": r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$",
    "boolean": r"^(true|false)$",
}


def _closed(schema: JsonSchemaValue) -> JsonSchemaValue:
    if schema.get("type") == "object" and not {"additionalProperties", "propertyNames"} & set(schema):
        schema["additionalProperties"] = False
    return schema


_MAPS_OF_SCHEMAS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA = frozenset({"default", "const", "enum", "examples"})


def map_schema(schema: Any, change: Callable[[JsonSchema], JsonSchema]) -> Any:
    """The schema with ``change`` applied to each (sub)schema, outer ones first.

    Walks by keyword, for a property may be named like one, and data in ``enum`` or ``default`` look like a schema.
    """
    if isinstance(schema, list):
        return [map_schema(item, change) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result: JsonSchema = {}
    for keyword, value in change(schema).items():
        if keyword in _MAPS_OF_SCHEMAS and isinstance(value, dict):
            value = {name: map_schema(inner, change) for name, inner in value.items()}
        elif keyword not in _DATA:
            value = map_schema(value, change)
        result[keyword] = value
    return result


_FREE_FORMATS = frozenset({"binary", "path", "file-path", "directory-path", "password"})
# Constraints under their Python names are those that Pydantic could not apply to the type.
_UNAPPLIED = frozenset({"ge", "le", "gt", "lt", "multiple_of", "min_length", "max_length"})


def _tidied(schema: JsonSchema) -> JsonSchema:
    unapplied = _UNAPPLIED & set(schema)
    if unapplied:
        raise TypeError(f"{min(unapplied)} does not apply to the type {schema.get('type', 'any')}")
    return {
        keyword: value
        for keyword, value in schema.items()
        if keyword != "title" and not (keyword == "format" and value in _FREE_FORMATS)
    }


if sys.version_info >= (3, 12):

    def _portable(annotation: Any) -> Any:
        return annotation

else:

    def _portable(annotation: Any) -> Any:
        """The annotation with `typing.TypedDict` classes replaced by those of `typing_extensions`: before Python 3.12
        Pydantic can read only the latter."""
        if typing.is_typeddict(annotation):
            return _portable_typed_dict(annotation) if type(annotation).__module__ == "typing" else annotation
        arguments = typing.get_args(annotation)
        replaced = tuple(_portable(argument) for argument in arguments)
        if all(new is old for new, old in zip(replaced, arguments, strict=True)):
            return annotation
        origin = typing.get_origin(annotation)
        if origin is Annotated:
            return Annotated[replaced]
        if origin in (Union, types.UnionType):
            return Union[replaced]  # noqa: UP007
        return origin[replaced]

    @functools.cache
    def _portable_typed_dict(cls: Any) -> Any:
        fields: dict[str, Any] = {}
        for name, annotation in typing_extensions.get_type_hints(cls, include_extras=True).items():
            wrapper: Any = (
                typing_extensions.Required if name in cls.__required_keys__ else typing_extensions.NotRequired
            )
            marks: tuple[Any, ...] = (typing_extensions.Required, typing_extensions.NotRequired)
            if typing_extensions.get_origin(annotation) in marks:
                # `__required_keys__` overlooks these where annotations are strings.
                wrapper, (annotation,) = typing_extensions.get_origin(annotation), typing.get_args(annotation)
            fields[name] = wrapper[annotation if annotation is cls else _portable(annotation)]
        replica = typing_extensions.TypedDict(cls.__name__, fields)  # type: ignore[misc]
        replica.__doc__ = cls.__doc__
        return replica


def _display(model: Any) -> str:
    return getattr(model, "__name__", None) or repr(model)


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
