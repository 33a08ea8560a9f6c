"""``GET /v2/catalog/*`` as the OpenAPI document describes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.runpod.market import COUNTRIES, Flavor, Gpu, Market
from local.runpod.wire import ProblemError

Query = Mapping[str, str]


def gpu_types(market: Market, query: Query) -> dict[str, Any]:
    """The list of GPU types, with stock where asked for."""
    with_stock = _wants_stock(query, ("POD", "SERVERLESS", "CLUSTER"))
    return {"gpus": [_gpu(market, gpu, query, with_stock=with_stock) for gpu in market.gpus.values()]}


def gpu_type(market: Market, query: Query, gpu_id: str) -> dict[str, Any]:
    """One GPU type."""
    if gpu_id not in market.gpus:
        raise ProblemError(404, "resource not found")
    with_stock = _wants_stock(query, ("POD", "SERVERLESS", "CLUSTER"))
    return _gpu(market, market.gpus[gpu_id], query, with_stock=with_stock)


def cpu_types(market: Market, query: Query) -> dict[str, Any]:
    """The list of CPU flavors, with stock where asked for."""
    with_stock = _wants_stock(query, ("POD", "SERVERLESS"))
    return {"cpus": [_cpu(market, flavor, with_stock=with_stock) for flavor in market.flavors.values()]}


def data_centers(market: Market) -> dict[str, Any]:
    """The list of data centers (stock there is not simulated)."""
    return {
        "dataCenters": [
            {
                "id": center,
                "name": name,
                "region": region,
                "globalNetwork": False,
                "networkVolumeTypes": [],
                "compliance": [],
            }
            for center, (name, region) in market.centers.items()
        ]
    }


def _wants_stock(query: Query, products: tuple[str, ...]) -> bool:
    include, product = query.get("include"), query.get("product")
    if include is not None and include != "AVAILABILITY":
        raise ProblemError(422, "Request validation failed.", errors=["include: value must be one of 'AVAILABILITY'"])
    if (include is None) != (product is None):
        raise ProblemError(400, "include=AVAILABILITY and product go together")
    if product is not None and not set(product.split(",")) <= set(products):
        raise ProblemError(422, "Request validation failed.", errors=["product: unknown value"])
    return include is not None


def _gpu(market: Market, gpu: Gpu, query: Query, *, with_stock: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": gpu.id,
        "name": gpu.name,
        "pool": None,
        "manufacturer": gpu.manufacturer,
        "memory": gpu.memory,
        "secure": gpu.secure,
        "community": gpu.community,
        "price": {"secure": gpu.secure_price, "community": gpu.community_price},
        "maxCount": {
            "secure": gpu.max_count if gpu.secure else 0,
            "community": gpu.max_count if gpu.community else 0,
        },
    }
    if with_stock:
        cloud = query.get("cloud", "SECURE")
        count = int(query.get("count", "1"))
        wanted = query.get("countryCodes", "").split(",") if query.get("countryCodes") else None
        centers = [one for one in market.centers if wanted is None or _country(one) in wanted]
        row |= _stock(market, gpu.id, count, cloud, centers if gpu.sold(cloud) else [])
    return row


def _cpu(market: Market, flavor: Flavor, *, with_stock: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": flavor.id,
        "name": flavor.name,
        "group": flavor.group,
        "vcpu": {"min": flavor.least, "max": flavor.most},
        "ramGbPerVcpu": flavor.ram_per_vcpu,
        "price": {"securePerVcpu": flavor.price, "serverlessPerVcpu": flavor.price},
    }
    return row | (_stock(market, flavor.id, 1, "SECURE", list(market.centers)) if with_stock else {})


def _stock(market: Market, type_id: str, count: int, cloud: str, centers: list[str]) -> dict[str, Any]:
    """Level over all and per data center; the list is left out when there is none anywhere."""
    levels = {center: market.level(type_id, count, cloud, [center]) for center in centers}
    overall = market.level(type_id, count, cloud, centers) if centers else "NONE"
    if overall == "NONE":
        return {"availability": "NONE"}
    rows = [
        {"id": center, "name": market.centers[center][0], "availability": level} for center, level in levels.items()
    ]
    return {"availability": overall, "dataCenters": rows}


def _country(center: str) -> str:
    return next((code for prefix, code in COUNTRIES.items() if center.startswith(prefix)), "")
