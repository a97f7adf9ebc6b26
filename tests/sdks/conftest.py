"""A running gateway with two weather providers behind it, and the clients' environments."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import Stage
from tests.sdks.environments import node_with_clients, python_with_clients
from tests.sdks.weather import WEATHER


@pytest.fixture(scope="session")
def weather_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("sdks"), os.environ["REDIS_URL"])
    yield stage
    stage.stop()


@pytest.fixture
def stage(weather_stage: Stage) -> Stage:
    weather_stage.reset()
    weather_stage.openai.always, weather_stage.anthropic.always = WEATHER["gpt"], WEATHER["claude"]
    return weather_stage


@pytest.fixture(scope="session")
def client_python() -> Path:
    return python_with_clients()


@pytest.fixture(scope="session")
def node_folder() -> Path:
    return node_with_clients()
