"""Planning in rational arithmetic: the last resort for small models, and ``plan(model, exact=True)``."""
