"""What pyproject.toml cannot say: configs/, problems/ and solutions/ lie beside the package, in a wheel inside it."""

from setuptools import find_packages, setup

LIBRARY = {f"harness.library.{folder}": folder for folder in ("configs", "problems", "solutions")}

setup(
    packages=[*find_packages(include=["harness", "harness.*"]), *LIBRARY],
    package_dir=LIBRARY,
    include_package_data=False,  # only what is named here
    package_data={name: ["*.yaml", "**/*.py"] for name in LIBRARY}
    | {
        "harness": ["py.typed"],
        "harness.compile": ["stand_in_headers/**/*.h", "headers/**/*"],
        "harness.reports.html": ["templates/*"],
    },
)
