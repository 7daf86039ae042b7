"""One pass over the model: which tokens stand on which sequences, what is kept, and which rows are read."""
