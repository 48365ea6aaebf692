"""A trained pipeline over HTTP."""
