"""Model formats of other programs: Storm's explicit ``.drn``, and UMB, which Storm, PRISM and Modest read and write."""
