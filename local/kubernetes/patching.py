"""The three patch types. Nothing is changed in place: untouched parts are shared with the original.

Merge keys: https://github.com/kubernetes/api (``patchStrategy`` and ``patchMergeKey`` of the Go types). Lists that
are not named there are atomic: ``tolerations``, ``containerStatuses``, ``taints``.
"""

from __future__ import annotations

import copy
from typing import Any

from local.kubernetes.errors import ApiError, Cause, Object, bad_request

_MERGE_KEYS = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "hostIPs": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "ports": "containerPort",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
_PRIMITIVE_SETS = frozenset({"finalizers", "podCIDRs"})
_DELETE_FROM = "$deleteFromPrimitiveList/"
_MAX_OPERATIONS = 10_000


def merge_patch(original: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return _decoded(patch)
    merged = dict(original) if isinstance(original, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def strategic_merge(original: Object, patch: Object) -> Object:
    """Strategic merge of maps; lists with a merge key merge item by item."""
    directive = patch.get("$patch")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if directive == "delete":
        return {}
    merged = dict(original)
    for key, value in patch.items():
        if key.startswith(_DELETE_FROM):
            name = key.removeprefix(_DELETE_FROM)
            merged[name] = [item for item in merged.get(name) or [] if item not in value]
        elif key.startswith("$"):
            continue  # $setElementOrder and $retainKeys change the order of items or are hints for unions
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(key, merged.get(key), value)
    return merged


def _merge_value(key: str, original: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return strategic_merge(original if isinstance(original, dict) else {}, value)
    if not isinstance(value, list):
        return value
    if key in _PRIMITIVE_SETS:
        kept = list(original or [])
        return kept + [item for item in value if item not in kept]
    if key in _MERGE_KEYS:
        return _merge_list(_MERGE_KEYS[key], original or [], value)
    return _decoded(value)


def _decoded(value: Any) -> Any:
    """A list as a typed decoder keeps it: a null in an item is an absent field."""
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    if isinstance(value, dict):
        return {key: _decoded(item) for key, item in value.items() if item is not None}
    return value


def _merge_list(merge_key: str, original: list[Any], patch: list[Any]) -> list[Any]:
    if any(not isinstance(item, dict) for item in patch):
        raise bad_request("cannot merge a list of objects with another type")
    plain = [item for item in patch if item.get("$patch") != "replace" or merge_key in item]
    if len(plain) < len(patch):
        return [strategic_merge({}, item) for item in plain]
    live = {item.get(merge_key): item for item in original}
    patched: dict[Any, Object] = {}
    deleted = set()
    for item in patch:
        if merge_key not in item:
            raise ApiError(500, f"an item does not contain the declared merge key: {merge_key}")
        key = item[merge_key]
        if item.get("$patch") == "delete":
            deleted.add(key)
        else:
            patched[key] = strategic_merge(patched.get(key) or live.get(key) or {}, item)
    untouched = [key for key in live if key not in patched and key not in deleted]
    return [patched.get(key) or live[key] for key in _interleaved(untouched, list(patched), list(live))]


def _interleaved(untouched: list[Any], patched: list[Any], order: list[Any]) -> list[Any]:
    """Both lists keep their order; an untouched item goes before a patched one only if it was before it.

    So a new item comes before what is left of the old ones.
    """
    merged = []
    for key in patched:
        if key in order:
            place = order.index(key)
            while untouched and order.index(untouched[0]) < place:
                merged.append(untouched.pop(0))
        merged.append(key)
    return merged + untouched


def json_patch(original: Object, operations: Any) -> Object:
    """RFC 6902. A failed ``test`` or a missing path is 422, as the API server answers."""
    if not isinstance(operations, list) or any(not isinstance(item, dict) for item in operations):
        raise bad_request("the body is no JSON patch")
    if len(operations) > _MAX_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise ApiError(413, message)
    document: Any = copy.deepcopy(original)
    for operation in operations:
        document = _operate(document, operation)
    if not isinstance(document, dict):
        raise bad_request("the patched document is no object")
    return document


def _operate(document: Any, operation: Object) -> Any:
    kind, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise bad_request("a JSON patch operation has no path")
    if kind == "test":
        if _look_up(document, path) != operation.get("value"):
            raise _rejected("testing value " + path + " failed")
        return document
    if kind == "remove":
        _remove(document, path)
        return document
    if kind in ("add", "replace"):
        return _put(document, path, operation.get("value"), replace=kind == "replace")
    if kind in ("move", "copy"):
        source = operation.get("from")
        if not isinstance(source, str):
            raise bad_request("a JSON patch operation has no from")
        value = copy.deepcopy(_look_up(document, source))
        if kind == "move":
            _remove(document, source)
        return _put(document, path, value, replace=False)
    raise bad_request("unknown JSON patch operation")


def _rejected(why: str) -> ApiError:
    message = "the server rejected our request due to an error in our request"
    return ApiError(422, message, causes=[Cause("", why, "UnexpectedServerResponse")])


def _tokens(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _index(token: str, end: int) -> int:
    if not token.isascii() or not token.isdigit() or int(token) >= end:
        raise _rejected(f"no index {token}")
    return int(token)


def _step(node: Any, token: str) -> Any:
    if isinstance(node, dict) and token in node:
        return node[token]
    if isinstance(node, list):
        return node[_index(token, len(node))]
    raise _rejected(f"no path {token}")


def _look_up(document: Any, path: str) -> Any:
    for token in _tokens(path):
        document = _step(document, token)
    return document


def _remove(document: Any, path: str) -> None:
    *parents, last = _tokens(path) or [""]
    for token in parents:
        document = _step(document, token)
    _step(document, last)
    del document[int(last) if isinstance(document, list) else last]


def _put(document: Any, path: str, value: Any, *, replace: bool) -> Any:
    if not path:
        return value
    *parents, last = _tokens(path)
    node = document
    for token in parents:
        node = _step(node, token)
    if replace:
        _step(node, last)
    if isinstance(node, list) and replace:
        node[int(last)] = value
    elif isinstance(node, list):
        node.insert(len(node) if last == "-" else _index(last, len(node) + 1), value)
    elif isinstance(node, dict):
        node[last] = value
    else:
        raise _rejected(f"no path {last}")
    return document
