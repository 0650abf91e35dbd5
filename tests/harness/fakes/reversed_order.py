"""A pytest plugin that runs the tests backwards."""


def pytest_collection_modifyitems(items: list) -> None:
    items.reverse()
