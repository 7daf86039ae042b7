"""Parts for cartridges: prompt forms, a breadth-first planner, small rules, adapters for tool lists and Gymnasium."""
