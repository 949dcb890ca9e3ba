"""Sends a job to the worker of five_lines.py, and waits for its result."""

from five_lines import resize

print(resize("dog.png"))  # the function itself
print(resize.send("cat.png", width=40).wait(30))  # a job, performed by a worker
