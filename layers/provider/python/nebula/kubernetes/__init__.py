"""Reading and writing a cluster: a thin client, and pure builders of what is written."""
