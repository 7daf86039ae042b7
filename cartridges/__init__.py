"""The cartridges that come with the kernel. They are found and loaded like any other author's."""
