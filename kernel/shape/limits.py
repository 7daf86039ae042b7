"""How much of a schema is read. Beyond a limit a tool is refused with path and keyword; docs/arguments.md lists them.

They count work and sizes, never seconds, so that a schema is read everywhere or nowhere.
"""

NESTING = 32
"""Schemas inside each other, references followed; a reference that leads back to a schema around it counts once."""
DOCUMENT_NESTING = 128
"""Lists and objects of JSON inside each other in a schema document."""
DOCUMENT_VALUES = 200_000
"""Values in a schema document, those in lists and objects counted each."""
SCHEMAS = 5_000
"""Schemas that are read for one tool, once for each place that a reference leads to them from anew."""
ALTERNATIVES = 256
"""Alternatives of one `oneOf`, each of which has to exclude each other one."""
CONSTANTS = 10_000
"""Values of one `enum`."""
SHORTEST = 1 << 16
"""Bytes of the shortest text of a value: what `minLength`, `minItems`, `required` and references add up to."""
UNCOUNTED = 10**9
"""Items and characters from which an upper bound bounds nothing that a model can write."""
PATTERN = 8192
"""Characters of a pattern."""
GROUPS = 32
"""Groups of a pattern inside each other."""
REPETITIONS = 4096
"""Repetitions up to which a count in a pattern is held."""
COUNTED = 10_000
"""The same for counts inside each other, multiplied."""
DIGITS = 40
"""Digits of a bound of numbers in front of the point; a bound that is further out is moved in to them, with a note."""
UNIQUE = 10
"""Different values of items up to which `uniqueItems` is held without listing all arrays."""
TUPLE = 128
"""Schemas of a `prefixItems`."""
KEYS_COUNTED = 128
"""Properties beside a `minProperties` or `maxProperties` that has to be counted."""
NAMES = 4096
"""Characters of a name or keyword that is compared with the known ones."""
