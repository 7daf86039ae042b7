"""Text and token ids: the pieces of a vocabulary, and exact tokenization of one text or of a million."""
