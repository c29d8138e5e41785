"""The monitor, a page that shows a run or a sweep in progress: reading, contents, server."""
