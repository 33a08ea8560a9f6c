"""Registry credentials, the pure parts: which one pulls an image, what it is called, when it goes."""
