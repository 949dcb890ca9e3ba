"""A worker in five lines: python -m windlass worker five_lines:app"""

from windlass import App

app = App()


@app.service
def resize(file: str, width: int = 80) -> str:
    return f"{file} at {width}"
