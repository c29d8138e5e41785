"""The page that shows a run or a sweep while it goes on: reading, contents, server."""
