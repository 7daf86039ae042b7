"""Model weights by name: the catalogue, the fetching and checking of files, the cache folder."""
