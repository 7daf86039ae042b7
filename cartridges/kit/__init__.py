"""What cartridges share: forms of prompt, a planner by search, tools out of a list, Gymnasium's environments."""
