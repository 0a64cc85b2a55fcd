#!/usr/bin/env python3
"""A shipped filter's patterns as one extended regular expression for `grep -E`.

filter-patterns.py FILTER.toml > PATTERN

All alternatives of all rules, behind the time in brackets, without their names and lazy quantifiers (a count
of lines needs neither). Patterns of `unless` are left out: grep is given less to do, never more.
"""

import re
import sys
import tomllib

EXTENDED = [
    (r"\(\?P<\w+>", "("),
    (r"\(\?:", "("),
    (r"(?<!\\)([*+?])\?", r"\1"),
    (r"\\d", "[0-9]"),
]
INSIDE_CLASS = re.compile(r"\[(\^?\]?(?:\\.|[^\]\\])*)\]")


def in_class(found):
    """A bracket expression as POSIX writes it: no escapes, `]` first, `-` last."""
    body = found.group(1)
    negated, body = (("^", body[1:]) if body.startswith("^") else ("", body))
    names = {"\\s": "[:space:]", "\\d": "0-9", "\\w": "[:alnum:]_"}
    for escape, posix in names.items():
        body = body.replace(escape, posix)
    first = "]" if "\\]" in body or body.startswith("]") else ""
    body = body.replace("\\]", "").lstrip("]")
    last = "-" if "\\-" in body or body.endswith("-") else ""
    body = body.replace("\\-", "").rstrip("-")
    body = re.sub(r"\\(.)", r"\1", body)
    return "[" + negated + first + body + last + "]"


def extended(pattern):
    pattern = pattern.removeprefix("^")
    pattern = INSIDE_CLASS.sub(in_class, pattern)
    for what, instead in EXTENDED:
        pattern = re.sub(what, instead, pattern)
    return pattern


def main():
    with open(sys.argv[1], "rb") as source:
        rules = tomllib.load(source)["rule"]
    patterns = []
    for rule in rules:
        match = rule["match"]
        patterns += [match] if isinstance(match, str) else match
    beginning = [extended(pattern) for pattern in patterns if pattern.startswith("^")]
    anywhere = [".*" + extended(pattern) for pattern in patterns if not pattern.startswith("^")]
    print(r"^\[[^]]*\] (" + "|".join(beginning + anywhere) + ")")


main()
