"""Sessions in a browser's tab: what runs there in Pyodide, and how it is packed for a page.

`program.py` is the door that the tab's worker calls. It and what it imports need no numpy, as none is to be had there:
the model, the tokens and the scores are the worker's (`serve/page/tab`), all else is the Python that runs everywhere.
`packing.py` and `bundle.py` run outside and put the files together. docs/tab.md has the whole.
"""
