"""The cartridges that ship; each comes through the same door as an outside one."""
